#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "config/experiment.h"
#include "plan/plan.h"

/// The options of a submit command that a profile or an experiment sets as directives of the batch script.
namespace nlaunch::plan {

/// An option that nlaunch sets itself, with the key to use instead.
struct OwnedOption {
  std::string_view name;
  std::string_view instead;
};

/// The options that a submit command accepts.
struct DirectiveSyntax {
  std::string_view
      scheduler;  ///< "slurm": its errors are plan.slurm-option, plan.slurm-value, plan.slurm-owned
  std::string_view command;   ///< "sbatch"
  std::string_view line;      ///< "an #SBATCH line"
  std::string_view examples;  ///< names of options: "partition, gpus-per-node, time"
  std::span<const OwnedOption> owned;
  /// Long names without dashes, separated by blanks. A newer release can have more, which are treated as
  /// flags if they are `true`.
  std::string_view with_value;
  std::string_view without_value;
  /// What is wrong with the value of an option, and how to write it; both are empty if nothing is.
  struct Wrong {
    std::string message, hint;
  };
  Wrong (*wrong)(std::string_view option, const std::string& value) = nullptr;
  std::string_view forbidden;       ///< characters that a value cannot contain
  std::string_view why_forbidden;   ///< after the quoted value: "would not be expanded: ..."
  std::string_view hint_forbidden;  ///< how to fix it
};

/// All known options.
std::vector<std::string> options_of(const DirectiveSyntax& syntax);
bool needs_value(const DirectiveSyntax& syntax, std::string_view option);

/// Merges options one after the other: a later one replaces an earlier one of the same name, and `false`
/// removes it.
class DirectiveMerger {
 public:
  /// All arguments except `below`, which the others override, must outlive this.
  DirectiveMerger(const DirectiveSyntax& syntax,
                  const std::function<std::string(const config::Text&)>& resolve, Diagnostics& diagnostics,
                  std::vector<Directive> below = {})
      : syntax_(syntax), resolve_(resolve), diagnostics_(diagnostics), options_(std::move(below)) {}

  /// Errors at their location: a name or a value that the command could misinterpret, and an option that
  /// nlaunch sets itself.
  void add(const config::Text& name, const config::Text& value);
  std::vector<Directive> take() && { return std::move(options_); }

 private:
  bool check_name(const config::Text& name);
  bool check_value(const std::string& name, const std::string& value, const SourceSpan& span);
  bool refuse(std::string_view id, const SourceSpan& span, std::string message, std::string hint);

  const DirectiveSyntax& syntax_;
  const std::function<std::string(const config::Text&)>& resolve_;
  Diagnostics& diagnostics_;
  std::vector<Directive> options_;
};

}  // namespace nlaunch::plan
