#include "config/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nlaunch::config {
namespace {

constexpr std::array<std::string_view, 13> kReserved{
    "LD_PRELOAD",  "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "RANK",       "WORLD_SIZE",
    "LOCAL_RANK",  "LOCAL_WORLD_SIZE",     "NODE_RANK",         "GROUP_RANK", "NNODES",
    "MASTER_ADDR", "MASTER_PORT",          "NLAUNCH_RUN_DIR"};

}  // namespace

bool is_experiment_name(std::string_view name) {
  constexpr std::size_t kLongest = 100;
  constexpr std::string_view kLettersAndDigits =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  return !name.empty() && name.size() <= kLongest && name.front() != '-' && name.front() != '.' &&
         std::ranges::all_of(
             name, [&](char c) { return kLettersAndDigits.contains(c) || c == '_' || c == '-' || c == '.'; });
}

bool is_reserved_variable(std::string_view name) {
  return std::ranges::find(kReserved, name) != kReserved.end();
}

std::string reserved_reason(std::string_view name) {
  if (name == "LD_PRELOAD") return "LD_PRELOAD is not set through an environment: use `preload:` of the role";
  return fmt::format("{} is set by nlaunch for each process", name);
}

}  // namespace nlaunch::config
