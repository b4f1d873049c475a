#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "preflight/observations.h"

namespace nlaunch::preflight {

/// Bus ids are compared by their ends: profiles write the domain with four digits, NVML with eight.
bool same_bus(std::string_view shorter, std::string_view longer);

/// A GPU of the plan, as `nlaunch-probe gpu-health` describes it (src/probe/nvml/health.cpp).
struct GpuState {
  std::string name;        ///< "GPU 1 (00000009:01:00.0)", as the plan counts
  std::uint16_t number{};  ///< of the node, as the plan counts
  nlohmann::json said;

  /// False where the fact is absent, too.
  [[nodiscard]] bool is(const char* fact) const { return said.value(fact, false); }
  template <class Value>
  [[nodiscard]] std::optional<Value> get(const char* fact) const {
    const auto found = said.find(fact);
    return found == said.end() ? std::nullopt : std::optional(found->get<Value>());
  }
};

/// The GPUs of the plan on this node, in the plan's order: other GPUs may belong to other users and are not
/// reported. For a MIG device, its GPU cannot be determined: all GPUs in MIG mode are included. Empty if
/// there is no answer.
std::vector<GpuState> gpu_states(const NodeObservations& observations);

/// The whole answer; null if the question was not asked or not answered.
const nlohmann::json* gpu_health_answer(const NodeObservations& observations);

/// Rows of all GPUs, or `fine` if there is no problem.
std::vector<Row> judge_gpus(const std::vector<GpuState>& gpus,
                            void (*judge)(const GpuState&, std::vector<Row>&), Row fine);

}  // namespace nlaunch::preflight
