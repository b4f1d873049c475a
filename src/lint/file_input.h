#pragma once
#include <memory>

#include "lint/script_input.h"

namespace nlaunch::lint {

/// The files that lint can read, told apart by their names and, in YAML, by their keys.
enum class FileKind {
  experiment,
  profile,
  beaker,     ///< a Beaker spec
  dotenv,     ///< *.env, .env*
  nccl_conf,  ///< *.conf
  script,     ///< anything else
};
FileKind kind_of(const std::shared_ptr<const SourceFile>& file);

/// The input of a Beaker spec, a .env file, an nccl.conf or a script, which is called as `job` says. A
/// failure is a spec that is no YAML.
Result<LintInput> file_input(const std::shared_ptr<const SourceFile>& file, const ScriptJob& job = {});

}  // namespace nlaunch::lint
