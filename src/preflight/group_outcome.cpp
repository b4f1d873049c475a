#include "preflight/group_outcome.h"

#include <algorithm>

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

}  // namespace nlaunch::preflight
