#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lint/lint_input.h"
#include "shell/recorder.h"

namespace nlaunch::lint {

/// Options of the `sbatch` that submits a script: they take precedence over its directives.
struct SbatchOptions {
  shell::Words words{};
  SourceSpan span{};  ///< of that command
};

/// A script as sbatch reads it: its directives, with long option names, and its comments. It does not run.
LintInput script_input(const std::shared_ptr<const SourceFile>& file, const SbatchOptions& options = {});

/// The same, with what bash did: the distinct environments of the programs that do the work, steps, modules,
/// and secrets in the arguments of commands. A value that contains something from the simulated job is known
/// only when the script runs. `allocation`, `path`: those of the recording.
LintInput script_input(const std::shared_ptr<const SourceFile>& file, const shell::Recording& recording,
                       const shell::Allocation& allocation, const std::string& path,
                       const SbatchOptions& options = {});

/// The job that the directives request.
shell::Allocation allocation_of(const LintInput& input);

/// How to call a script for recording.
struct ScriptJob {
  std::vector<std::string> arguments{};
  std::vector<std::string> variables{};                       ///< "NAME=VALUE"
  std::optional<unsigned> nodes{};                            ///< nullopt: as in the directives
  std::optional<unsigned> gpus{};                             ///< of each node
  std::vector<std::string> existing{};                        ///< as in RecordRequest
  std::vector<std::pair<std::string, std::string>> prints{};  ///< likewise
  SbatchOptions options{};
};

/// Records a script and makes its input. The input tells what could not be recorded; it always has the
/// directives.
LintInput recorded_script(const std::shared_ptr<const SourceFile>& file, const ScriptJob& job);

/// NAME=VALUE lines: a .env file (quotes are removed, `export` may precede), or an nccl.conf (nothing is
/// removed: NCCL uses the line verbatim).
enum class Lines { dotenv, nccl_conf };
LintInput lines_scene(const std::shared_ptr<const SourceFile>& file, Lines kind);

}  // namespace nlaunch::lint
