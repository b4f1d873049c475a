#include <algorithm>

#include "probe/nvml/links.h"
#include "probe/nvml/processes.h"
#include "probe/output.h"
#include "probe/question.h"

namespace nlaunch::probe {
namespace {

using nlohmann::json;
using nvml::Device;

struct SramStatus {  // nvmlEccSramErrorStatus_v1_t
  unsigned version;
  unsigned long long aggregate[3], volatile_[3], buckets[5];
  unsigned threshold_exceeded;
};

/// NVML_STRUCT_VERSION.
template <class Struct>
constexpr unsigned version_of(unsigned version) {
  return static_cast<unsigned>(sizeof(Struct)) | version << 24U;
}

template <class Value>
void set(json& gpu, const char* name, const std::optional<Value>& value) {
  if (value) gpu[name] = *value;
}

void add_memory_faults(json& gpu, const nvml::Session& nvml, Device device) {
  constexpr int kUncorrected = 1;
  constexpr int kVolatile = 0;
  unsigned long long errors = 0;
  if (nvml.call<int (*)(Device, int, int, unsigned long long*)>("nvmlDeviceGetTotalEccErrors", device,
                                                                kUncorrected, kVolatile, &errors) == 0)
    gpu["uncorrected_ecc"] = errors;
  SramStatus sram{};
  sram.version = version_of<SramStatus>(1);
  if (nvml.call<int (*)(Device, SramStatus*)>("nvmlDeviceGetSramEccErrorStatus", device, &sram) == 0)
    gpu["sram_threshold"] = sram.threshold_exceeded != 0;
  unsigned corrected = 0;
  unsigned uncorrected = 0;
  unsigned pending = 0;
  unsigned failed = 0;
  if (nvml.call<int (*)(Device, unsigned*, unsigned*, unsigned*, unsigned*)>(
          "nvmlDeviceGetRemappedRows", device, &corrected, &uncorrected, &pending, &failed) == 0)
    gpu["remap"] = {{"pending", pending != 0}, {"failed", failed != 0}, {"uncorrected", uncorrected}};
  if (const auto retired = nvml.number("nvmlDeviceGetRetiredPagesPendingStatus", device))
    gpu["retired_pages_pending"] = *retired != 0;
}

void add_state(json& gpu, const nvml::Session& nvml, Device device) {
  constexpr unsigned kRecoveryAction = 230;  // NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
  std::vector<nvml::Field> fields{{kRecoveryAction}};
  nvml::read_fields(nvml, device, fields);
  set(gpu, "recovery_action", fields[0].value);
  using Mask = unsigned long long;
  auto reasons = nvml.number<Mask>("nvmlDeviceGetCurrentClocksEventReasons", device);
  if (!reasons) reasons = nvml.number<Mask>("nvmlDeviceGetCurrentClocksThrottleReasons", device);
  set(gpu, "clocks_event_reasons", reasons);
}

void add_mode(json& gpu, const nvml::Session& nvml, Device device) {
  unsigned current = 0;
  unsigned pending = 0;
  if (nvml.call<int (*)(Device, unsigned*, unsigned*)>("nvmlDeviceGetMigMode", device, &current, &pending) ==
      0)
    gpu["mig"] = {{"current", current != 0}, {"pending", pending != 0}};
  set(gpu, "compute_mode", nvml.number("nvmlDeviceGetComputeMode", device));
  if (const auto persistence = nvml.number("nvmlDeviceGetPersistenceMode", device))
    gpu["persistence"] = *persistence != 0;
  json pcie = json::object();
  set(pcie, "width", nvml.number("nvmlDeviceGetCurrPcieLinkWidth", device));
  set(pcie, "max_width", nvml.number("nvmlDeviceGetMaxPcieLinkWidth", device));
  set(pcie, "generation", nvml.number("nvmlDeviceGetCurrPcieLinkGeneration", device));
  set(pcie, "max_generation", nvml.number("nvmlDeviceGetMaxPcieLinkGeneration", device));
  if (!pcie.empty()) gpu["pcie"] = std::move(pcie);
}

json examine(const nvml::Session& nvml, Device device) {
  json gpu{{"bus_id", nvml.bus_id(device)},
           {"uuid", nvml.text<Device>("nvmlDeviceGetUUID", device)},
           {"name", nvml.text<Device>("nvmlDeviceGetName", device)}};
  add_memory_faults(gpu, nvml, device);
  add_state(gpu, nvml, device);
  add_mode(gpu, nvml, device);
  add_links(gpu, nvml, device);
  add_processes(gpu, nvml, device);
  return gpu;
}

/// `gpu-health`: the state of the GPUs according to NVML, without a CUDA context, in one NVML session:
///   event "gpu-health"; error (text, if NVML could not be queried, and then nothing else), or
///   driver ("580.95.05"), cuda_driver ("13.0"), cuda_runtime (the probe's own, "" without CUDA),
///   refused [{index, code (nvmlReturn_t), error}]: GPUs that NVML counts but gives no handle for,
///   gpus [{index, bus_id, uuid, name,
///     uncorrected_ecc (volatile: since the driver was loaded), sram_threshold (bool: exceeded),
///     remap {pending, failed, uncorrected (rows)}, retired_pages_pending, recovery_action (nvml.h's number),
///     clocks_event_reasons (mask), mig {current, pending}, compute_mode (nvml.h's number), persistence,
///     pcie {width, max_width, generation, max_generation},
///     links, fabric, c2c (nvml_links.h), memory, processes (nvml_processes.h)}], in order of bus ids.
/// What this NVML, this GPU or this user's permissions do not provide is absent.
json examine_gpu_health(Arguments /*arguments*/) {
  json out{{"event", "gpu-health"}};
  const auto session = nvml::Session::open();
  const auto devices = session ? session->devices() : Result<nvml::Devices>(std::unexpected(session.error()));
  if (!devices) {
    out["error"] = text_of(devices.error());
    return out;
  }
  out["driver"] = session->driver();
  out["cuda_driver"] = session->cuda_driver();
  out["cuda_runtime"] = NLAUNCH_CUDA_VERSION;
  out["refused"] = json::array();
  for (const auto& gpu : devices->refused)
    out["refused"].push_back({{"index", gpu.index}, {"code", gpu.code}, {"error", gpu.error}});
  std::vector<json> gpus;
  for (auto* device : devices->usable) gpus.push_back(examine(*session, device));
  std::ranges::stable_sort(gpus, {}, [](const json& gpu) { return gpu["bus_id"].get<std::string>(); });
  for (std::size_t i = 0; i < gpus.size(); ++i) gpus[i]["index"] = i;
  out["gpus"] = std::move(gpus);
  return out;
}

const Registered<Question> gpu_health_question{{
    .order = 50,
    .name = "gpu-health",
    .what = "the state of the GPUs and the processes that use them, from NVML",
    .answer = examine_gpu_health,
}};

}  // namespace
}  // namespace nlaunch::probe
