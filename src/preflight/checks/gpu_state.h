#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "preflight/observations.h"

namespace nlaunch::preflight {

/// Bus ids are compared as they end: profiles write the domain with four digits, NVML with eight.
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

/// Those of the plan on this node, in the plan's order: nothing is said of GPUs that others may use. Of a MIG
/// device the GPU that it is on cannot be told: all are meant that are in MIG mode. Empty where there is no
/// answer.
std::vector<GpuState> gpu_states(const NodeObservations& observations);

/// The whole answer; null where the question was not asked, or not answered.
const nlohmann::json* gpu_health_answer(const NodeObservations& observations);

/// Rows of all GPUs, or, where nothing is wrong, `fine`.
std::vector<Row> judge_gpus(const std::vector<GpuState>& gpus,
                            void (*judge)(const GpuState&, std::vector<Row>&), Row fine);

}  // namespace nlaunch::preflight
