#include "launch/machine.h"

#include <sys/utsname.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "sys/command.h"
#include "sys/spawn.h"

namespace nlaunch::launch {
namespace {

using nlohmann::json;

constexpr Duration kProbeDeadline = std::chrono::seconds(30);

/// The last JSON line that the probe prints for `arguments`.
Result<json> ask(const std::string& probe, const std::vector<std::string>& arguments) {
  sys::SpawnRequest request;
  request.argv = {probe};
  request.argv.insert(request.argv.end(), arguments.begin(), arguments.end());
  request.env = sys::own_environment();
  const auto result = sys::run_command(std::move(request), kProbeDeadline);
  if (!result) return std::unexpected(result.error());
  if (result->timed_out) {
    return failure("launch.probe", "nlaunch-probe {} did not answer within {}", arguments[0],
                   format_duration(kProbeDeadline));
  }
  const auto lines = text::split(text::trim(result->out), '\n');
  auto said = json::parse(lines.back(), nullptr, false);
  if (!said.is_object()) {
    return failure("launch.probe", "nlaunch-probe {} {}: {}", arguments[0], result->status.str(),
                   text::trim(result->err));
  }
  return said;
}

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
  const auto facts = ask(probe, {"facts"});
  if (!facts) return std::unexpected(facts.error());
  Machine machine{facts->value("hostname", ""),
                  facts->value("arch", ""),
                  facts->value("driver", ""),
                  facts->value("nvml_error", ""),
                  {},
                  facts->dump()};
  for (const auto& gpu : facts->value("gpus", json::array())) {
    machine.gpus.push_back({std::to_string(gpu.value("index", 0)), gpu.value("bus_id", ""),
                            gpu.value("uuid", ""), gpu.value("name", "")});
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
    if (entry == "-1" || entry == "NoDevFiles") break;  // CUDA sees nothing from here on
    if (entry.starts_with("MIG-")) {
      visible.push_back({entry, "", entry});
      continue;
    }
    const auto found = std::ranges::find_if(machine.gpus, [&](const Machine::Gpu& gpu) {
      return gpu.index == entry || (entry.starts_with("GPU-") && gpu.uuid.starts_with(entry));
    });
    if (found == machine.gpus.end()) {
      return failure(
          "launch.visible-devices",
          "CUDA_VISIBLE_DEVICES={} was given to nlaunch, and '{}' is no GPU of this machine, which has {}",
          *cuda_visible_devices, entry, text::count(machine.gpus.size(), "GPU"));
    }
    visible.push_back(bound(*found));
  }
  return visible;
}

std::string library_version(const std::string& probe, const std::string& path) {
  const auto said = ask(probe, {"library", path});
  return said ? said->value("version", "") : "";
}

}  // namespace nlaunch::launch
