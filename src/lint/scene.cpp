#include "lint/scene.h"

#include <algorithm>
#include <array>

#include "base/secrets.h"
#include "base/text.h"

namespace nlaunch::lint {
namespace {

/// A password within an address: scheme://user:password@host.
bool has_password(std::string_view value) {
  const auto scheme = value.find("://");
  if (scheme == std::string_view::npos) return false;
  const auto rest = value.substr(scheme + 3);
  const auto at = rest.find('@');
  const auto colon = rest.find(':');
  return at != std::string_view::npos && colon != std::string_view::npos && colon + 1 < at &&
         rest.substr(0, at).find('/') == std::string_view::npos;
}

/// Words that stand for a value which is to be filled in.
bool is_to_be_filled_in(std::string_view value) {
  const auto lower = text::lower(value);
  constexpr std::array<std::string_view, 9> kWords{"your",     "xxx",  "<",       "...",  "***",
                                                   "changeme", "todo", "replace", "dummy"};
  return value.size() < 8 || lower == "offline" || lower == "disabled" ||
         std::ranges::any_of(kWords,
                             [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

/// A path, a number or a yes is no secret, whatever the variable is called.
bool may_be_secret(std::string_view value) {
  return value.find('/') == std::string_view::npos && value.find(' ') == std::string_view::npos &&
         value.find_first_not_of("0123456789.") != std::string_view::npos;
}

}  // namespace

bool Setting::holds_secret() const {
  if (unset || !value || value->find("${") != std::string::npos) return false;
  if (has_password(*value)) return true;
  return looks_like_secret(name) && may_be_secret(*value) && !is_to_be_filled_in(*value);
}

const Setting* Environment::find(std::string_view variable) const {
  const Setting* found = nullptr;
  for (const auto& setting : settings) {
    if (setting.name != variable || !setting.exported) continue;
    if (setting.sure || found == nullptr || !found->sure) found = &setting;
  }
  return found;
}

std::optional<std::string> Environment::value(std::string_view variable) const {
  const auto* found = find(variable);
  return found == nullptr || !found->sure || found->unset ? std::nullopt : found->value;
}

bool Environment::may(std::string_view variable, const std::function<bool(const std::string&)>& fits) const {
  // From the last on back to the first that holds for certain: what stands before is replaced.
  for (auto one = settings.rbegin(); one != settings.rend(); ++one) {
    if (one->name != variable || !one->exported) continue;
    if (!one->unset && (!one->value || fits(*one->value))) return true;
    if (one->sure) return false;
  }
  return false;
}

const Version* Environment::release(std::string_view owner) const {
  const auto found = releases.find(std::string(owner));
  return found == releases.end() ? nullptr : &found->second;
}

}  // namespace nlaunch::lint
