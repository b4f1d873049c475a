#pragma once
#include <memory>

#include "lint/script_input.h"

namespace nlaunch::lint {

/// The kinds of files that lint can read, distinguished by name and, in YAML, by key.
enum class FileKind {
  experiment,
  profile,
  beaker,     ///< a Beaker spec
  dotenv,     ///< *.env, .env*
  nccl_conf,  ///< *.conf
  script,     ///< anything else
};
FileKind kind_of(const std::shared_ptr<const SourceFile>& file);

/// The input of a Beaker spec, a .env file, an nccl.conf or a script, which is called as `job` says. Fails if
/// a spec is not YAML.
Result<LintInput> file_input(const std::shared_ptr<const SourceFile>& file, const ScriptJob& job = {});

}  // namespace nlaunch::lint
