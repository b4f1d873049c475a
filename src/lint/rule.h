#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lint/lint_input.h"

/// The table of rules.
namespace nlaunch::lint {

/// One thing that a rule found.
struct Finding {
  std::string_view rule;
  Severity severity = Severity::error;
  SourceSpan span;
  std::vector<std::string> environments;  ///< the roles that it holds for; empty for a file
  std::string what;                       ///< one sentence: what is written there, and that it is wrong
  std::string why;                        ///< what comes of it
  std::string source;                     ///< where that is from
  std::string instead;                    ///< what to write; may be empty
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

  /// What follows is of this rule, and of this environment.
  void begin(std::string_view rule, std::string_view source) {
    rule_ = rule;
    source_ = source;
    environment_.clear();
    of_rule_ = 0;
  }
  void of(const std::string& environment) { environment_ = environment; }
  /// The rule has found so much that more of it is left out.
  [[nodiscard]] bool full() const { return of_rule_ > kMostOfRule; }

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
  std::string_view id;       ///< "unknown-variable"
  std::string_view title;    ///< what it finds, in a line
  std::string_view explain;  ///< why it matters and what to do, a few sentences
  std::string_view source;   ///< where that is from
  void (*check)(const LintInput&, Report&);
};

/// All rules, in the order in which --explain lists them.
std::span<const Rule> rules();
const Rule* find_rule(std::string_view id);

/// What all rules find in a scene, by place; no secret is in it, nor in the files that it refers to. What a
/// comment silences is left out; a silence that is wrong is a finding of its own.
std::vector<Finding> lint(const LintInput& input);

}  // namespace nlaunch::lint
