#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

constexpr NodeCheck kNodeChecks[] = {
    {"gpus", "the GPUs that NVML shows are those that the plan counts on, with the site's bus ids",
     check_gpus},
    {"gpu-health", "no GPU has memory errors, waits for a reset, or is slowed down by its hardware",
     check_gpu_health},
    {"nvlink", "the links between the GPUs are up, and the GPUs are registered with the NVSwitch fabric",
     check_nvlink},
    {"gpu-mode",
     "MIG, compute mode and PCIe width are fit for the run; the driver is new enough for the probe",
     check_gpu_mode},
    {"gpu-processes", "nobody holds a GPU before the run starts", check_gpu_processes},
    {"kernel-log", "the kernel has reported no fault of a GPU or an NVSwitch in the last 24 hours",
     check_kernel_log},
    {"shared-memory", "no program that has ended has left its buffers in /dev/shm", check_shared_memory},
    {"container", "each role's container starts, and has its GPUs and the files that the role preloads",
     check_container},
    {"nccl", "which libnccl each role loads, and whether its version will do", check_libraries},
    {"nccl-known-bad", "releases of NCCL that are known to hang or to damage data", check_deny_list},
    {"nics",
     "the network adapters of the site are there, with a driver, with links that are up and equally fast",
     check_nics},
    {"fabric", "each role's libfabric offers the site's provider, and the NICs let the job in", check_fabric},
    {"names",
     "the leader's address, and this host's own name, are not loopback or a container's bridge, and of the "
     "site's interface",
     check_names},
    {"interpreter", "each role's Python starts without torch and CUDA, and its torch suits the driver",
     check_interpreter},
    {"torch", "torch, imported, has the NCCL that the role is set up for (deep)", check_torch},
    {"limits",
     "locked memory, open files, processes and shared memory suffice; userfaultfd where it is asked for",
     check_limits},
    {"ports", "the ports of the plan are free", check_ports},
    {"space", "the run's folders have room, and a small file is written there in time", check_space},
    {"copies", "bytes arrive as they were sent between GPUs and with the host, and how fast (deep)",
     check_copies, copy_figures},
    {"gemm", "bf16 matrix products on all GPUs at once have the same bits every time (deep)", check_gemm,
     gemm_figures},
};

constexpr Check kChecks[] = {
    {"nccl-version", "the ranks of a group load one version of NCCL", Stage::before, check_versions},
    {"clock", "the nodes' clocks agree: 50 ms apart is a warning, 2 s a failure", Stage::before, check_clock},
    {"gemm-agreement", "the matrix product has the same bits on all GPUs of a model (deep)", Stage::before,
     check_agreement},
    {"identity", "no two ranks have one GPU, and CUDA and NVML agree which it is", Stage::identity,
     check_identity},
    {"collectives", "every group completes, with the right numbers", Stage::after, check_collectives},
    {"bandwidth", "the all-reduce of a group reaches what the site expects", Stage::after, check_bandwidth},
    {"slow-node", "no node's group takes much longer than those of most nodes", Stage::after,
     check_slow_node},
    {"transport", "a group goes over the transport that the site expects, and not over TCP in silence",
     Stage::after, check_transport},
    {"leftovers", "no probe is left that a driver holds, and that may hold a GPU", Stage::after,
     check_leftovers},
    {"peers", "no GPU and no link is far slower than the others of its kind", Stage::measured, check_peers},
};

}  // namespace

std::span<const NodeCheck> node_checks() {
  return kNodeChecks;
}

std::span<const Check> checks() {
  return kChecks;
}

}  // namespace nlaunch::preflight
