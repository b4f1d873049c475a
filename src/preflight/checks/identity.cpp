#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/registry.h"
#include "preflight/checks.h"
#include "preflight/groups/group_outcome.h"

namespace nlaunch::preflight {
namespace {

std::string place_of_identity(const Identity& identity) {
  return fmt::format("{} {}", identity.bus_id, identity.uuid);
}

std::string device_of_identity(const Identity& identity) {
  return fmt::format("device {} of CUDA_VISIBLE_DEVICES={}", identity.device,
                     identity.visible_devices.empty() ? "(not set)" : identity.visible_devices);
}

/// One rank that NCCL would consider a duplicate of an earlier one: same host, same bus id. The cause decides
/// who can help.
Row judge_double(const Observations& observations, std::size_t first, std::size_t second) {
  const auto& one = *observations.reports[first].identity;
  const auto& two = *observations.reports[second].identity;
  const auto& a = observations.ranks[first].subject;
  const auto& b = observations.ranks[second].subject;
  const bool one_node = observations.ranks[first].node == observations.ranks[second].node;
  if (!one_node) {
    return failed("identity", b,
                  fmt::format("two hosts look like one: {} on node {} and {} on node {} both report host "
                              "'{}' (from {}) and bus id {}",
                              a, observations.ranks[first].node, b, observations.ranks[second].node,
                              one.host_id, one.host_id_source, one.bus_id),
                  "a different host identity on each node",
                  one.host_id_source == "NCCL_HOSTID"
                      ? Remedy{"do not set NCCL_HOSTID to the same value on all nodes"}
                      : Remedy{"give each container its host's name, or set NCCL_HOSTID to a different value "
                               "on each node"});
  }
  if (one.uuid != two.uuid) {
    return failed("identity", b,
                  fmt::format("same bus id but different UUIDs: {} and {} both report {}, with {} and {}", a,
                              b, one.bus_id, one.uuid, two.uuid),
                  "a different bus id for each GPU, with its PCI domain",
                  {"NCCL before 2.30 refuses this (\"Duplicate GPU detected\"): for MIG slices give each "
                   "rank its own GPU; otherwise use NCCL 2.30.7 or later, and report the node",
                   Responsible::admin});
  }
  return failed("identity", b,
                fmt::format("two ranks were given the same GPU: {} ({}) and {} ({}) both have {}", a,
                            device_of_identity(one), b, device_of_identity(two), place_of_identity(one)),
                "one GPU per rank",
                {"give each process its own GPU; check for CUDA_VISIBLE_DEVICES in an env: block, and for a "
                 "sitecustomize.py that uses CUDA before the role selects its device"});
}

/// The UUIDs of CUDA and NVML for one bus id; MIG slices have a different one by design.
bool uuids_disagree(const Identity& identity) {
  return !identity.nvml_uuid.empty() && identity.uuid != identity.nvml_uuid &&
         identity.visible_devices.find("MIG-") == std::string::npos;
}

/// What no two ranks may share, and which rank has it: a GPU of a node by its UUID, a bus id on what NCCL
/// considers one host.
class Owners {
 public:
  /// The rank that had it before, or nothing.
  std::optional<std::size_t> take(std::uint32_t node, const Identity& identity, std::size_t rank) {
    const auto [by_uuid, new_uuid] = uuids_.try_emplace({node, identity.uuid}, rank);
    const auto [by_bus, new_bus] = buses_.try_emplace({identity.host_id, identity.bus_id}, rank);
    if (new_uuid && new_bus) return std::nullopt;
    return std::min(by_uuid->second, by_bus->second);
  }

