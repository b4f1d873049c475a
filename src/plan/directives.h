#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "config/experiment.h"
#include "plan/plan.h"

/// The options of a submit command that a profile or an experiment gives as directives of the batch script.
namespace nlaunch::plan {

/// An option whose value is nlaunch's own, with what says the same.
struct OwnedOption {
  std::string_view name;
  std::string_view instead;
};

/// What a submit command takes.
struct DirectiveSyntax {
  std::string_view
      scheduler;  ///< "slurm": its errors are plan.slurm-option, plan.slurm-value, plan.slurm-owned
  std::string_view command;   ///< "sbatch"
  std::string_view line;      ///< "an #SBATCH line"
  std::string_view examples;  ///< names of options: "partition, gpus-per-node, time"
  std::span<const OwnedOption> owned;
  /// Long names without their dashes, a blank between two. A newer release has more, which are taken for
  /// flags where they are `true`.
  std::string_view with_value;
  std::string_view without_value;
  std::string_view forbidden;       ///< characters that no value may hold
  std::string_view why_forbidden;   ///< after the value in quotes: "would stay as it is: ..."
  std::string_view hint_forbidden;  ///< what can be done about it
};

/// All known ones.
std::vector<std::string> options_of(const DirectiveSyntax& syntax);
bool needs_value(const DirectiveSyntax& syntax, std::string_view option);

/// One option after the other: a later one of the same name takes the place of the earlier one, and `false`
/// takes it away.
class DirectiveMerger {
 public:
  /// All arguments but `below`, over which the others go, outlive this.
  DirectiveMerger(const DirectiveSyntax& syntax,
                  const std::function<std::string(const config::Text&)>& resolve, Diagnostics& diagnostics,
                  std::vector<Directive> below = {})
      : syntax_(syntax), resolve_(resolve), diagnostics_(diagnostics), options_(std::move(below)) {}

  /// A name or a value that the command could take for something else, and an option that nlaunch sets
  /// itself, are errors at their place.
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
