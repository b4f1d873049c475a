#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "preflight/checks.h"
#include "preflight/gpu_state.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;
constexpr auto kCheck = "gpu-health";

Remedy reset() {
  return {
      "reset the GPU while nobody uses it (nvidia-smi --gpu-reset), or reboot the node; if it comes "
      "back, have the GPU replaced",
      Responsible::admin};
}
Remedy replace() {
  return {"take the node out of service and have the GPU replaced", Responsible::admin};
}

/// The driver itself says that nothing has to be done (nvml.h, NVML_GPU_RECOVERY_ACTION_NONE).
bool recovered(const GpuState& gpu) {
  return gpu.get<unsigned>("recovery_action") == 0U;
}

void judge_ecc(const GpuState& gpu, std::vector<Row>& rows) {
  const auto errors = gpu.get<std::uint64_t>("uncorrected_ecc").value_or(0);
  if (errors > 0) {
    auto row =
        failed(kCheck, gpu.name,
               fmt::format("{} since the driver was loaded", text::count(errors, "uncorrected ECC error")),
               "none", reset());
    if (recovered(gpu)) {
      row.status = Status::warn;
      row.value += "; the driver asks for no recovery";
    }
    rows.push_back(std::move(row));
  }
  if (gpu.is("sram_threshold")) {
    rows.push_back(failed(kCheck, gpu.name, "more uncorrected errors in its SRAM than NVIDIA accepts",
                          "fewer than the threshold", replace()));
  }
}

/// NVIDIA's "GPU Memory Error Management": a row is remapped at the next reset; there are spare rows for 512.
void judge_rows(const GpuState& gpu, std::vector<Row>& rows) {
  const auto remap = gpu.said.value("remap", json::object());
  if (remap.value("failed", false)) {
    rows.push_back(failed(kCheck, gpu.name, "a bad row of its memory could not be remapped", "rows remapped",
                          replace()));
  }
  if (remap.value("pending", false)) {
    rows.push_back(
        failed(kCheck, gpu.name, "bad rows of its memory wait to be remapped", "none that wait", reset()));
  }
  if (gpu.is("retired_pages_pending")) {
    rows.push_back(
        failed(kCheck, gpu.name, "bad pages of its memory wait to be retired", "none that wait", reset()));
  }
}

/// nvmlDeviceGpuRecoveryAction_t.
std::string recovery_text(unsigned action) {
  constexpr const char* kActions[] = {"no recovery",
                                      "a reset of the GPU",
                                      "a reboot of the node",
                                      "an end of all traffic between GPUs",
                                      "an end of what runs there, and then a reset of the GPU",
                                      "a recovery of the IMEX domain",
                                      "a reset of its bus",
                                      "a reboot of the system"};
  return action < std::size(kActions) ? kActions[action] : fmt::format("recovery action {}", action);
}

void judge_recovery(const GpuState& gpu, std::vector<Row>& rows) {
  const auto action = gpu.get<unsigned>("recovery_action").value_or(0);
  const bool told = std::ranges::any_of(
      rows, [&](const Row& row) { return row.subject == gpu.name && row.status == Status::fail; });
  if (action == 0 || told) return;
  rows.push_back(failed(kCheck, gpu.name, fmt::format("its driver asks for {}", recovery_text(action)),
                        "a GPU that needs no recovery", {"do what the driver asks for", Responsible::admin}));
}

/// The three that the hardware decides (nvml.h, nvmlClocksEventReason*). A software power cap is how a GPU
/// under load works.
void judge_clocks(const GpuState& gpu, std::vector<Row>& rows) {
  constexpr std::uint64_t kSlowdown = 0x8;
  constexpr std::uint64_t kThermal = 0x40;
  constexpr std::uint64_t kPowerBrake = 0x80;
  const auto reasons = gpu.get<std::uint64_t>("clocks_event_reasons").value_or(0);
  if ((reasons & (kSlowdown | kThermal | kPowerBrake)) == 0) return;
  const bool hot = (reasons & kThermal) != 0;
  const bool braked = (reasons & kPowerBrake) != 0;
  const auto* why = hot && braked ? "it is too hot, and the node's power supply asks for it"
                    : hot         ? "it is too hot"
                    : braked      ? "the node's power supply asks for it"
                                  : "it is too hot or draws too much power";
  rows.push_back(warned(kCheck, gpu.name, fmt::format("its hardware slows it down: {}", why), "full clocks",
                        {"report the node: look at its cooling and its power supply", Responsible::admin}));
}

void judge(const GpuState& gpu, std::vector<Row>& rows) {
  judge_ecc(gpu, rows);
  judge_rows(gpu, rows);
  judge_recovery(gpu, rows);
  judge_clocks(gpu, rows);
}

/// A GPU that NVML counts and does not hand out. One that a container or a job may not use is none of ours.
void judge_refused(const json& gpu, std::vector<Row>& rows) {
  constexpr int kNoPermission = 4;            // nvmlReturn_t
  constexpr int kOperatingSystem = 17;        // "blocked by the operating system/cgroups"
  constexpr int kFaults[] = {8, 11, 15, 16};  // no power, no interrupts, lost, reset required
  const auto code = gpu.value("code", 0);
  if (code == kNoPermission || code == kOperatingSystem) return;
  const auto subject = fmt::format("GPU {} of NVML", gpu.value("index", 0U));
  const auto error = gpu.value("error", "");
  rows.push_back(std::ranges::find(kFaults, code) == std::end(kFaults)
                     ? unknown(kCheck, subject, error)
                     : failed(kCheck, subject, error, "a GPU that answers", reset()));
}

/// What was looked at: a GPU or an NVML that does not know it cannot be found at fault.
std::string looked_at(const std::vector<GpuState>& gpus) {
  constexpr std::pair<const char*, const char*> kFacts[] = {{"uncorrected_ecc", "no uncorrected ECC error"},
                                                            {"remap", "no row to be remapped"},
                                                            {"recovery_action", "no recovery asked for"},
                                                            {"clocks_event_reasons", "no slowdown"}};
  std::string out;
  for (const auto& [fact, said] : kFacts) {
    const bool known =
        std::ranges::all_of(gpus, [name = fact](const GpuState& gpu) { return gpu.said.contains(name); });
    if (known) out += fmt::format("{}{}", out.empty() ? "" : ", ", said);
  }
  return out.empty() ? "NVML knows nothing of their health" : out;
}

}  // namespace

std::vector<Row> check_gpu_health(const NodeObservations& observations) {
  const auto* answer = observations.answer("gpu-health");
  if (answer == nullptr) return {};
  if (const auto* said = gpu_health_answer(observations)) {
    const auto gpus = gpu_states(observations);
    auto rows = judge_gpus(gpus, judge, passed(kCheck, text::count(gpus.size(), "GPU"), looked_at(gpus)));
    for (const auto& gpu : said->value("refused", json::array())) judge_refused(gpu, rows);
    return rows;
  }
  const auto error = answer->said.is_object() ? answer->said.value("error", "") : answer->error;
  return {unknown(kCheck, "state, links, modes and processes of the GPUs", error)};
}

}  // namespace nlaunch::preflight
