#include "plan/bound_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"

namespace nlaunch::plan {
namespace {

using nlohmann::ordered_json;

ordered_json write(const BoundNode& node, const BoundProcess& process) {
  ordered_json env = ordered_json::object();
  for (const auto& [name, value] : process.env) {
    const bool secret = std::ranges::find(node.secret_names, name) != node.secret_names.end();
    env[name] = secret || looks_like_secret(name) ? std::string(kMasked) : node.masker.mask(value);
  }
  auto argv = process.argv;
  for (auto& word : argv) word = node.masker.mask(std::move(word));
  auto wrapper = process.wrapper;
  for (auto& word : wrapper) word = node.masker.mask(std::move(word));
  ordered_json out{{"name", process.name}, {"argv", argv},           {"workdir", process.workdir},
                   {"cpus", process.cpus}, {"ports", process.ports}, {"preload", process.preload},
                   {"env", std::move(env)}};
  if (!wrapper.empty()) out["wrapper"] = wrapper;
  if (const auto& python = process.python; !python.path.empty()) {
    out["python"] = {
        {"path", node.masker.mask(python.path)}, {"version", python.version}, {"named", python.named}};
  }
  return out;
}

}  // namespace

ordered_json to_json(const Plan& plan, const BoundNode& node) {
  auto out = stamped<ordered_json>(formats::kBound);
  out["host"] = node.host;
  out["run"] = plan.name;
  out["scratch"] = node.scratch;
  auto& gpus = out["gpus"] = ordered_json::array();
  for (const auto& gpu : node.gpus) {
    gpus.push_back({{"visible", gpu.visible}, {"bus_id", gpu.bus_id}, {"uuid", gpu.uuid}});
    if (gpu.numa) gpus.back()["numa"] = *gpu.numa;
    if (!gpu.nics.empty()) gpus.back()["nics"] = gpu.nics;
  }
  auto& libraries = out["libraries"] = ordered_json::object();
  for (const auto& [name, library] : node.libraries) {
    libraries[name] = {{"path", library.path}, {"version", library.version}};
  }
  out["secrets"] = node.secret_names;
  out["dropped"] = node.dropped;
  out["notes"] = node.notes;
  auto& processes = out["processes"] = ordered_json::array();
  for (const auto& process : node.processes) processes.push_back(write(node, process));
  return out;
}

}  // namespace nlaunch::plan
