#include "config/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nlaunch::config {
namespace {

// Must match what launch/bind/own_environment.cpp sets.
constexpr std::array<std::string_view, 4> kOfAll{"LD_PRELOAD", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
                                                 "NLAUNCH_RUN_DIR"};
constexpr std::array<std::string_view, 4> kOfRendezvous{"MASTER_ADDR", "MASTER_PORT", "NNODES", "NODE_RANK"};
constexpr std::array<std::string_view, 5> kOfRank{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                                  "GROUP_RANK"};

}  // namespace

bool is_experiment_name(std::string_view name) {
  constexpr std::size_t kLongest = 100;
  constexpr std::string_view kLettersAndDigits =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  return !name.empty() && name.size() <= kLongest && name.front() != '-' && name.front() != '.' &&
         std::ranges::all_of(
             name, [&](char c) { return kLettersAndDigits.contains(c) || c == '_' || c == '-' || c == '.'; });
}

bool is_reserved_variable(std::string_view name, ProcessTraits of) {
  const auto is_in = [&](const auto& names) { return std::ranges::find(names, name) != names.end(); };
  return is_in(kOfAll) || (of.rendezvous && is_in(kOfRendezvous)) ||
         (of.rendezvous && of.is_rank && is_in(kOfRank));
}

std::string reserved_reason(std::string_view name) {
  if (name == "LD_PRELOAD") return "LD_PRELOAD cannot be set in an environment: use the role's `preload:`";
  return fmt::format("{} is set by nlaunch for each process", name);
}

std::string reserved_hint(std::string_view name) {
  if (name == "LD_PRELOAD") {
    return "remove it here, and write `preload: [NAME]` in the role, for a library of the site profile: "
           "`libraries: {NAME: {path: /opt/x/libx.so}}`";
  }
  if (name == "CUDA_VISIBLE_DEVICES") {
    return "remove it here: each process gets as many GPUs as `gpus` of its role says; to use only some of "
           "this "
           "machine's, set it where you call nlaunch";
  }
  return "remove it here";
}

}  // namespace nlaunch::config
