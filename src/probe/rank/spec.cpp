#include "probe/rank/spec.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/backend.h"
#include "base/json.h"
#include "sys/files.h"

namespace nlaunch::probe {
namespace {

using nlohmann::json;

RankSpec read_rank(const json& from) {
  return {from.at("name").get<std::string>(), from.at("device").get<int>(),
          from.at("library").get<std::string>(), from.value("address", "")};
}

Collective op_in(const json& from) {
  return value_of<Collective>(from.at("op").get<std::string>()).value_or(Collective::all_reduce);
}

Workload read_workload(const json& from) {
  Workload out{from.at("name"), {}, from.at("steps"), from.at("warm_up"), from.at("busy")};
  for (const auto& one : from.at("step")) {
    out.step.push_back({op_in(one), one.at("bytes"),
                        value_of<DataType>(one.at("type").get<std::string>()).value_or(DataType::f32),
                        one.at("count")});
  }
  return out;
}

Drill read_drill(const json& from) {
  Drill drill{.name = from.at("name"),
              .bytes = from.at("bytes"),
              .communicators = from.at("communicators"),
              .captured = from.at("captured"),
              .env = from.at("env").get<std::map<std::string, std::string>>(),
              .does = {},
              .deadline = Duration(from.at("deadline_ms").get<Duration::rep>())};
  for (const auto& rank : from.at("does")) {
    auto& launches = drill.does.emplace_back();
    for (const auto& one : rank)
      launches.push_back({one.at("communicator"), one.at("stream"), one.at("part")});
  }
  return drill;
}

GroupSpec read_group(const json& from) {
  GroupSpec group;
  group.name = from.at("name").get<std::string>();
  group.op = op_in(from);
  group.backend = value_of<Backend>(from.at("backend").get<std::string>()).value_or(Backend::nccl);
  group.members = from.at("members").get<std::vector<unsigned>>();
  group.sizes = from.at("sizes").get<std::vector<std::uint64_t>>();
  group.transport = from.value("transport", false);
  for (const auto& workload : from.value("workloads", json::array()))
    group.workloads.push_back(read_workload(workload));
  if (from.contains("drill")) group.drill = read_drill(from.at("drill"));
  return group;
}

Spec read(const json& from) {
  Spec spec;
  spec.folder = from.at("folder").get<std::string>();
  spec.join = Duration(from.at("join_ms").get<Duration::rep>());
  spec.op = Duration(from.at("op_ms").get<Duration::rep>());
  for (const auto& rank : from.at("ranks")) spec.ranks.push_back(read_rank(rank));
  for (const auto& group : from.at("groups")) spec.groups.push_back(read_group(group));
  return spec;
}

}  // namespace

std::size_t Spec::communicator_of(std::size_t group) const {
  const auto same = std::ranges::find_if(groups, [&](const GroupSpec& other) {
    return other.backend == groups[group].backend && other.members == groups[group].members;
  });
  return static_cast<std::size_t>(same - groups.begin());
}

Result<Spec> read_spec(const std::string& path) {
  constexpr std::uint64_t kLimit = 64U << 20U;
  const auto text = sys::read_regular_file(path, kLimit);
  if (!text) return std::unexpected(text.error());
  try {
    return read(parse_json_or_throw(*text));
  } catch (const json::exception& error) {
    return failure("probe.spec", "{} is not a preflight spec: {}", path, error.what());
  }
}

}  // namespace nlaunch::probe
