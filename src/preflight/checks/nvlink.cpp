#include <fmt/format.h>

#include <algorithm>

#include "base/registry.h"
#include "base/text.h"
#include "preflight/checks.h"
#include "preflight/checks/gpu_state.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;
constexpr auto kNvlink = "nvlink";

/// nvmlGpuFabricState_t.
constexpr int kFabricNone = 0;
constexpr int kFabricReady = 3;

int fabric_state(const GpuState& gpu) {
  return gpu.said.value("fabric", json::object()).value("state", kFabricNone);
}

struct GpuLinks {
  std::size_t all = 0;
  std::vector<std::string> down;  ///< numbers
  std::uint64_t crc = 0;
  std::uint64_t replay = 0;
  std::uint64_t recovery = 0;

  [[nodiscard]] std::size_t up() const { return all - down.size(); }
};

GpuLinks links_of(const GpuState& gpu) {
  GpuLinks out;
  for (const auto& link : gpu.said.value("links", json::array())) {
    ++out.all;
    if (!link.value("active", false)) out.down.push_back(fmt::format("{}", link.value("link", 0)));
    out.crc += link.value("crc", std::uint64_t{0});
    out.replay += link.value("replay", std::uint64_t{0});
    out.recovery += link.value("recovery", std::uint64_t{0});
  }
  return out;
}

/// How many links a GPU must have up. Boards differ in how many they use, so the links that are up on the
/// others show it; if GPUs are joined by bridges, the others show little.
struct ExpectedLinks {
  std::size_t up = 0;    ///< the most that any GPU has
  bool certain = false;  ///< every link of the board is in use
};

ExpectedLinks expected_links(const std::vector<GpuState>& gpus) {
  ExpectedLinks out;
  for (const auto& gpu : gpus) {
    const auto links = links_of(gpu);
    out.up = std::max(out.up, links.up());
    out.certain |= links.all > 0 && links.down.empty();
    // Every link of a GPU goes to a switch there.
    if (fabric_state(gpu) == kFabricReady) out.up = std::max(out.up, links.all);
    out.certain |= fabric_state(gpu) == kFabricReady;
  }
  return out;
}

void judge_links(const GpuState& gpu, const ExpectedLinks& expected, std::vector<Row>& rows) {
  const auto links = links_of(gpu);
  if (links.up() < expected.up) {
    // A GPU that no bridge joins to the others has none at all.
    const bool certain = expected.certain && links.up() > 0;
    const auto which =
        links.down.size() == 1 ? "link " + links.down.front() : "links " + text::join(links.down, ", ");
    auto row =
        failed(kNvlink, gpu.name, fmt::format("{} of {} links up: {} down", links.up(), links.all, which),
               fmt::format("{} links up", expected.up),
               {"reset the GPUs (nvidia-smi --gpu-reset) or reboot the node; if a link stays down, report it",
                Responsible::admin});
    if (!certain) row.status = Status::warn;
    rows.push_back(std::move(row));
  }
  if (links.recovery > 0) {
    rows.push_back(warned(kNvlink, gpu.name,
                          fmt::format("its links had to be brought up again {} since the driver was loaded",
                                      text::count(links.recovery, "time")),
                          "links that stay up",
                          {"watch whether the number grows; if so, report the node", Responsible::admin}));
  }
}

/// A field of nvmlGpuFabricInfo_v3_t::healthMask (nvml.h, NVML_GPU_FABRIC_HEALTH_MASK_*).
unsigned bit_field(unsigned mask, unsigned shift, unsigned width) {
  return mask >> shift & width;
}

/// What its health mask and summary report; empty: no problem.
struct FabricHealth {
  std::string fault;
  std::string cost;
};

