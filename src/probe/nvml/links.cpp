#include "probe/nvml/links.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

namespace nlaunch::probe {
namespace {

using nlohmann::json;
using nvml::Device;

// From nvml.h: NVML_FI_DEV_NVLINK_ERROR_DL_* up to Hopper, NVML_FI_DEV_NVLINK_COUNT_* from Blackwell on.
constexpr unsigned kReplay = 161;
constexpr unsigned kRecovery = 162;
constexpr unsigned kCrc = 163;
constexpr unsigned kReceiveErrors = 208;
constexpr unsigned kRecoveryEvents = 215;
constexpr unsigned kC2cLinks = 170;   // NVML_FI_DEV_C2C_LINK_COUNT
constexpr unsigned kC2cStatus = 171;  // NVML_FI_DEV_C2C_LINK_GET_STATUS

struct FabricInfo {  // nvmlGpuFabricInfo_v3_t; version 2 ends before `summary`
  unsigned version;
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
  unsigned health_mask;
  unsigned char summary;
};
static_assert(sizeof(FabricInfo) == 0x28);
constexpr unsigned kFabricV3 = 0x3000028;
constexpr unsigned kFabricV2 = 0x2000024;

std::vector<json> states(const nvml::Session& nvml, Device device) {
  constexpr unsigned kEnough = 72;  // NVML_NVLINK_MAX_LINKS is 18 in CUDA 12.9; the call reports the end
  std::vector<json> links;
  for (unsigned link = 0; link < kEnough; ++link) {
    unsigned active = 0;
    const int error =
        nvml.call<int (*)(Device, unsigned, unsigned*)>("nvmlDeviceGetNvLinkState", device, link, &active);
    if (error == nvml::kMissing || error == nvml::kInvalidArgument) break;
    if (error == nvml::kSuccess) links.push_back({{"link", link}, {"active", active != 0}});
  }
  return links;
}

struct Counter {
  const char* name;
  unsigned id;
};

/// Whether any of these counters exists here.
bool add_counters(std::vector<json>& links, const nvml::Session& nvml, Device device,
                  std::span<const Counter> counters) {
  std::vector<nvml::Field> fields;
  for (const auto& link : links) {
    for (const auto& counter : counters) fields.push_back({counter.id, link["link"].get<unsigned>()});
  }
  nvml::read_fields(nvml, device, fields);
  bool any = false;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!fields[i].value) continue;
    links[i / counters.size()][counters[i % counters.size()].name] = *fields[i].value;
    any = true;
  }
  return any;
}

/// Nothing if this driver or GPU has no fabric.
std::optional<FabricInfo> fabric_of(const nvml::Session& nvml, Device device) {
  FabricInfo info{};
  for (const auto version : {kFabricV3, kFabricV2}) {
    info = {};
    info.version = version;
    if (nvml.call<int (*)(Device, FabricInfo*)>("nvmlDeviceGetGpuFabricInfoV", device, &info) ==
        nvml::kSuccess)
      return info;
  }
  return std::nullopt;
}

void add_fabric(json& gpu, const nvml::Session& nvml, Device device) {
  const auto info = fabric_of(nvml, device);
  if (!info) return;
  gpu["fabric"] = {{"state", info->state}, {"status", info->status}, {"health_mask", info->health_mask}};
  if (info->status != nvml::kSuccess) gpu["fabric"]["status_text"] = nvml.error_text(info->status);
  if (info->version == kFabricV3) gpu["fabric"]["summary"] = info->summary;
}

void add_c2c(json& gpu, const nvml::Session& nvml, Device device) {
  constexpr std::uint64_t kEnough = 64;  // of a number that the driver returns
  std::vector<nvml::Field> count{{kC2cLinks}};
  nvml::read_fields(nvml, device, count);
  const auto links = std::min(count[0].value.value_or(0), kEnough);
  if (links == 0) return;
  std::vector<nvml::Field> status;
  for (unsigned link = 0; link < links; ++link) status.push_back({kC2cStatus, link});
  nvml::read_fields(nvml, device, status);
  gpu["c2c"] = json::array();
  for (const auto& link : status) {
    if (link.value) gpu["c2c"].push_back({{"link", link.scope}, {"active", *link.value != 0}});
  }
}

}  // namespace

std::string nvlink_domain(const nvml::Session& nvml, Device device) {
  constexpr unsigned char kCompleted = 3;  // NVML_GPU_FABRIC_STATE_COMPLETED
  const auto info = fabric_of(nvml, device);
  if (!info || info->state != kCompleted || info->status != nvml::kSuccess) return "";
  if (std::ranges::all_of(info->cluster, [](unsigned char byte) { return byte == 0; })) return "";
  std::string uuid;
  for (const auto byte : info->cluster) {
    constexpr std::size_t kDashes[] = {8, 13, 18, 23};  // in the usual format of a UUID
    if (std::ranges::find(kDashes, uuid.size()) != std::end(kDashes)) uuid += '-';
    uuid += fmt::format("{:02x}", byte);
  }
  return fmt::format("{}.{}", uuid, info->clique);
}

void add_links(json& gpu, const nvml::Session& nvml, Device device) {
  constexpr Counter kToHopper[] = {{"replay", kReplay}, {"recovery", kRecovery}, {"crc", kCrc}};
  constexpr Counter kFromBlackwell[] = {{"crc", kReceiveErrors}, {"recovery", kRecoveryEvents}};
  auto links = states(nvml, device);
  if (!links.empty()) {
    if (!add_counters(links, nvml, device, kToHopper)) add_counters(links, nvml, device, kFromBlackwell);
    gpu["links"] = std::move(links);
  }
  add_fabric(gpu, nvml, device);
  add_c2c(gpu, nvml, device);
}

}  // namespace nlaunch::probe
