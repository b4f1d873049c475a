#include "bench/environments.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "sys/files.h"

namespace nlaunch::bench {
namespace {

constexpr std::string_view kUnset = "(unset)";

std::set<std::pair<std::string, std::string>> names(const std::vector<Environments>& arms) {
  std::set<std::pair<std::string, std::string>> out;
  for (const auto& arm : arms) {
    for (const auto& [role, environment] : arm) {
      for (const auto& [name, value] : environment) out.emplace(role, name);
    }
  }
  return out;
}

std::string value_in(const Environments& arm, const std::string& role, const std::string& name) {
  const auto environment = arm.find(role);
  if (environment == arm.end()) return std::string(kUnset);
  const auto value = environment->second.find(name);
  return value == environment->second.end() ? std::string(kUnset) : value->second;
}

/// Each arm has its own directory, ports and scratch directory, whatever is compared; on several nodes it is
/// a step of Slurm's.
bool own_of_each_arm(const std::string& name) {
  constexpr const char* kOwn[] = {"NLAUNCH_",       "MASTER_PORT",      "NCCL_RAS_ADDR",
                                  "TORCH_FR_DUMP_", "SLURM_STEP",       "TORCH_NCCL_DEBUG_INFO_",
                                  "SLURM_TASK_PID", "SLURM_SRUN_COMM_", "TORCHELASTIC_ERROR_FILE"};
  return std::ranges::any_of(kOwn, [&](const char* own) { return name.starts_with(own); });
}

/// The variables of a process; values that are not strings are left out.
std::map<std::string, std::string> variables_of(const nlohmann::json& process) {
  std::map<std::string, std::string> out;
  if (!process.is_object() || !process.contains("env") || !process["env"].is_object()) return out;
  for (const auto& [name, value] : process["env"].items()) {
    if (value.is_string()) out[name] = value.get<std::string>();
  }
  return out;
}

}  // namespace

Environments read_environments(const std::filesystem::path& attempt) {
  constexpr std::uint64_t kLargest = 64U << 20U;
  Environments out;
  for (const auto& file : sys::names_in(attempt)) {
    if (!file.starts_with("bound.")) continue;
    const auto bound =
        parse_json(sys::read_regular_file(attempt / file, kLargest, sys::Links::refused).value_or(""));
    if (!bound.is_object() || !bound.contains("processes")) continue;
    for (const auto& process : bound["processes"]) {
      if (!process.is_object() || !process.contains("name") || !process["name"].is_string()) continue;
      const auto name = process["name"].get<std::string>();
      out.try_emplace(name.substr(0, name.rfind('.')), variables_of(process));
    }
  }
  return out;
}

Environments without_folder(Environments environments, const std::filesystem::path& run) {
  const std::pair<std::string, std::string_view> names[] = {{run.string(), "${run.dir}"},
                                                            {run.filename().string(), "${run.id}"}};
  for (auto& [role, variables] : environments) {
    for (auto& [name, value] : variables) {
      for (const auto& [own, reference] : names) {
        for (auto at = value.find(own); at != std::string::npos; at = value.find(own, at + reference.size()))
          value.replace(at, own.size(), reference);
      }
    }
  }
  return environments;
}

std::vector<Difference> differences(const std::vector<Environments>& arms) {
  std::vector<Difference> out;
  for (const auto& [role, name] : names(arms)) {
    if (own_of_each_arm(name)) continue;
    Difference one{role, name, {}};
    for (const auto& arm : arms) {
      if (!arm.empty()) one.values.push_back(value_in(arm, role, name));
    }
    if (std::ranges::adjacent_find(one.values, std::not_equal_to()) == one.values.end()) continue;
    one.values.clear();
    for (const auto& arm : arms) one.values.push_back(value_in(arm, role, name));
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace nlaunch::bench
