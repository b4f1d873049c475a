#include "report/lint_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace nlaunch::report {
namespace {

std::string one_text(const lint::Finding& finding, const Paint& paint) {
  const Diagnostic shown{finding.severity, std::string(finding.rule), finding.what, finding.span, {}, {}};
  auto out = render(shown, paint.on() ? Color::always : Color::never, paint.width());
  const auto line = [&](std::string_view label, const std::string& text) {
    if (!text.empty()) out += fmt::format("{} {}\n", paint.dim(label), text::printable(text));
  };
  line("roles:", text::join(finding.environments, ", "));
  line("why:", finding.source.empty() ? finding.why : fmt::format("{} ({})", finding.why, finding.source));
  line("instead:", finding.instead);
  return out;
}

}  // namespace

std::string lint_count(std::span<const lint::Finding> findings) {
  std::vector<std::string> parts;
  for (const auto severity : {Severity::error, Severity::warning, Severity::note}) {
    const auto n = static_cast<std::size_t>(std::ranges::count(findings, severity, &lint::Finding::severity));
    if (n > 0) parts.push_back(text::count(n, name_of(severity)));
  }
  return fmt::format("{}: {}", text::count(findings.size(), "finding"), text::join(parts, ", "));
}

std::string lint_text(std::span<const lint::Finding> findings, const Paint& paint) {
  std::string out;
  for (const auto& finding : findings) {
    out += one_text(finding, paint) + "\n";
  }
  if (!findings.empty()) {
    out += fmt::format("{}; for details: nlaunch lint --explain {}\n", lint_count(findings),
                       findings.front().rule);
  }
  return out;
}

nlohmann::ordered_json lint_json(std::span<const lint::Finding> findings) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& finding : findings) {
    nlohmann::ordered_json one{{"rule", finding.rule}, {"severity", name_of(finding.severity)}};
    one["file"] = finding.span.file ? finding.span.file->name : "";
    one["line"] = finding.span.line;
    one["column"] = finding.span.column;
    one["roles"] = finding.environments;
    one["what"] = finding.what;
    one["why"] = finding.why;
    one["source"] = finding.source;
    one["instead"] = finding.instead;
    out.push_back(std::move(one));
  }
  return out;
}

std::string rule_text(const lint::Rule& rule, const Paint& paint) {
  return fmt::format("{}: {}\n\n{}\n{}", paint.bold(rule.name), rule.title, rule.explain,
                     rule.source.empty() ? "" : fmt::format("\nsource: {}\n", rule.source));
}

}  // namespace nlaunch::report
