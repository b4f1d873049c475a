#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

constexpr NodeCheck kNodeChecks[] = {
    {"gpus", check_gpus},     {"nccl", check_libraries}, {"nccl-known-bad", check_deny_list},
    {"limits", check_limits}, {"ports", check_ports},    {"space", check_space},
};

constexpr Check kChecks[] = {
    {"nccl-version", Stage::before, check_versions},  {"identity", Stage::identity, check_identity},
    {"collectives", Stage::after, check_collectives}, {"bandwidth", Stage::after, check_bandwidth},
    {"transport", Stage::after, check_transport},     {"leftovers", Stage::after, check_leftovers},
};

}  // namespace

std::span<const NodeCheck> node_checks() {
  return kNodeChecks;
}

std::span<const Check> checks() {
  return kChecks;
}

}  // namespace nlaunch::preflight
