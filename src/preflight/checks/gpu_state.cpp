#include "preflight/checks/gpu_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

bool stands_for(const plan::BoundGpu& bound, const json& gpu) {
  if (bound.uuid.starts_with("MIG-")) return gpu.value("mig", json::object()).value("current", false);
  const auto bus_id = gpu.value("bus_id", "");
  return (!bound.uuid.empty() && bound.uuid == gpu.value("uuid", "")) ||
         (!bound.bus_id.empty() && same_bus(bound.bus_id, bus_id));
}

}  // namespace

bool same_bus(std::string_view shorter, std::string_view longer) {
  return text::lower(longer).ends_with(text::lower(shorter));
}

const json* gpu_health_answer(const NodeObservations& observations) {
  const auto* answer = observations.answer("gpu-health");
  return answer != nullptr && answer->said.is_object() && answer->said.contains("gpus") ? &answer->said
                                                                                        : nullptr;
}

std::vector<GpuState> gpu_states(const NodeObservations& observations) {
  std::vector<GpuState> out;
  const auto* answer = gpu_health_answer(observations);
  if (answer == nullptr) return out;
  std::vector<bool> taken(answer->at("gpus").size());
  for (std::size_t number = 0; number < observations.node.gpus.size(); ++number) {
    for (std::size_t i = 0; i < taken.size(); ++i) {
      const auto& gpu = answer->at("gpus")[i];
      if (taken[i] || !stands_for(observations.node.gpus[number], gpu)) continue;
      taken[i] = true;
      out.push_back({fmt::format("GPU {} ({})", number, gpu.value("bus_id", "")),
                     static_cast<std::uint16_t>(number), gpu});
    }
  }
  return out;
}

std::vector<Row> judge_gpus(const std::vector<GpuState>& gpus,
                            void (*judge)(const GpuState&, std::vector<Row>&), Row fine) {
  std::vector<Row> rows;
  for (const auto& gpu : gpus) judge(gpu, rows);
  if (rows.empty() && !gpus.empty()) rows.push_back(std::move(fine));
  return rows;
}

}  // namespace nlaunch::preflight
