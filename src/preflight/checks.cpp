#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

constexpr NodeCheck kNodeChecks[] = {
    {"gpus", "the GPUs that NVML shows are those that the plan counts on, with the site's bus ids",
     check_gpus},
    {"nccl", "which libnccl each role loads, and whether its version will do", check_libraries},
    {"nccl-known-bad", "releases of NCCL that are known to hang or to damage data", check_deny_list},
    {"limits", "locked memory, open files and shared memory suffice", check_limits},
    {"ports", "the ports of the plan are free", check_ports},
    {"space", "the run directory and the node's own disk have room", check_space},
};

constexpr Check kChecks[] = {
    {"nccl-version", "the ranks of a group load one version of NCCL", Stage::before, check_versions},
    {"identity", "no two ranks have one GPU, and CUDA and NVML agree which it is", Stage::identity,
     check_identity},
    {"collectives", "every group completes, with the right numbers", Stage::after, check_collectives},
    {"bandwidth", "the all-reduce of a group reaches what the site expects", Stage::after, check_bandwidth},
    {"transport", "a group goes over the transport that the site expects, and not over TCP in silence",
     Stage::after, check_transport},
    {"leftovers", "no probe is left that a driver holds, and that may hold a GPU", Stage::after,
     check_leftovers},
};

}  // namespace

std::span<const NodeCheck> node_checks() {
  return kNodeChecks;
}

std::span<const Check> checks() {
  return kChecks;
}

}  // namespace nlaunch::preflight
