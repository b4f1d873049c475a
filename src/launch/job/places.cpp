#include "launch/job/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "plan/together.h"
#include "sys/command.h"
#include "sys/spawn.h"

namespace nlaunch::launch {
namespace {

/// A step takes a second; a large one, or one that waits for another step, somewhat longer.
constexpr Duration kPatience = std::chrono::minutes(2);
constexpr std::size_t kLongestAnswer = 64U << 20U;

constexpr std::string_view kAddress = "SLURM_TOPOLOGY_ADDR";
constexpr std::string_view kPattern = "SLURM_TOPOLOGY_ADDR_PATTERN";

/// What Slurm says of the parts of an address of this kind: "switch", "block".
std::string part_of_address(const std::vector<std::string>& environment, std::string_view kind) {
  const auto kinds = text::split(sys::env_value(environment, kPattern), '.');
  const auto names = text::split(sys::env_value(environment, kAddress), '.');
  std::vector<std::string> found;
  for (std::size_t i = 0; i < std::min(kinds.size(), names.size()); ++i) {
    if (kinds[i] == kind) found.push_back(names[i]);
  }
  return text::join(found, ".");
}

}  // namespace

Place place_of(const std::vector<std::string>& environment, const Machine& machine) {
  Place place{"", part_of_address(environment, "switch")};
  if (!machine.gpus.empty()) place.domain = machine.gpus.front().domain;
  const bool split =
      std::ranges::any_of(machine.gpus, [&](const Machine::Gpu& gpu) { return gpu.domain != place.domain; });
  if (split) place.domain.clear();
  if (place.domain.empty()) place.domain = part_of_address(environment, "block");
  return place;
}

std::string place_line(const std::string& node, const Place& place) {
  const nlohmann::json line{{"node", node}, {"domain", place.domain}, {"switch", place.at_switch}};
  return json_text(line) + "\n";
}

Places parse_places(std::string_view output) {
  Places places;
  for (const auto& line : text::split(output, '\n')) {
    if (!line.starts_with('{')) continue;
    try {
      const auto read = parse_json_or_throw(line);
      places[read.at("node").get<std::string>()] = {read.at("domain").get<std::string>(),
                                                    read.at("switch").get<std::string>()};
    } catch (const nlohmann::json::exception&) {
      continue;  // some other program's line
    }
  }
  return places;
}

bool needs_places(const plan::Plan& plan, const std::vector<std::string>& environment) {
  if (plan.node.count < 2) return false;
  const auto kept = plan::kept_together(plan);
  if (std::ranges::any_of(kept, [](const auto& unit) { return !unit.origin.empty(); })) return true;
  const auto pattern = sys::env_value(environment, kPattern);
  return pattern.contains("switch.") || pattern.contains("block.") || plan.topology.slurm ||
         plan.topology.switch_nodes || plan.topology.domain_nodes.value_or(0) > 1;
}

namespace {

Result<Answered> ask(const plan::Plan& plan, const Allocation& allocation,
                     const std::vector<std::string>& nodes, const std::vector<std::string>& environment) {
  sys::SpawnRequest request;
  request.argv = srun_command(plan, allocation, nodes, {find_install().program, "agent", "--where"});
  request.env = srun_environment(environment);
  const auto said = sys::run_command(std::move(request), kPatience, kLongestAnswer);
  if (!said) return std::unexpected(said.error());
  Answered answered{parse_places(said->out)};
  const auto words = text::trim(said->err);
  if (answered.places.size() < nodes.size())
    answered.trouble = fmt::format(
        "{} of {} reported where they are: srun {}{}", answered.places.size(),
        text::count(nodes.size(), "node"),
        said->timed_out ? fmt::format("took longer than {}", format_duration(kPatience)) : said->status.str(),
        words.empty() ? "" : fmt::format(": {}", text::printable(words)));
  if (answered.places.empty()) return failure("launch.places", "{}", answered.trouble);
  return answered;
}

}  // namespace

Result<Answered> ask_places(const plan::Plan& plan, const Allocation& allocation,
                            const std::set<std::string>& out, const std::vector<std::string>& environment) {
  std::vector<std::string> nodes;
  std::ranges::copy_if(allocation.nodes, std::back_inserter(nodes),
                       [&](const auto& node) { return !out.contains(node); });
  auto all = ask(plan, allocation, nodes, environment);
  const auto fewer = all ? std::nullopt : first_nodes(plan, allocation, out);
  if (!fewer || fewer->size() == nodes.size()) return all;
  return ask(plan, allocation, *fewer, environment);
}

}  // namespace nlaunch::launch
