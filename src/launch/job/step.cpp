#include "launch/job/step.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "launch/machine.h"
#include "sys/files.h"
#include "sys/spawn.h"

namespace nlaunch::launch {

using nlohmann::json;

std::filesystem::path step_file(const RunPaths& paths) {
  return paths.attempt / "step.json";
}

Result<void> write_step(const Step& step, const std::filesystem::path& path) {
  const json out{{"plan", step.plan},     {"addresses", step.addresses},  {"port", step.port},
                 {"token", step.token},   {"nodes", step.nodes},          {"fan_out", step.fan_out},
                 {"relays", step.relays}, {"relay_port", step.relay_port}};
  return sys::write_file_atomically(path, json_text(out, 1) + "\n");
}

Result<Step> read_step(const std::filesystem::path& path) {
  constexpr std::uint64_t kLimit = 64U << 20U;  // names of many nodes
  const auto text = sys::read_regular_file(path, kLimit);
  if (!text) return std::unexpected(text.error());
  try {
    const auto from = parse_json_or_throw(*text);
    Step step;
    from.at("plan").get_to(step.plan);
    from.at("addresses").get_to(step.addresses);
    from.at("port").get_to(step.port);
    from.at("token").get_to(step.token);
    from.at("nodes").get_to(step.nodes);
    from.at("fan_out").get_to(step.fan_out);
    from.at("relays").get_to(step.relays);
    from.at("relay_port").get_to(step.relay_port);
    return step;
  } catch (const json::exception& error) {
    return failure("launch.step", "cannot read '{}': {}", path.string(), error.what());
  }
}

std::optional<std::filesystem::path> common_file(const RunPaths& paths, const std::string& name) {
  constexpr std::array<std::string_view, 4> kOfAttempt{"nodes.json", "preflight.json", "audit.json",
                                                       "preflight/spec.json"};
  if (name == "summary.json") return paths.folder / name;
  if (std::ranges::find(kOfAttempt, name) != kOfAttempt.end()) return paths.attempt / name;
  const auto parts = text::split(name, '/');
  const bool of_role = parts.size() == 2 && (parts[0] == "env" || parts[0] == "addrs");
  const bool of_probes = parts.size() == 3 && parts[0] == "preflight" && parts[2] == "spec.json";
  const bool within = parts.size() > 1 && !parts[1].empty() && parts[1] != "." && parts[1] != "..";
  if ((of_role || of_probes) && within) return paths.attempt / name;
  return std::nullopt;
}

std::string node_name(const std::vector<std::string>& environment) {
  const auto name = sys::env_value(environment, "SLURMD_NODENAME");
  return name.empty() ? this_host().host : std::string(name);
}

}  // namespace nlaunch::launch
