#include "launch/run_dir/device_map.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "sys/files.h"

namespace nlaunch::launch {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::uint64_t kLargestDeviceMap = 1U << 30U;

ordered_json devices_of(const plan::Plan& plan, const plan::Process& process, const json& node) {
  auto devices = ordered_json::array();
  for (const auto gpu : plan::gpus_in_reach(plan, process)) {
    const auto& of = node.at("gpus").at(gpu);
    devices.push_back({{"bus_id", of.at("bus_id")}, {"uuid", of.at("uuid")}});
  }
  return devices;
}

/// By index into Plan::processes.
using Entries = std::map<std::size_t, ordered_json>;

void add_node(const plan::Plan& plan, const json& node, Entries& entries) {
  std::map<std::string, const json*> bound;
  for (const auto& process : node.at("processes")) bound[process.at("name")] = &process;
  for (std::size_t i = 0; i < plan.processes.size(); ++i) {
    const auto& process = plan.processes[i];
    const auto name = plan.name_of(process);
    const auto found = bound.find(name);
    if (found == bound.end()) continue;
    entries[i] = {{"process", name},
                  {"host", node.at("host")},
                  {"rank", process.rank},
                  {"local_rank", process.local_rank},
                  {"CUDA_VISIBLE_DEVICES", found->second->at("env").value("CUDA_VISIBLE_DEVICES", "")},
                  {"devices", devices_of(plan, process, node)}};
  }
}

}  // namespace

ordered_json device_map(const plan::Plan& plan, const std::string& attempt) {
  Entries entries;
  auto map = ordered_json::array();
  if (plan.node.cpu_slots) return map;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(attempt, ignored)) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with("bound.") || !name.ends_with(".json")) continue;
    const auto text = sys::read_regular_file(entry.path(), kLargestDeviceMap, sys::Links::refused);
    const auto node = text ? parse_json(*text) : json();
    try {
      add_node(plan, node, entries);
    } catch (const json::exception&) {
      continue;  // from another version, or truncated by a full disk
    }
  }
  for (auto& [process, entry] : entries) map.push_back(std::move(entry));
  return map;
}

}  // namespace nlaunch::launch
