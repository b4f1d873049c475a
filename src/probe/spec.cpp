#include "probe/spec.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sys/files.h"

namespace nlaunch::probe {
namespace {

using nlohmann::json;

RankSpec read_rank(const json& from) {
  return {from.at("name").get<std::string>(), from.at("device").get<int>(),
          from.at("library").get<std::string>(), from.value("address", "")};
}

GroupSpec read_group(const json& from) {
  GroupSpec group;
  group.name = from.at("name").get<std::string>();
  group.op = from.at("op").get<std::string>() == "broadcast" ? Op::broadcast : Op::all_reduce;
  group.backend = from.at("backend").get<std::string>() == "gloo" ? Backend::gloo : Backend::nccl;
  group.members = from.at("members").get<std::vector<unsigned>>();
  group.sizes = from.at("sizes").get<std::vector<std::uint64_t>>();
  group.transport = from.value("transport", false);
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

std::string_view name_of(Op op) {
  return op == Op::broadcast ? "broadcast" : "all_reduce";
}

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
    return read(json::parse(*text));
  } catch (const json::exception& error) {
    return failure("probe.spec", "{} is no preflight spec: {}", path, error.what());
  }
}

}  // namespace nlaunch::probe
