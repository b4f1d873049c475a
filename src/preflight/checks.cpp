#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

constexpr Check kChecks[] = {
    {"gpus", Stage::before, check_gpus},
    {"nccl", Stage::before, check_libraries},
    {"nccl-version", Stage::before, check_versions},
    {"nccl-known-bad", Stage::before, check_deny_list},
    {"limits", Stage::before, check_limits},
    {"ports", Stage::before, check_ports},
    {"space", Stage::before, check_space},
    {"identity", Stage::identity, check_identity},
    {"collectives", Stage::after, check_collectives},
    {"bandwidth", Stage::after, check_bandwidth},
    {"transport", Stage::after, check_transport},
    {"leftovers", Stage::after, check_leftovers},
};

}  // namespace

std::span<const Check> checks() {
  return kChecks;
}

}  // namespace nlaunch::preflight
