#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "launch/install.h"
#include "plan/bound.h"
#include "plan/plan.h"

/// This machine, as nlaunch-probe reports it without a CUDA context.
namespace nlaunch::launch {

struct Machine {
  std::string host;
  std::string arch;
  std::string driver;      ///< the NVIDIA driver; empty if there is none
  std::string nvml_error;  ///< why no GPUs are visible; empty if NVML answered
  struct Gpu {
    std::string index;  ///< in PCI order, as CUDA counts under CUDA_DEVICE_ORDER=PCI_BUS_ID
    std::string bus_id, uuid, name;
    std::string domain{};  ///< the NVLink domain, if other nodes can be in it: "CLUSTER-UUID.CLIQUE"
  };
  std::vector<Gpu> gpus;
  std::string facts;  ///< the probe's complete output line, for callers that need more of it; empty if the
                      ///< probe was not run
};

/// Only the name and architecture, which are known immediately.
Machine this_host();

/// Runs the probe, whose NVML part takes a fifth of a second on a machine with GPUs. A probe that cannot be
/// run or hangs is a failure.
Result<Machine> discover(const std::string& probe);

/// The GPUs of the machine that `cuda_visible_devices`, as given to nlaunch, selects: its entries in their
/// order (numbers, UUIDs or UUID prefixes, MIG), or all in PCI order if it is not set. An entry that matches
/// no GPU is an error. Processes get each GPU by number, a MIG device by its UUID.
Result<std::vector<plan::BoundGpu>> visible_gpus(const Machine& machine,
                                                 const std::string* cuda_visible_devices);

/// The version of a libnccl file, according to the probe; empty if it cannot be loaded here.
std::string library_version(const std::string& probe, const std::string& path);

/// The machine, discovered once and only when it is needed.
class MachineSource {
 public:
  explicit MachineSource(Install install) : install_(std::move(install)) {}
  Result<Machine> get();
  /// Only what a plan needs, or what is known already: a plan without GPUs does not wait for NVML.
  Result<Machine> get_for(const plan::Plan& plan);
  [[nodiscard]] const Install& install() const { return install_; }

 private:
  Install install_;
  std::optional<Result<Machine>> machine_;
};

}  // namespace nlaunch::launch
