#include "preflight/groups/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/backend.h"
#include "preflight/groups/expectations.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLatency = 8;
constexpr std::uint64_t kSmall = 1U << 20U;
constexpr std::uint64_t kTensor = 22118400;  // a weight of [1, 2160, 5120] in bf16
constexpr std::uint64_t kLarge = 128U << 20U;
/// Data that LL128 corrupts on GH200 over Slingshot shows at this size and near 1 MiB (NVIDIA/nccl#2001).
constexpr std::uint64_t kLargest = 1U << 30U;

std::string subject_of(const plan::Plan& plan, const plan::BoundNode& node, const plan::Process& process,
                       std::uint16_t gpu) {
  const auto responsible = process.rank >= 0
                               ? fmt::format("{} rank {}", plan.role_of(process).name, process.rank)
                               : plan.name_of(process);
  return fmt::format("{} ({}{} {})", responsible, plan.node.count > 1 ? node.host + " " : "",
                     node.gpus.empty() ? "CPU slot" : "GPU", gpu);
}

/// The CUDA ordinal that the process's program uses: under a torch rendezvous its LOCAL_RANK among the GPUs
/// that it sees; otherwise it sees only its own, and counts from 0.
int device_of(const plan::Role& role, const plan::Process& process, const plan::BoundProcess& bound,
              std::size_t position) {
  if (role.rendezvous != Rendezvous::torch || process.gpus.size() != 1) return static_cast<int>(position);
  int local_rank = static_cast<int>(process.local_rank);
  for (const auto& [name, value] : bound.env) {
    if (name == "LOCAL_RANK") std::from_chars(value.data(), value.data() + value.size(), local_rank);
  }
  return local_rank;
}

using GpuKey = std::pair<std::uint32_t, std::uint16_t>;  // process and GPU

std::map<GpuKey, std::size_t> index_ranks(const std::vector<Rank>& ranks) {
  std::map<GpuKey, std::size_t> index;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    index[{ranks[rank].process, ranks[rank].gpu}] = rank;
  return index;
}

std::map<std::string, std::vector<std::size_t>> by_version(const std::vector<Rank>& ranks,
                                                           const std::vector<std::size_t>& members) {
  std::map<std::string, std::vector<std::size_t>> out;
  for (const auto rank : members) out[ranks[rank].library.version].push_back(rank);
  return out;
}

std::vector<std::uint64_t> sizes_of(const Observations& observations, const GroupTrial& trial) {
  std::vector<std::uint64_t> sizes{kSmall, kLarge};
  if (!trial.neighbours) sizes = {kLatency, kSmall, kTensor, kLarge};
  if (!trial.neighbours && observations.crosses_nodes(trial)) sizes.push_back(kLargest);
  std::erase_if(sizes, [&](auto bytes) { return bytes > traits_of(trial.backend).largest_message; });
  if (trial.neighbours) return sizes;
  for (const auto& expectation : observations.plan.expected.all_reduce_busbw) {
    if (tried_size(expectation) > 0 && fits(expectation, observations, trial))
      sizes.push_back(tried_size(expectation));
  }
  return sizes;
}

void sort_once(std::vector<std::uint64_t>& sizes) {
  std::ranges::sort(sizes);
  const auto [first, last] = std::ranges::unique(sizes);
  sizes.erase(first, last);
}

void add_node_trials(const Observations& observations, const GroupTrial& whole,
                     std::vector<GroupTrial>& trials) {
  const auto versions = by_version(observations.ranks, whole.members);
  const auto& backend = traits_of(whole.backend);
  if (backend.library.empty() || versions.size() == 1) {
    trials.push_back(whole);
    return;
  }
  for (const auto& [version, members] : versions) {
    if (members.size() < 2) continue;
    auto part = whole;
    part.name = fmt::format("{}, {} {}", whole.name, backend.title, version.empty() ? "not found" : version);
    part.members = members;
    trials.push_back(std::move(part));
  }
}

GroupTrial bare_trial(const plan::Group& group, const std::map<GpuKey, std::size_t>& index) {
  GroupTrial trial{group.name, group.kind, group.backend, {}, {}, false, ""};
  for (const auto& member : group.members) trial.members.push_back(index.at({member.process, member.gpu}));
  return trial;
}

