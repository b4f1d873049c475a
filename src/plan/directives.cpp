#include "plan/directives.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nlaunch::plan {
namespace {

bool is_option_name(std::string_view name) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && lower(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return lower(c) || (c >= '0' && c <= '9') || c == '-'; });
}

}  // namespace

std::vector<std::string> options_of(const DirectiveSyntax& syntax) {
  auto options = text::split(syntax.with_value, ' ');
  for (auto& flag : text::split(syntax.without_value, ' ')) options.push_back(std::move(flag));
  return options;
}

bool needs_value(const DirectiveSyntax& syntax, std::string_view option) {
  const auto options = text::split(syntax.with_value, ' ');
  return std::ranges::find(options, option) != options.end();
}

void DirectiveMerger::add(const config::Text& name, const config::Text& value) {
  if (!check_name(name)) return;
  auto text = resolve_(value);
  if (!check_value(name.value, text, value.span)) return;
  std::erase_if(options_, [&](const Directive& other) { return other.name == name.value; });
  if (text == "false") return;
  options_.push_back({name.value, text == "true" ? "" : std::move(text), value.span.where()});
}

bool DirectiveMerger::check_name(const config::Text& name) {
  const auto owned = std::ranges::find(syntax_.owned, name.value, &OwnedOption::name);
  if (owned != syntax_.owned.end()) {
    return refuse("owned", name.span,
                  fmt::format("'{}' is set by nlaunch and cannot be set here", name.value),
                  std::string(owned->instead));
  }
  if (is_option_name(name.value)) return true;
  return refuse("option", name.span, fmt::format("'{}' is not an option of {}", name.value, syntax_.command),
                fmt::format("write the long name without dashes: {}", syntax_.examples));
}

bool DirectiveMerger::check_value(const std::string& name, const std::string& value, const SourceSpan& span) {
  if (value.empty()) {  // an option without its argument would consume the next directive
    return refuse("value", span, "a directive needs a value",
                  "`true` makes a flag; leave out the key to omit the line");
  }
  if (text::printable(value) != value) {
    return refuse("value", span, fmt::format("'{}' is not allowed in {}", value, syntax_.line),
                  "remove line breaks, other control characters and invalid UTF-8");
  }
  if (value.find_first_of(syntax_.forbidden) != std::string::npos) {
    return refuse("value", span, fmt::format("'{}' {}", value, syntax_.why_forbidden),
                  std::string(syntax_.hint_forbidden));
  }
  if (syntax_.wrong != nullptr) {
    if (auto [message, hint] = syntax_.wrong(name, value); !message.empty())
      return refuse("value", span, std::move(message), std::move(hint));
  }
  if (value != "true" || !needs_value(syntax_, name)) return true;
  return refuse("value", span, fmt::format("'{}' needs a value; `true` would make it a flag", name),
                fmt::format("write `{0}: VALUE`; `{0}: false` removes it", name));
}

bool DirectiveMerger::refuse(std::string_view id, const SourceSpan& span, std::string message,
                             std::string hint) {
  diagnostics_.error(fmt::format("plan.{}-{}", syntax_.scheduler, id), span, std::move(message)).hint =
      std::move(hint);
  return false;
}

}  // namespace nlaunch::plan
