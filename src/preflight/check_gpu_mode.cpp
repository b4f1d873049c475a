#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "preflight/checks.h"
#include "preflight/gpu_state.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;
constexpr auto kCheck = "gpu-mode";

/// A plan counts GPUs; slices are for those who were given slices.
void judge_mig(const GpuState& gpu, bool slices, std::vector<Row>& rows) {
  const auto mig = gpu.said.value("mig", json::object());
  const bool on = mig.value("current", false);
  if (on && !slices) {
    rows.push_back(failed(kCheck, gpu.name,
                          "MIG mode is on: programs see slices of it, which NCCL cannot join",
                          "MIG mode off, or MIG devices in CUDA_VISIBLE_DEVICES",
                          {"turn it off while nobody uses the GPU (nvidia-smi -mig 0), or give nlaunch the "
                           "slices by their UUIDs",
                           Responsible::admin}));
  } else if (on != mig.value("pending", on)) {
    rows.push_back(warned(kCheck, gpu.name,
                          fmt::format("MIG mode goes {} at its next reset", on ? "off" : "on"),
                          "a mode that stays", {"ask who has changed it", Responsible::admin}));
  }
}

/// nvmlComputeMode_t.
void judge_compute_mode(const GpuState& gpu, std::vector<Row>& rows) {
  constexpr unsigned kProhibited = 2;
  constexpr unsigned kExclusive = 3;
  const Remedy remedy{"set it back: nvidia-smi --compute-mode=DEFAULT", Responsible::admin};
  const auto mode = gpu.get<unsigned>("compute_mode").value_or(0);
  if (mode == kProhibited) {
    rows.push_back(
        failed(kCheck, gpu.name, "its compute mode lets no program use it (prohibited)", "default", remedy));
  } else if (mode == kExclusive) {
    rows.push_back(warned(kCheck, gpu.name,
                          "its compute mode lets one process use it at a time (exclusive): a second one, as "
                          "of a server with helpers, fails",
                          "default", remedy));
  }
}

/// An idle GPU lowers the generation of its link, never the width. The GPU of a Grace machine has its CPU on
/// another link.
void judge_pcie(const GpuState& gpu, std::vector<Row>& rows) {
  const auto pcie = gpu.said.value("pcie", json::object());
  const auto width = pcie.value("width", 0U);
  const auto full = pcie.value("max_width", 0U);
  if (width == 0 || width >= full || gpu.said.contains("c2c")) return;
  rows.push_back(warned(
      kCheck, gpu.name, fmt::format("PCIe x{}", width), fmt::format("x{}", full),
      {"report the node: its slot or its riser card gives the GPU a part of the lanes", Responsible::admin}));
}

/// Minor releases of one major one go together ("CUDA Compatibility").
void judge_driver(const json& answer, std::vector<Row>& rows) {
  const auto driver = parse_version(answer.value("cuda_driver", ""));
  const auto runtime = parse_version(answer.value("cuda_runtime", ""));
  if (!driver || !runtime || driver->parts.at(0) >= runtime->parts.at(0)) return;
  rows.push_back(
      warned(kCheck, "driver",
             fmt::format("{} is for CUDA {}, and nlaunch-probe was built with CUDA {}: it cannot "
                         "use the GPUs here",
                         answer.value("driver", ""), driver->str(), runtime->str()),
             fmt::format("a driver for CUDA {}", runtime->parts[0]),
             {fmt::format("build nlaunch with CUDA {}, or install a newer driver", driver->parts[0])}));
}

std::string fine(const json& answer, const std::vector<GpuState>& gpus) {
  const auto pcie = gpus.front().said.value("pcie", json::object());
  std::string out = fmt::format("driver {}", answer.value("driver", ""));
  if (pcie.contains("width") && !gpus.front().said.contains("c2c"))
    out += fmt::format(", PCIe x{}", pcie.value("width", 0U));
  const bool sleeps =
      std::ranges::any_of(gpus, [](const GpuState& gpu) { return !gpu.said.value("persistence", true); });
  if (sleeps) out += "; persistence mode is off: who uses an idle GPU waits for it first";
  return out;
}

}  // namespace

std::vector<Row> check_gpu_mode(const NodeObservations& observations) {
  const auto gpus = gpu_states(observations);
  if (gpus.empty()) return {};
  const auto& answer = *gpu_health_answer(observations);
  const bool slices = std::ranges::any_of(
      observations.node.gpus, [](const plan::BoundGpu& gpu) { return gpu.uuid.starts_with("MIG-"); });
  std::vector<Row> rows;
  for (const auto& gpu : gpus) {
    judge_mig(gpu, slices, rows);
    judge_compute_mode(gpu, rows);
    judge_pcie(gpu, rows);
  }
  judge_driver(answer, rows);
  if (rows.empty()) rows.push_back(passed(kCheck, text::count(gpus.size(), "GPU"), fine(answer, gpus)));
  return rows;
}

}  // namespace nlaunch::preflight
