#include "preflight/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "preflight/expectations.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLatency = 8;
constexpr std::uint64_t kSmall = 1U << 20U;
constexpr std::uint64_t kTensor = 22118400;  // a weight of [1, 2160, 5120] in bf16
constexpr std::uint64_t kLarge = 128U << 20U;

std::string subject_of(const plan::Plan& plan, const plan::BoundNode& node, const plan::Process& process,
                       std::uint16_t gpu) {
  const auto who = process.rank >= 0 ? fmt::format("{} rank {}", plan.role_of(process).name, process.rank)
                                     : plan.name_of(process);
  return fmt::format("{} ({}{} {})", who, plan.node.count > 1 ? node.host + " " : "",
                     node.gpus.empty() ? "CPU slot" : "GPU", gpu);
}

/// The CUDA ordinal that the process's program takes: under a torch rendezvous its LOCAL_RANK among the GPUs
/// that it sees; else it sees its own alone, and counts from 0.
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

std::map<std::string, std::vector<std::size_t>> by_version(const Evidence& evidence,
                                                           const std::vector<std::size_t>& members) {
  std::map<std::string, std::vector<std::size_t>> out;
  for (const auto rank : members) out[evidence.ranks[rank].library.version].push_back(rank);
  return out;
}

std::vector<std::uint64_t> sizes_of(const Evidence& evidence, const GroupTrial& trial) {
  if (trial.backend == Backend::gloo) return {kLatency, kSmall, kTensor};
  std::vector<std::uint64_t> sizes{kLatency, kSmall, kTensor, kLarge};
  for (const auto& expectation : evidence.plan.expected.all_reduce_busbw) {
    if (fits(expectation, evidence, trial)) sizes.push_back(expectation.size / 4 * 4);
  }
  std::ranges::sort(sizes);
  const auto [first, last] = std::ranges::unique(sizes);
  sizes.erase(first, last);
  return sizes;
}

void add_node_trials(const Evidence& evidence, const GroupTrial& whole, std::vector<GroupTrial>& trials) {
  const auto versions = by_version(evidence, whole.members);
  if (whole.backend == Backend::gloo || versions.size() == 1) {
    trials.push_back(whole);
    return;
  }
  for (const auto& [version, members] : versions) {
    if (members.size() < 2) continue;
    auto part = whole;
    part.name = fmt::format("{}, NCCL {}", whole.name, version.empty() ? "not found" : version);
    part.members = members;
    trials.push_back(std::move(part));
  }
}

void add_trials(const Evidence& evidence, const plan::Group& group,
                const std::map<GpuKey, std::size_t>& index, std::vector<GroupTrial>& trials) {
  GroupTrial trial{group.name, group.kind, group.backend, {}, {}, false, ""};
  if (group.kind == plan::GroupKind::tensor_parallel) return;
  for (const auto& member : group.members) trial.members.push_back(index.at({member.process, member.gpu}));
  if (group.kind == plan::GroupKind::node) return add_node_trials(evidence, trial, trials);
  if (trial.backend == Backend::nccl && by_version(evidence, trial.members).size() > 1) {
    trial.not_run = "not run: its ranks load different versions of NCCL";
  }
  trials.push_back(std::move(trial));
}

/// Why a group cannot be tried at all, as *unknown* reasons do: found before any probe is started.
void mark_impossible(const Evidence& evidence, GroupTrial& trial) {
  if (!trial.not_run.empty() || trial.backend == Backend::gloo) return;
  for (const auto rank : trial.members) {
    if (evidence.ranks[rank].library.version.empty()) {
      trial.not_run = fmt::format("not run: no libnccl is known for {}", evidence.ranks[rank].subject);
    }
  }
}

/// Two groups of the same ranks need one measurement: a node that is filled by the learners, say.
void mark_repeated(std::vector<GroupTrial>& trials) {
  for (auto trial = trials.begin(); trial != trials.end(); ++trial) {
    const auto first = std::find_if(trials.begin(), trial, [&](const GroupTrial& other) {
      return other.not_run.empty() && other.members == trial->members && other.backend == trial->backend &&
             std::string_view(other.op()) == trial->op();
    });
    if (first != trial && trial->not_run.empty()) {
      trial->not_run = fmt::format("not run: the same ranks as '{}'", first->name);
    }
  }
}

bool covers(const GroupTrial& large, const GroupTrial& small) {
  return std::ranges::all_of(small.members, [&](std::size_t rank) {
    return std::ranges::find(large.members, rank) != large.members.end();
  });
}

void choose_transports(std::vector<GroupTrial>& trials) {
  std::vector<GroupTrial*> largest_first;
  for (auto& trial : trials) {
    if (trial.backend == Backend::nccl && trial.not_run.empty()) largest_first.push_back(&trial);
  }
  std::ranges::stable_sort(largest_first, std::ranges::greater(),
                           [](const GroupTrial* trial) { return trial->members.size(); });
  for (auto* trial : largest_first) {
    trial->transport = std::ranges::none_of(
        largest_first, [&](const GroupTrial* other) { return other->transport && covers(*other, *trial); });
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

std::vector<GroupTrial> make_trials(const Evidence& evidence) {
  std::vector<GroupTrial> trials;
  const auto index = index_ranks(evidence.ranks);
  for (const auto& group : evidence.plan.groups) add_trials(evidence, group, index, trials);
  for (auto& trial : trials) {
    mark_impossible(evidence, trial);
    trial.sizes = sizes_of(evidence, trial);
  }
  mark_repeated(trials);
  choose_transports(trials);
  return trials;
}

json make_spec(const Evidence& evidence, const std::string& folder,
               const std::vector<std::string>& addresses) {
  json spec{{"folder", folder},
            {"join_ms", evidence.deadlines.join.count()},
            {"op_ms", evidence.deadlines.op.count()},
            {"ranks", json::array()},
            {"groups", json::array()}};
  const bool nccl = std::ranges::any_of(evidence.groups, [](const GroupTrial& trial) {
    return trial.backend == Backend::nccl && trial.not_run.empty();
  });
  for (const auto& rank : evidence.ranks) {
    const bool needed = nccl && rank.device >= 0;
    spec["ranks"].push_back({{"name", rank.subject},
                             {"device", rank.device},
                             {"library", needed ? rank.library.path : ""},
                             {"address", addresses.empty() ? "" : addresses.at(rank.node)}});
  }
  for (const auto& trial : evidence.groups) {
    if (!trial.not_run.empty()) continue;
    spec["groups"].push_back({{"name", trial.name},
                              {"op", trial.op()},
                              {"backend", name_of(trial.backend)},
                              {"members", trial.members},
                              {"sizes", trial.sizes},
                              {"transport", trial.transport}});
  }
  return spec;
}

}  // namespace nlaunch::preflight
