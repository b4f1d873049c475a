#pragma once
#include <vector>

#include "lint/rule.h"

namespace nlaunch::lint {

/// Removes findings that a comment in one of the `files` suppresses, with a reason:
///   export NCCL_PROTO=Simple  # nlaunch: allow forced-protocol: the switch's firmware damages LL128
/// on the line itself or alone on the line before, or for the whole file with `allow-file`. A suppression
/// without a reason, or of an unknown rule, has no effect and is itself a finding.
std::vector<Finding> silence(std::vector<Finding> findings,
                             const std::vector<std::shared_ptr<const SourceFile>>& files);

}  // namespace nlaunch::lint
