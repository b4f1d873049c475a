#pragma once
#include <nlohmann/json_fwd.hpp>

namespace nlaunch::probe {

/// `gpu-health`: what NVML says of the state of the GPUs, without a CUDA context, in one NVML session:
///   event "gpu-health"; error (text, where NVML could not be asked, and then nothing else), or
///   driver ("580.95.05"), cuda_driver ("13.0"), cuda_runtime (the probe's own, "" without CUDA),
///   refused [{index, code (nvmlReturn_t), error}]: GPUs that NVML counts and does not hand out,
///   gpus [{index, bus_id, uuid, name,
///     uncorrected_ecc (volatile: since the driver was loaded), sram_threshold (bool: exceeded),
///     remap {pending, failed, uncorrected (rows)}, retired_pages_pending, recovery_action (nvml.h's number),
///     clocks_event_reasons (mask), mig {current, pending}, compute_mode (nvml.h's number), persistence,
///     pcie {width, max_width, generation, max_generation},
///     links, fabric, c2c (nvml_links.h), memory, processes (nvml_processes.h)}], in order of bus ids.
/// What this NVML, this GPU or this user's rights do not give is absent.
nlohmann::json examine_gpu_health();

}  // namespace nlaunch::probe