void mark_mixed(const std::vector<Rank>& ranks, GroupTrial& trial) {
  const auto& backend = traits_of(trial.backend);
  if (backend.library.empty() || by_version(ranks, trial.members).size() <= 1) return;
  trial.not_run = fmt::format("not run: its ranks load different versions of {}", backend.title);
}

void add_trials(const Observations& observations, const plan::Group& group,
                const std::map<GpuKey, std::size_t>& index, std::vector<GroupTrial>& trials) {
  auto trial = bare_trial(group, index);
  // On one node the group of the node contains all of them.
  if (group.kind == plan::GroupKind::tensor_parallel && !observations.crosses_nodes(trial)) return;
  if (group.kind == plan::GroupKind::node) return add_node_trials(observations, trial, trials);
  mark_mixed(observations.ranks, trial);
  trials.push_back(std::move(trial));
}

/// Why a group cannot be tried at all, for *unknown* rows: found before any probe is started.
void mark_impossible(const std::vector<Rank>& ranks, GroupTrial& trial) {
  if (trial.members.size() < 2) trial.not_run = "not run: a group of one rank has no peer";
  for (const auto rank : trial.members) {
    if (!ranks[rank].no_probe.empty()) trial.not_run = "not run: " + ranks[rank].no_probe;
  }
  const auto library = traits_of(trial.backend).library;
  if (!trial.not_run.empty() || library.empty()) return;
  for (const auto rank : trial.members) {
    if (ranks[rank].library.version.empty()) {
      trial.not_run = fmt::format("not run: no {} found for {}", library, ranks[rank].subject);
    }
  }
}

/// Two groups with the same ranks need one measurement: for example a node filled by the learners.
void mark_repeated(std::vector<GroupTrial>& trials) {
  for (auto trial = trials.begin(); trial != trials.end(); ++trial) {
    const auto first = std::find_if(trials.begin(), trial, [&](const GroupTrial& other) {
      return other.not_run.empty() && other.members == trial->members && other.backend == trial->backend &&
             other.op() == trial->op();
    });
    if (first != trial && trial->not_run.empty()) {
      trial->not_run = fmt::format("not run: the same ranks as '{}'", first->name);
    }
  }
}

/// Groups whose members are not all in a larger group.
std::vector<GroupTrial*> largest_of(std::vector<GroupTrial*> trials) {
  std::ranges::stable_sort(trials, std::ranges::greater(),
                           [](const GroupTrial* trial) { return trial->members.size(); });
  std::vector<GroupTrial*> largest;
  std::vector<std::set<std::size_t>> held;
  for (auto* trial : trials) {
    const bool covered = std::ranges::any_of(held, [&](const std::set<std::size_t>& members) {
      return std::ranges::all_of(trial->members, [&](auto rank) { return members.contains(rank); });
    });
    if (covered) continue;
    largest.push_back(trial);
    held.emplace_back(trial->members.begin(), trial->members.end());
  }
  return largest;
}

template <class Fits>
std::vector<GroupTrial*> largest_that(std::vector<GroupTrial>& trials, Fits fits) {
  std::vector<GroupTrial*> out;
  for (auto& trial : trials) {
    if (trial.not_run.empty() && fits(trial)) out.push_back(&trial);
  }
  return largest_of(std::move(out));
}

void choose_transports(std::vector<GroupTrial>& trials) {
  const auto says = [](const GroupTrial& trial) { return traits_of(trial.backend).logs_transport; };
  for (auto* trial : largest_that(trials, says)) trial->transport = true;
}

/// The curve of the all-reduce, only for the largest groups: every second power of two from 8 B on, and the
/// largest message.
void add_sweeps(std::vector<GroupTrial>& trials) {
  const auto reduces = [](const GroupTrial& trial) { return trial.op() == Collective::all_reduce; };
  for (auto* trial : largest_that(trials, reduces)) {
    const auto end = traits_of(trial->backend).largest_message;
    for (auto bytes = kLatency; bytes < end; bytes *= 4) trial->sizes.push_back(bytes);
    trial->sizes.push_back(end);
  }
}

/// Around the ring of each node's group, and of each group that crosses nodes: over the same communicators.
void add_neighbours(const Observations& observations, std::vector<GroupTrial>& trials) {
  const auto count = trials.size();
  for (std::size_t i = 0; i < count; ++i) {
    const bool wanted = trials[i].kind == plan::GroupKind::node || observations.crosses_nodes(trials[i]);
    if (!wanted || !trials[i].not_run.empty()) continue;
    auto ring = trials[i];
    ring.name += ", neighbours";
    ring.neighbours = true;
    ring.transport = false;
    trials.push_back(std::move(ring));
  }
}

}  // namespace