FabricHealth fabric_health(const json& fabric) {
  constexpr unsigned kTrue = 1;
  constexpr unsigned kConfigurationFine = 1;
  constexpr int kUnhealthy = 2;
  constexpr int kLimited = 3;
  const auto mask = fabric.value("health_mask", 0U);
  const auto summary = fabric.value("summary", 0);
  if (bit_field(mask, 4, 3) == kTrue) return {"its routes through the NVSwitches are unhealthy", ""};
  if (bit_field(mask, 8, 15) > kConfigurationFine) return {"the fabric is misconfigured for it", ""};
  if (summary == kUnhealthy) return {"it is unhealthy", ""};
  if (bit_field(mask, 0, 3) == kTrue) return {"", "its bandwidth is degraded"};
  if (bit_field(mask, 2, 3) == kTrue) return {"", "its routes are being recovered"};
  if (bit_field(mask, 6, 3) == kTrue) return {"", "it is recovering from an access that timed out"};
  if (summary == kLimited) return {"", "its capacity is limited"};
  return {};
}

void judge_fabric_state(const GpuState& gpu, std::vector<Row>& rows) {
  constexpr auto kExpected = "registered with the NVSwitch fabric, and healthy";
  const Remedy manager{"check systemctl status nvidia-fabricmanager (on NVL72 machines also nvidia-imex)",
                       Responsible::admin};
  const auto fabric = gpu.said.value("fabric", json::object());
  const auto state = fabric_state(gpu);
  if (state == kFabricNone) return;
  if (state != kFabricReady) {
    const auto* value = state == 1 ? "its registration has not started: CUDA cannot be used (error 802)"
                                   : "its registration is in progress: CUDA cannot be used yet (error 802)";
    rows.push_back(failed(kNvlink, gpu.name, value, kExpected, manager));
    return;
  }
  if (fabric.value("status", 0) != 0) {
    rows.push_back(failed(kNvlink, gpu.name,
                          fmt::format("its registration failed: {}", fabric.value("status_text", "")),
                          kExpected, manager));
    return;
  }
  const auto health = fabric_health(fabric);
  if (!health.fault.empty()) {
    rows.push_back(failed(kNvlink, gpu.name, "NVSwitch fabric: " + health.fault, kExpected, manager));
  } else if (!health.cost.empty()) {
    rows.push_back(warned(kNvlink, gpu.name, "NVSwitch fabric: " + health.cost, kExpected, manager));
  }
}

void judge_c2c(const GpuState& gpu, std::vector<Row>& rows) {
  const auto links = gpu.said.value("c2c", json::array());
  const auto down =
      std::ranges::count_if(links, [](const json& link) { return !link.value("active", false); });
  if (down == 0) return;
  rows.push_back(failed(kNvlink, gpu.name, fmt::format("{} of {} links to its CPU down", down, links.size()),
                        "all up", {"reboot the node; if a link stays down, report it", Responsible::admin}));
}

std::string links_text(const std::vector<GpuState>& gpus) {
  const auto links = links_of(gpus.front());
  std::string out = fmt::format("{} of {} links up on each", links.up(), links.all);
  std::uint64_t corrected = 0;
  for (const auto& gpu : gpus) corrected += links_of(gpu).crc + links_of(gpu).replay;
  if (corrected > 0)
    out += fmt::format(", {} since the driver was loaded", text::count(corrected, "corrected error"));
  if (fabric_state(gpus.front()) == kFabricReady) out += ", NVSwitch fabric ready";
  if (gpus.front().said.contains("c2c"))
    out += fmt::format(", {} links to the CPU up", gpus.front().said["c2c"].size());
  return out;
}

std::vector<Row> check_nvlink(const NodeObservations& observations) {
  const auto gpus = gpu_states(observations);
  if (gpus.empty()) return {};
  const auto expected = expected_links(gpus);
  std::vector<Row> rows;
  for (const auto& gpu : gpus) {
    if (gpus.size() > 1) judge_links(gpu, expected, rows);
    judge_fabric_state(gpu, rows);
    judge_c2c(gpu, rows);
  }
  if (!rows.empty()) return rows;
  const auto subject = text::count(gpus.size(), "GPU");
  if (links_of(gpus.front()).all == 0) return {skipped(kNvlink, subject, "no NVLink here")};
  return {passed(kNvlink, subject, links_text(gpus))};
}

const Registered<NodeCheck> nvlink_check{{
    .order = 30,
    .name = kNvlink,
    .what = "the links between the GPUs are up, and the GPUs are registered with the NVSwitch fabric",
    .judge = check_nvlink,
}};

}  // namespace
}  // namespace nlaunch::preflight
