#include "launch/machine.h"

#include <sys/utsname.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "preflight/ask/ask_probe.h"
#include "sys/spawn.h"

namespace nlaunch::launch {
namespace {

using nlohmann::json;

plan::BoundGpu bound(const Machine::Gpu& gpu) {
  return {gpu.index, gpu.bus_id, gpu.uuid};
}

}  // namespace

Machine this_host() {
  utsname names{};
  ::uname(&names);
  return {names.nodename, names.machine, {}, {}, {}, {}};
}

Result<Machine> discover(const std::string& probe) {
  const auto facts = preflight::ask_probe(probe, {"facts"}, sys::own_environment());
  if (!facts) return std::unexpected(facts.error());
  Machine machine{facts->value("hostname", ""),
                  facts->value("arch", ""),
                  facts->value("driver", ""),
                  facts->value("nvml_error", ""),
                  {},
                  json_text(*facts)};
  for (const auto& gpu : facts->value("gpus", json::array())) {
    machine.gpus.push_back({std::to_string(gpu.value("index", 0)), gpu.value("bus_id", ""),
                            gpu.value("uuid", ""), gpu.value("name", ""), gpu.value("domain", "")});
  }
  return machine;
}

Result<std::vector<plan::BoundGpu>> visible_gpus(const Machine& machine,
                                                 const std::string* cuda_visible_devices) {
  std::vector<plan::BoundGpu> visible;
  if (cuda_visible_devices == nullptr) {
    for (const auto& gpu : machine.gpus) visible.push_back(bound(gpu));
    return visible;
  }
  if (text::trim(*cuda_visible_devices).empty()) return visible;
  for (const auto& part : text::split(*cuda_visible_devices, ',')) {
    const std::string entry(text::trim(part));
    if (entry == "-1" || entry == "NoDevFiles") break;  // CUDA ignores everything after this
    if (entry.starts_with("MIG-")) {
      visible.push_back({entry, "", entry});
      continue;
    }
    const auto found = std::ranges::find_if(machine.gpus, [&](const Machine::Gpu& gpu) {
      return gpu.index == entry || (entry.starts_with("GPU-") && gpu.uuid.starts_with(entry));
    });
    if (found == machine.gpus.end()) {
      return failure("launch.visible-devices",
                     "CUDA_VISIBLE_DEVICES={} is set, but '{}' is not a GPU of this machine, which has {}",
                     *cuda_visible_devices, entry, text::count(machine.gpus.size(), "GPU"));
    }
    visible.push_back(bound(*found));
  }
  return visible;
}

std::string library_version(const std::string& probe, const std::string& path) {
  const auto said = preflight::ask_probe(probe, {"library", path}, sys::own_environment());
  return said ? said->value("version", "") : "";
}

Result<Machine> MachineSource::get() {
  if (!machine_) machine_ = discover(install_.probe);
  return *machine_;
}

Result<Machine> MachineSource::get_for(const plan::Plan& plan) {
  const bool asked = machine_ && *machine_;
  const bool uses_gpus = plan.node.gpus > 0 && !plan.node.cpu_slots;
  return asked || uses_gpus ? get() : this_host();
}

}  // namespace nlaunch::launch
