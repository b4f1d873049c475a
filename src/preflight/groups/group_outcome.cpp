#include "preflight/groups/group_outcome.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nlaunch::preflight {
const Progress* progress_of(const Observations& observations, const GroupTrial& group, std::size_t rank) {
  const auto& groups = observations.reports[rank].groups;
  const auto found = groups.find(group.name);
  return found == groups.end() ? nullptr : &found->second;
}

bool complete(const Observations& observations, const GroupTrial& group) {
  return std::ranges::all_of(group.members, [&](std::size_t rank) {
    const auto* progress = progress_of(observations, group, rank);
    return progress != nullptr && progress->results.size() == group.sizes.size() &&
           progress->workloads.size() == group.workloads.size();
  });
}

Told find_error(const Observations& observations, const GroupTrial& group, std::string_view kind) {
  for (const auto rank : group.members) {
    for (const auto& error : observations.reports[rank].errors) {
      if (error.group == group.name && error.kind == kind) return {rank, &error};
    }
  }
  return {};
}

WrongData find_wrong_data(const Observations& observations, const GroupTrial& group) {
  for (const auto rank : group.members) {
    const auto* progress = progress_of(observations, group, rank);
    if (progress == nullptr) continue;
    const auto wrong =
        std::ranges::find_if(progress->results, [](const SizeResult& result) { return result.wrong > 0; });
    if (wrong != progress->results.end()) return {rank, &*wrong};
  }
  return {};
}

std::vector<Measurement> measured(const Observations& observations, const GroupTrial& group) {
  std::vector<Measurement> out;
  for (std::size_t i = 0; i < group.sizes.size(); ++i) {
    Measurement slowest{group.name,
                        group.op_name(),
                        std::string(name_of(group.backend)),
                        static_cast<std::uint32_t>(group.members.size()),
                        group.sizes[i],
                        0,
                        0};
    for (const auto rank : group.members) {
      const auto& result = progress_of(observations, group, rank)->results[i];
      if (result.seconds < slowest.seconds) continue;
      slowest.seconds = result.seconds;
      slowest.busbw = result.busbw;
    }
    out.push_back(std::move(slowest));
  }
  return out;
}

namespace {

bool share_a_rank(const GroupTrial& one, const GroupTrial& other) {
  return std::ranges::find_first_of(one.members, other.members) != one.members.end();
}

}  // namespace

bool is_consequence(const Observations& observations, const GroupTrial& group) {
  if (observations.apart || find_error(observations, group, "failed").error != nullptr) return false;
  const bool own = find_error(observations, group, "deadline").error != nullptr;
  for (const auto& other : observations.groups) {
    if (&other == &group) return false;
    if (!other.not_run.empty() || complete(observations, other)) continue;
    if (!own || share_a_rank(other, group)) return true;
  }
  return false;
}

std::string names_of(const Observations& observations, const std::vector<std::size_t>& ranks,
                     std::size_t like) {
  const auto& plan = observations.plan;
  const auto process_of = [&](std::size_t rank) -> const plan::Process& {
    return plan.processes[observations.ranks[rank].process];
  };
  const bool one_role = std::ranges::all_of(ranks, [&](std::size_t rank) {
    return process_of(rank).rank >= 0 && process_of(rank).role == process_of(like).role;
  });
  std::vector<std::string> names;
  for (const auto rank : ranks) {
    names.push_back(one_role ? fmt::format("{}", process_of(rank).rank) : observations.ranks[rank].subject);
  }
  const auto list = text::join(names, ", ");
  if (!one_role) return list;
  return fmt::format("{} {}", names.size() == 1 ? "rank" : "ranks", list);
}

std::string did_not_join(const Observations& observations, const std::vector<std::size_t>& missing,
                         const std::vector<std::size_t>& arrived) {
  std::vector<std::string> names;
  for (const auto rank : missing) names.push_back(observations.ranks[rank].subject);
  return fmt::format("{} did not join within {}; {} did", text::join(names, ", "),
                     seconds_text(observations.deadlines.join),
                     arrived.empty() ? "no rank" : names_of(observations, arrived, missing.front()));
}

namespace {

constexpr std::string_view kSlow[] = {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL",     "NCCL_SHM_DISABLE",
                                      "NCCL_PROTO",       "NCCL_ALGO",          "NCCL_NET",
                                      "NCCL_IB_DISABLE",  "NCCL_NET_GDR_LEVEL", "NCCL_MAX_NCHANNELS",
                                      "NCCL_MAX_CTAS",    "NCCL_BUFFSIZE",      "NCCL_NVLS_ENABLE",
                                      "NCCL_NTHREADS",    "NCCL_LAUNCH_MODE",   "CUDA_LAUNCH_BLOCKING"};

}  // namespace

std::vector<std::string> slow_settings(const plan::BoundProcess& process) {
  std::vector<std::string> found;
  for (const auto& [name, value] : process.env) {
    if (std::ranges::find(kSlow, name) != std::end(kSlow)) found.push_back(fmt::format("{}={}", name, value));
  }
  return found;
}

std::string slow_settings(const Observations& observations, const GroupTrial& group) {
  std::vector<std::string> found;
  for (const auto index : group.members) {
    const auto& rank = observations.ranks[index];
    for (const auto& setting : rank.slow) {
      auto line = fmt::format("{} is set for {}", setting, observations.role_of(rank).name);
      if (std::ranges::find(found, line) == found.end()) found.push_back(std::move(line));
    }
  }
  return text::join(found, "; ");
}

}  // namespace nlaunch::preflight
