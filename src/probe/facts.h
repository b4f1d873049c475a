#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace nlaunch::probe {

/// Who this host is to NCCL, which takes two ranks for neighbours when this text is equal.
struct HostIdentity {
  std::string id;
  std::string source;  ///< "NCCL_HOSTID", or "hostname and boot id"
};
HostIdentity host_identity();

/// `facts`: what can be known of this machine without a CUDA context, as one object:
///   event "facts"; hostname, boot_id, host_id, host_id_source, arch, kernel;
///   driver, cuda_driver ("13.0"), gpus [{index, bus_id, uuid, name, memory_total, memory_used}],
///   gpu_errors [text], nvml_error (text, where NVML could not be asked; gpus is then empty), no_driver
///   (bool, with nvml_error: because there is no driver here, and not because it fails); limits {memlock,
///   nofile, nproc, core (null: unlimited), shm_size, shm_free (bytes), userfaultfd ("all", "user mode",
///   "none": what this user may open)}.
nlohmann::json machine_facts();

/// `version`: what was built in; null for what was not.
///   {"event":"version","nlaunch":"0.1.0","cuda":"13.0","nccl_header":"2.28.9","gloo":"0.5.0","libfabric":"1.17"}
nlohmann::json built_in();

}  // namespace nlaunch::probe