std::vector<Rank> make_ranks(const plan::Plan& plan, const plan::BoundNode& node) {
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < node.processes.size(); ++i) {
    const auto& bound = node.processes[i];
    const auto& process = plan.processes[bound.process];
    for (std::size_t position = 0; position < process.gpus.size(); ++position) {
      const auto gpu = process.gpus[position];
      const int device = node.gpus.empty() ? -1 : device_of(plan.role_of(process), process, bound, position);
      ranks.push_back({bound.process, gpu, process.node, i, subject_of(plan, node, process, gpu), device});
    }
  }
  return ranks;
}

GroupTrial trial_of(const plan::Group& group, const std::vector<Rank>& ranks) {
  auto trial = bare_trial(group, index_ranks(ranks));
  mark_mixed(ranks, trial);
  mark_impossible(ranks, trial);
  return trial;
}

std::vector<GroupTrial> make_trials(const Observations& observations) {
  std::vector<GroupTrial> trials;
  const auto index = index_ranks(observations.ranks);
  for (const auto& group : observations.plan.groups) add_trials(observations, group, index, trials);
  for (auto& trial : trials) mark_impossible(observations.ranks, trial);
  mark_repeated(trials);
  choose_transports(trials);
  add_neighbours(observations, trials);
  for (auto& trial : trials) trial.sizes = sizes_of(observations, trial);
  if (observations.level == PreflightLevel::deep) add_sweeps(trials);
  for (auto& trial : trials) sort_once(trial.sizes);
  return trials;
}

namespace {

json workloads_json(const std::vector<Workload>& workloads) {
  auto out = json::array();
  for (const auto& workload : workloads) {
    auto step = json::array();
    for (const auto& one : workload.step) {
      step.push_back(
          {{"op", name_of(one.op)}, {"bytes", one.bytes}, {"type", name_of(one.type)}, {"count", one.count}});
    }
    out.push_back({{"name", workload.name},
                   {"step", step},
                   {"steps", workload.steps},
                   {"warm_up", workload.warm_up},
                   {"busy", workload.busy}});
  }
  return out;
}

json drill_json(const Drill& drill) {
  auto does = json::array();
  for (const auto& rank : drill.does) {
    auto& launches = does.emplace_back(json::array());
    for (const auto& one : rank)
      launches.push_back({{"communicator", one.communicator}, {"stream", one.stream}, {"part", one.part}});
  }
  return {{"name", drill.name},
          {"bytes", drill.bytes},
          {"communicators", drill.communicators},
          {"captured", drill.captured},
          {"env", drill.env},
          {"deadline_ms", drill.deadline.count()},
          {"does", does}};
}

}  // namespace

json make_spec(const Observations& observations, const std::string& folder,
               const std::vector<std::string>& addresses) {
  json spec{{"folder", folder},
            {"join_ms", observations.deadlines.join.count()},
            {"op_ms", observations.deadlines.op.count()},
            {"ranks", json::array()},
            {"groups", json::array()}};
  const bool library = std::ranges::any_of(observations.groups, [](const GroupTrial& trial) {
    return !traits_of(trial.backend).library.empty() && trial.not_run.empty();
  });
  for (const auto& rank : observations.ranks) {
    const bool needed = library && rank.device >= 0;
    spec["ranks"].push_back({{"name", rank.subject},
                             {"device", rank.device},
                             {"library", needed ? rank.library.path : ""},
                             {"address", addresses.empty() ? "" : addresses.at(rank.node)}});
  }
  for (const auto& trial : observations.groups) {
    if (!trial.not_run.empty()) continue;
    spec["groups"].push_back({{"name", trial.name},
                              {"op", name_of(trial.op())},
                              {"backend", name_of(trial.backend)},
                              {"members", trial.members},
                              {"sizes", trial.sizes},
                              {"transport", trial.transport},
                              {"workloads", workloads_json(trial.workloads)}});
    if (trial.drill) spec["groups"].back()["drill"] = drill_json(*trial.drill);
  }
  return spec;
}

}  // namespace nlaunch::preflight
