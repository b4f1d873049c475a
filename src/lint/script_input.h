#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lint/lint_input.h"
#include "shell/recorder.h"

namespace nlaunch::lint {

/// A script as sbatch reads it: its directives, with short options written out, and its comments. Nothing of
/// it runs.
LintInput script_input(const std::shared_ptr<const SourceFile>& file);

/// The same, with what bash did of it: an environment for each that the programs which do the work get,
/// steps, modules, and secrets among the words of commands. A value that holds something of the made-up job
/// is known only when the script runs. `allocation`, `path`: with which it was recorded.
LintInput script_input(const std::shared_ptr<const SourceFile>& file, const shell::Recording& recording,
                       const shell::Allocation& allocation, const std::string& path);

/// The job that the directives ask for.
shell::Allocation allocation_of(const LintInput& input);

/// How a script is called, to see what it does.
struct ScriptJob {
  std::vector<std::string> arguments{};
  std::vector<std::string> variables{};  ///< "NAME=VALUE"
  std::optional<unsigned> nodes{};       ///< nothing: as the directives say
  std::optional<unsigned> gpus{};        ///< of each node
};

/// Records a script and makes its input. What cannot be recorded is said in the input: its directives are
/// there in any case.
LintInput recorded_script(const std::shared_ptr<const SourceFile>& file, const ScriptJob& job);

/// NAME=VALUE lines: a .env file (quotes are taken off, `export` may stand in front), or an nccl.conf
/// (nothing is taken off: NCCL takes the line as it is).
enum class Lines { dotenv, nccl_conf };
LintInput lines_scene(const std::shared_ptr<const SourceFile>& file, Lines kind);

}  // namespace nlaunch::lint