 private:
  std::map<std::pair<std::uint32_t, std::string>, std::size_t> uuids_;
  std::map<std::pair<std::string, std::string>, std::size_t> buses_;
};

/// In the plan, at the same time or one after the other, and here.
bool have_one_gpu(const Observations& observations, std::size_t a, std::size_t b) {
  const auto& one = observations.ranks[a];
  const auto& two = observations.ranks[b];
  return one.node == two.node && one.gpu == two.gpu &&
         observations.reports[a].identity->uuid == observations.reports[b].identity->uuid;
}

Row judge_identity(const Observations& observations, std::size_t index, Owners& owners) {
  const auto& identity = *observations.reports[index].identity;
  const auto owner = owners.take(observations.ranks[index].node, identity, index);
  if (owner && !have_one_gpu(observations, *owner, index)) {
    auto row = judge_double(observations, *owner, index);
    row.hosts = observations.hosts_of({*owner, index});
    return row;
  }
  if (uuids_disagree(identity)) {
    return failed("identity", observations.ranks[index].subject,
                  fmt::format("CUDA reports {} at {}, NVML reports {}", identity.uuid, identity.bus_id,
                              identity.nvml_uuid),
                  "one GPU per bus id", {"report the node", Responsible::admin});
  }
  return passed("identity", observations.ranks[index].subject, place_of_identity(identity));
}

/// For groups that are tried separately, only the members have one.
bool has_probe(const Observations& observations, std::size_t rank) {
  if (!observations.ranks[rank].no_probe.empty()) return false;
  return !observations.apart || std::ranges::any_of(observations.groups, [&](const GroupTrial& group) {
    return std::ranges::find(group.members, rank) != group.members.end();
  });
}

/// A rank that did not identify itself: broken, or never started.
Row judge_absent(const Observations& observations, std::size_t index,
                 const std::vector<std::size_t>& arrived) {
  const auto& subject = observations.ranks[index].subject;
  const auto& report = observations.reports[index];
  const auto told =
      std::ranges::find_if(report.errors, [](const ProbeError& error) { return error.kind != "deadline"; });
  if (told != report.errors.end() && told->kind == "unavailable")
    return unknown("identity", subject, told->text);
  if (told != report.errors.end()) {
    return failed("identity", subject, told->text, "a GPU that this role can use",
                  {"check whether another process holds the GPU, and whether CUDA_VISIBLE_DEVICES lists it"});
  }
  if (!report.end.empty()) {
    return failed("identity", subject, "its probe " + report.end, "a probe that can use its GPU",
                  {"see its .err file in the preflight directory"});
  }
  return failed("identity", subject, did_not_join(observations, {index}, arrived), "all ranks",
                {"its GPU or driver does not respond: report the node", Responsible::admin});
}

std::vector<Row> check_identity(const Observations& observations) {
  if (observations.reports.empty()) return {};
  std::vector<std::size_t> arrived;
  for (std::size_t i = 0; i < observations.reports.size(); ++i) {
    if (observations.reports[i].identity) arrived.push_back(i);
  }
  std::vector<Row> rows;
  // If some are missing because another failed first, only the cause is reported.
  const bool cause = std::ranges::any_of(observations.reports, [](const RankReport& report) {
    return !report.identity && (!report.end.empty() || !report.errors.empty());
  });
  Owners owners;
  const auto add = [&](std::size_t rank, Row row) {
    if (row.hosts.empty()) row.hosts = observations.hosts_of({rank});
    rows.push_back(std::move(row));
  };
  for (std::size_t i = 0; i < observations.reports.size(); ++i) {
    const auto& report = observations.reports[i];
    if (report.identity && !report.identity->bus_id.empty()) add(i, judge_identity(observations, i, owners));
    const bool told = !report.end.empty() || !report.errors.empty();
    if (!report.identity && (told || !cause) && has_probe(observations, i))
      add(i, judge_absent(observations, i, arrived));
  }
  if (rows.empty())
    rows.push_back(skipped("identity", "this machine", "the ranks use CPU slots: they have no GPU"));
  return rows;
}

const Registered<Check> identity_check{{
    .order = 40,
    .name = "identity",
    .what = "no two ranks have the same GPU at the same time, and CUDA and NVML agree on which it is",
    .stage = Stage::identity,
    .judge = check_identity,
}};

}  // namespace
}  // namespace nlaunch::preflight
