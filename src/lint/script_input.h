#pragma once
#include <memory>

#include "lint/lint_input.h"

namespace nlaunch::lint {

/// What a shell script sets, loads and starts, in the order in which it stands there. Values are followed
/// through variables that the script itself gives a constant.
LintInput script_input(const std::shared_ptr<const SourceFile>& file);

/// NAME=VALUE lines: a .env file (quotes are taken off, `export` may stand in front), or an nccl.conf
/// (nothing is taken off: NCCL takes the line as it is).
enum class Lines { dotenv, nccl_conf };
LintInput lines_scene(const std::shared_ptr<const SourceFile>& file, Lines kind);

}  // namespace nlaunch::lint
