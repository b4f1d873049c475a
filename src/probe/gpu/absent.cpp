#include <nlohmann/json.hpp>

#include "probe/gpu/measurements.h"
#include "probe/gpu/rank.h"

namespace nlaunch::probe {
namespace {

constexpr const char* kNoCuda = "this nlaunch-probe was built without CUDA: it cannot use a GPU";

}  // namespace

Result<std::unique_ptr<GpuRank>> open_gpu_rank(int /*device*/, const std::string& /*library*/) {
  return failure("probe.unavailable", "{}", kNoCuda);
}

nlohmann::json measure_copies(std::span<const std::string> /*arguments*/) {
  return {{"event", "copies"}, {"error", kNoCuda}};
}

nlohmann::json measure_gemm(std::span<const std::string> /*arguments*/) {
  return {{"event", "gemm"}, {"error", kNoCuda}};
}

}  // namespace nlaunch::probe
