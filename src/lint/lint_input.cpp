#include "lint/lint_input.h"

#include "base/secrets.h"

namespace nlaunch::lint {

bool Setting::holds_secret() const {
  if (unset || !value || value->find("${") != std::string::npos) return false;
  if (!password_in(*value).empty() || !key_in(*value).empty()) return true;
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
  // From the last setting back to the first that certainly applies: it replaces the earlier ones.
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
