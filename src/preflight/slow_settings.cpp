#include "preflight/slow_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nlaunch::preflight {
namespace {

constexpr std::string_view kSlow[] = {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL",     "NCCL_SHM_DISABLE",
                                      "NCCL_PROTO",       "NCCL_ALGO",          "NCCL_NET",
                                      "NCCL_IB_DISABLE",  "NCCL_NET_GDR_LEVEL", "NCCL_MAX_NCHANNELS",
                                      "NCCL_MAX_CTAS",    "NCCL_BUFFSIZE",      "NCCL_NVLS_ENABLE",
                                      "NCCL_NTHREADS",    "NCCL_LAUNCH_MODE",   "CUDA_LAUNCH_BLOCKING"};

}  // namespace

std::vector<std::string> slow_settings(const plan::BoundProcess& process) {
  std::vector<std::string> found;
  for (const auto& [name, value] : process.env) {
    if (std::ranges::find(kSlow, name) != std::end(kSlow)) found.push_back(fmt::format("{}={}", name, value));
  }
  return found;
}

std::string slow_settings(const Observations& observations, const GroupTrial& group) {
  std::vector<std::string> found;
  for (const auto index : group.members) {
    const auto& rank = observations.ranks[index];
    for (const auto& setting : rank.slow) {
      auto line = fmt::format("{} is set for {}", setting, observations.role_of(rank).name);
      if (std::ranges::find(found, line) == found.end()) found.push_back(std::move(line));
    }
  }
  return text::join(found, "; ");
}

}  // namespace nlaunch::preflight
