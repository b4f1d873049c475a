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
                  fmt::format("'{}' is set by nlaunch and cannot be given here", name.value),
                  std::string(owned->instead));
  }
  if (is_option_name(name.value)) return true;
  return refuse("option", name.span, fmt::format("'{}' is no option of {}", name.value, syntax_.command),
                fmt::format("the long name without its dashes: {}", syntax_.examples));
}

bool DirectiveMerger::check_value(const std::string& name, const std::string& value, const SourceSpan& span) {
  if (value.empty()) {  // an option without its argument would take the next directive for one
    return refuse("value", span, "a directive needs a value",
                  "`true` makes a flag; a line that is not wanted is left out");
  }
  if (text::printable(value) != value) {
    return refuse("value", span, fmt::format("'{}' cannot stand in {}", value, syntax_.line),
                  "line breaks and other control characters, and what is not UTF-8, are not allowed there");
  }
  if (value.find_first_of(syntax_.forbidden) != std::string::npos) {
    return refuse("value", span, fmt::format("'{}' {}", value, syntax_.why_forbidden),
                  std::string(syntax_.hint_forbidden));
  }
  if (value != "true" || !needs_value(syntax_, name)) return true;
  return refuse("value", span, fmt::format("'{}' needs a value, and `true` would make it a flag", name),
                fmt::format("`{0}: VALUE`; `{0}: false` takes it away", name));
}

bool DirectiveMerger::refuse(std::string_view id, const SourceSpan& span, std::string message,
                             std::string hint) {
  diagnostics_.error(fmt::format("plan.{}-{}", syntax_.scheduler, id), span, std::move(message)).hint =
      std::move(hint);
  return false;
}

}  // namespace nlaunch::plan
