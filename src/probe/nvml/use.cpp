#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/json.h"
#include "probe/nvml/session.h"
#include "probe/output.h"
#include "probe/question.h"

namespace nlaunch::probe {
namespace {

using nlohmann::json;
using nvml::Device;

struct Utilization {  // nvmlUtilization_t
  unsigned gpu, memory;
};

json sample(const nvml::Session& nvml, Device device, const std::string& bus_id) {
  constexpr double kMilli = 1e-3;
  json gpu{{"bus_id", bus_id}};
  if (const auto use = nvml.number<Utilization>("nvmlDeviceGetUtilizationRates", device))
    gpu["busy"] = use->gpu;
  if (const auto memory = nvml.number<nvml::Memory>("nvmlDeviceGetMemoryInfo", device)) {
    gpu["memory_used"] = memory->used;
    gpu["memory_total"] = memory->total;
  }
  if (const auto power = nvml.number("nvmlDeviceGetPowerUsage", device)) gpu["power"] = *power * kMilli;
  if (const auto limit = nvml.number("nvmlDeviceGetEnforcedPowerLimit", device))
    gpu["power_limit"] = *limit * kMilli;
  return gpu;
}

/// Writes one line atomically.
bool append(const std::string& file, const json& line) {
  std::ofstream out(file, std::ios::app | std::ios::binary);
  out << json_text(line) + "\n" << std::flush;
  return out.good();
}

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// `gpu-use FILE [SECONDS]`: how busy the GPUs are, until it is killed. Every SECONDS (5) it appends a line
/// to FILE:
///   at (Unix time, seconds), gpus [{bus_id, busy (percent of the last sampling period of NVML in which a
///   kernel ran; a kernel that waits for another rank counts), memory_used and memory_total (bytes), power
///   (watts), power_limit (watts)}]
/// What this NVML or this GPU does not provide is absent. Exits with 1 if there is nothing to sample: the
/// file then has one line, error.
int sample_gpu_use(Arguments arguments) {
  constexpr double kEvery = 5;
  const auto& file = arguments[0];
  const double seconds = arguments.size() > 1 ? std::stod(arguments[1]) : kEvery;
  const auto session = nvml::Session::open();
  const auto devices = session ? session->devices() : Result<nvml::Devices>(std::unexpected(session.error()));
  if (!devices) {
    append(file, {{"error", text_of(devices.error())}});
    return 1;
  }
  std::vector<std::pair<Device, std::string>> gpus;
  for (auto* device : devices->usable) gpus.emplace_back(device, session->bus_id(device));
  for (;;) {
    json line{{"at", unix_time()}, {"gpus", json::array()}};
    for (const auto& [device, bus_id] : gpus) line["gpus"].push_back(sample(*session, device, bus_id));
    if (!append(file, line)) return 1;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
}

const Registered<Question> gpu_use_question{{
    .order = 60,
    .name = "gpu-use",
    .arguments = "FILE [SECONDS]",
    .what = "GPU utilization: one line in FILE every 5 s, until it is killed",
    .at_least = 1,
    .run = sample_gpu_use,
}};

}  // namespace
}  // namespace nlaunch::probe
