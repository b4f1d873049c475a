#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "launch/install.h"
#include "plan/bound.h"
#include "plan/plan.h"

/// This machine, as nlaunch-probe sees it without a CUDA context.
namespace nlaunch::launch {

struct Machine {
  std::string host;
  std::string arch;
  std::string driver;      ///< of NVIDIA; empty without one
  std::string nvml_error;  ///< why there are no GPUs to be seen; empty where NVML answered
  struct Gpu {
    std::string index;  ///< in PCI order, as CUDA counts under CUDA_DEVICE_ORDER=PCI_BUS_ID
    std::string bus_id, uuid, name;
    std::string domain{};  ///< of NVLink, where other nodes may be in it: "CLUSTER-UUID.CLIQUE"
  };
  std::vector<Gpu> gpus;
  std::string facts;  ///< the probe's whole line, for who wants more of it; empty where it was not asked
};

/// Name and architecture alone: what can be known at once.
Machine this_host();

/// Asks the probe, which takes NVML a fifth of a second on a machine with GPUs. A probe that cannot be run or
/// hangs is a failure.
Result<Machine> discover(const std::string& probe);

/// The GPUs of the machine that `cuda_visible_devices`, as given to nlaunch, leaves: its entries in their
/// order (numbers, UUIDs or their beginnings, MIG), or all in PCI order where it is not set. An entry that
/// fits no GPU is an error. Each is shown to processes by number, a MIG device by its UUID.
Result<std::vector<plan::BoundGpu>> visible_gpus(const Machine& machine,
                                                 const std::string* cuda_visible_devices);

/// The version of the libnccl in a file, by the probe; empty where it cannot be loaded here.
std::string library_version(const std::string& probe, const std::string& path);

/// The machine, asked for once and only when somebody needs to know.
class MachineSource {
 public:
  explicit MachineSource(Install install) : install_(std::move(install)) {}
  Result<Machine> get();
  /// As far as a plan needs it, or as it is known already: one that uses no GPU does not wait for NVML.
  Result<Machine> get_for(const plan::Plan& plan);
  [[nodiscard]] const Install& install() const { return install_; }

 private:
  Install install_;
  std::optional<Result<Machine>> machine_;
};

}  // namespace nlaunch::launch
