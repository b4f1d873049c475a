#include "preflight/search/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/backend.h"
#include "preflight/checks.h"
#include "preflight/groups/try_groups.h"
#include "preflight/search/bisect.h"

namespace nlaunch::preflight {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint64_t kLadderBytes = 1U << 20U;

struct Rung {
  const char* name;
  const char* folder;
  const char* layer;  ///< what is new at this rung
  const char* next;   ///< what to check if it fails
  std::vector<GroupTrial> (*groups)(const Observations&);
  const char* absent;  ///< why there are no groups
};

/// Each rank alone: its context, its library, a communicator of one.
std::vector<GroupTrial> each_rank(const Observations& observations) {
  std::vector<GroupTrial> out;
  for (std::size_t rank = 0; rank < observations.ranks.size(); ++rank) {
    const auto backend = usual_backend(observations.ranks[rank].device >= 0);
    if (!traits_of(backend).library.empty() && observations.ranks[rank].library.version.empty()) continue;
    out.push_back({observations.ranks[rank].subject,
                   plan::GroupKind::node,
                   backend,
                   {rank},
                   {kLadderBytes},
                   false,
                   ""});
  }
  return out;
}

std::vector<GroupTrial> each_node(const Observations& observations) {
  std::vector<GroupTrial> out;
  for (const auto& group : observations.groups) {
    if (group.kind != plan::GroupKind::node || group.neighbours || !group.not_run.empty()) continue;
    out.push_back(group);
    out.back().transport = false;
  }
  return out;
}

/// Each node's first group with that of the next node; the last of an odd number has no partner.
std::vector<GroupTrial> two_nodes(const Observations& observations) {
  std::map<std::uint32_t, GroupTrial> by_node;
  for (auto& group : each_node(observations))
    by_node.try_emplace(observations.ranks[group.members.front()].node, group);
  std::vector<GroupTrial> out;
  bool alone = true;
  for (const auto& [node, group] : by_node) {
    if (alone) {
      out.push_back(group);
    } else {
      out.back().name += " and " + group.name;
      out.back().members.insert(out.back().members.end(), group.members.begin(), group.members.end());
    }
    alone = !alone;
  }
  if (!alone) out.pop_back();
  return out;
}

constexpr Rung kRungs[] = {
    {"one GPU", "one-gpu", "the GPU, its driver, CUDA and libnccl alone",
     "see nvidia-smi; the rows of 'gpus' and 'nccl'; CUDA_VISIBLE_DEVICES of the role (nlaunch env)",
     each_rank, "no rank has a library"},
    {"one node", "one-node", "NVLink, PCIe and shared memory between the GPUs of a node",
     "see nvidia-smi topo -m, nvidia-smi nvlink -s; /dev/shm; NCCL_P2P_DISABLE=1 tells P2P from the rest",
     each_node, "no node has two ranks in a group"},
    {"two nodes", "two-nodes", "network cards, libfabric and NCCL's plugin, the switch between two nodes",
     "see the rows of 'transport'; NCCL_SOCKET_IFNAME and NCCL_NET; NCCL_NET=Socket tells the plugin from "
     "the network",
     two_nodes, "there is only one node"},
};
constexpr const char* kAll = "all";
constexpr const char* kAllLayer =
    "all nodes together, the split into roles, weight sync between different libraries";
constexpr const char* kAllNext =
    "see the rows of the group that failed; 'nccl-version' where roles differ; the suspects of the search";

/// Only "fail" and "unknown" rows.
std::vector<Row> troubles(std::vector<Row> rows) {
  std::erase_if(rows,
                [](const Row& row) { return row.status != Status::fail && row.status != Status::unknown; });
  return rows;
}

Row rung_row(const std::string& name, const std::vector<Row>& trouble, const std::string& well,
             const char* layer, const char* next) {
  if (trouble.empty()) return passed("ladder", name, well);
  const auto fails = std::ranges::find(trouble, Status::fail, &Row::status);
  if (fails == trouble.end()) return unknown("ladder", name, trouble.front().value);
  return failed(
      "ladder", name,
      fmt::format("{} {}: {}; new at this rung: {}", fails->check, fails->subject, fails->value, layer),
      "every rung works", {next});
}

/// Problems of the ranks themselves come before what their groups show.
std::vector<Row> judge(const Observations& observations) {
  auto rows = troubles(run_check("identity", observations));
  if (!rows.empty()) return rows;
  return troubles(run_check("collectives", observations));
}

/// Pairs of nodes do not tell which of the two is at fault, unless a row already does.
void search_nodes(sys::Loop& loop, const Examination& request, const Observations& observations,
                  Ladder& ladder) {
  if (std::ranges::any_of(ladder.rows, [](const Row& row) { return !row.hosts.empty(); })) return;
  const auto group = std::ranges::find_if(observations.groups, [&](const GroupTrial& one) {
    return one.not_run.empty() && !one.neighbours && observations.crosses_nodes(one);
  });
  if (group == observations.groups.end()) return;
  auto blank = observations;
  blank.reports.resize(observations.ranks.size());
  const auto index = static_cast<std::size_t>(group - observations.groups.begin());
  auto found = bisect(loop, request, blank, {{index, kLadderBytes}});
  std::ranges::move(found.rows, std::back_inserter(ladder.rows));
  ladder.cancelled = found.cancelled;
}

}  // namespace

Ladder climb_ladder(sys::Loop& loop, const Examination& request, const Observations& observations) {
  Ladder ladder;
  for (const auto& rung : kRungs) {
    auto here = observations_for(request, observations.ranks);
    here.groups = rung.groups(observations);
    if (here.groups.empty()) {
      ladder.rows.push_back(skipped("ladder", rung.name, rung.absent));
      continue;
    }
    request.options.tell(fmt::format("ladder, {}: {} groups", rung.name, here.groups.size()));
    const auto begin = Clock::now();
    const auto cancelled = try_groups(
        loop, request, here, {.folder = request.folder + "/preflight/" + rung.folder, .apart = true});
    if (!cancelled) {
      ladder.rows.push_back(unknown("ladder", rung.name, cancelled.error().first_message()));
      return ladder;
    }
    ladder.cancelled = *cancelled;
    if (ladder.cancelled) return ladder;
    const auto trouble = judge(here);
    const std::chrono::duration<double> took = Clock::now() - begin;
    ladder.rows.push_back(rung_row(
        rung.name, trouble,
        fmt::format("{} of {} groups in {}", here.groups.size(), here.groups.size(), time_text(took.count())),
        rung.layer, rung.next));
    if (trouble.empty()) continue;
    std::ranges::copy(trouble, std::back_inserter(ladder.rows));
    if (rung.groups == two_nodes) search_nodes(loop, request, observations, ladder);
    return ladder;
  }
  ladder.all_well = true;
  return ladder;
}

Row top_rung(const std::vector<Row>& judged, Duration took) {
  return rung_row(
      kAll, troubles(judged),
      fmt::format("the plan's own groups in {}", time_text(std::chrono::duration<double>(took).count())),
      kAllLayer, kAllNext);
}

}  // namespace nlaunch::preflight
