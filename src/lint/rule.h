#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "lint/lint_input.h"

/// The table of rules. A rule is a check with its own entry, in the file of its subject in lint/rules/.
namespace nlaunch::lint {

/// One thing that a rule found.
struct Finding {
  std::string_view rule;
  Severity severity = Severity::error;
  SourceSpan span;
  std::vector<std::string> environments;  ///< the roles that it applies to; empty for a file
  std::string what;                       ///< one sentence: what is there and why it is wrong
  std::string why;                        ///< the effect
  std::string source;                     ///< where that is from
  std::string instead;                    ///< what to write instead; may be empty
};

/// Where a rule puts what it finds.
class Report {
 public:
  struct Saying {
    std::string what;
    std::string why;
    std::string instead;
    std::string source;  ///< empty: the rule's own
  };
  void error(const SourceSpan& span, Saying saying) { add(Severity::error, span, std::move(saying)); }
  void warning(const SourceSpan& span, Saying saying) { add(Severity::warning, span, std::move(saying)); }
  void note(const SourceSpan& span, Saying saying) { add(Severity::note, span, std::move(saying)); }

  /// The following findings belong to this rule, and to no environment until `of`.
  void begin(std::string_view rule, std::string_view source) {
    rule_ = rule;
    source_ = source;
    environment_.clear();
    of_rule_ = 0;
  }
  void of(const std::string& environment) { environment_ = environment; }
  /// True if the rule has so many findings that further ones are dropped.
  [[nodiscard]] bool full() const { return of_rule_ > kMostOfRule; }

  /// True if one of these rules has found something.
  [[nodiscard]] bool has_any_of(std::span<const std::string_view> rules) const;

  [[nodiscard]] std::vector<Finding> take() { return std::move(findings_); }

 private:
  static constexpr std::size_t kMostOfRule = 200;

  void add(Severity severity, const SourceSpan& span, Saying saying);

  std::size_t of_rule_ = 0;
  std::string_view rule_;
  std::string_view source_;
  std::string environment_;
  std::vector<Finding> findings_;
};

struct Rule {
  int order;                  ///< order in rules(): in tens, to leave room in between
  std::string_view name;      ///< "unknown-variable"
  std::string_view title;     ///< what it finds, in a line
  std::string_view explain;   ///< why it matters and what to do, a few sentences
  std::string_view source{};  ///< where that is from; may be empty
  void (*check)(const LintInput&, Report&);
};

/// All rules, in the order in which --explain lists them.
inline std::vector<const Rule*> rules() {
  return Registered<Rule>::all();
}
const Rule* find_rule(std::string_view name);

/// The findings of all rules, sorted by place; they and the files they refer to contain no secret. Findings
/// suppressed by a comment are left out; an invalid suppression is itself a finding.
std::vector<Finding> lint(const LintInput& input);

/// Calls `look` for each setting of each environment, with the report set to it.
template <class Look>
void each_setting(const LintInput& input, Report& report, const Look& look) {
  for (const auto& environment : input.environments) {
    report.of(environment.name);
    for (const auto& setting : environment.settings) {
      if (report.full()) return;
      look(environment, setting);
    }
  }
}

/// The same for settings of one variable with a known value.
template <class Look>
void each_value(const LintInput& input, Report& report, std::string_view name, const Look& look) {
  each_setting(input, report, [&](const Environment& environment, const Setting& setting) {
    if (setting.name == name && !setting.unset && setting.value) look(environment, setting, *setting.value);
  });
}

}  // namespace nlaunch::lint
