#pragma once
#include <vector>

#include "lint/rule.h"

namespace nlaunch::lint {

/// Leaves out what a comment in one of the `files` silences, with a reason:
///   export NCCL_PROTO=Simple  # nlaunch: allow forced-protocol: the switch's firmware damages LL128
/// on the line itself or alone on the line before, or for the whole file with `allow-file`. A silence without
/// a reason, or of a rule that is not there, silences nothing and is itself found.
std::vector<Finding> silence(std::vector<Finding> findings,
                             const std::vector<std::shared_ptr<const SourceFile>>& files);

}  // namespace nlaunch::lint
