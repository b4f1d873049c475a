#include "preflight/search/complaints.h"

#include <algorithm>
#include <optional>

#include "base/backend.h"
#include "preflight/checks.h"
#include "preflight/groups/expectations.h"
#include "preflight/groups/group_outcome.h"

namespace nlaunch::preflight {
namespace {

constexpr std::uint64_t kLargeComplaint = 128U << 20U;

bool all_came(const Observations& observations, const GroupTrial& group) {
  return std::ranges::all_of(group.members, [&](std::size_t rank) {
    const auto* progress = progress_of(observations, group, rank);
    return progress != nullptr && progress->joining && observations.reports[rank].end.empty();
  });
}

/// The size at which it stopped; the smallest if it did not start.
std::uint64_t first_undone(const Observations& observations, const GroupTrial& group) {
  auto done = group.sizes.size() - 1;
  for (const auto rank : group.members)
    done = std::min(done, progress_of(observations, group, rank)->results.size());
  return group.sizes[done];
}

/// The size at which a complete group misses a floor of the site, without a setting of the job that explains
/// it.
std::optional<std::uint64_t> slow_at(const Observations& observations, const GroupTrial& group,
                                     const std::vector<Measurement>& measured) {
  for (const auto& expectation : observations.plan.expected.all_reduce_busbw) {
    if (!fits(expectation, observations, group)) continue;
    const auto slow = std::ranges::find_if(measured, [&](const Measurement& one) {
      return one.group == group.name && one.bytes == tried_size(expectation) && one.busbw < expectation.min;
    });
    if (slow != measured.end() && slow_settings(observations, group).empty()) return slow->bytes;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> complaint_of(const Observations& observations, const GroupTrial& group,
                                          const std::vector<Measurement>& measured) {
  if (!group.not_run.empty() || group.members.size() < 2 || group.sizes.empty()) return std::nullopt;
  if (const auto wrong = find_wrong_data(observations, group); wrong.result != nullptr)
    return wrong.result->bytes;
  if (complete(observations, group)) return slow_at(observations, group, measured);
  const bool known = find_error(observations, group, "unavailable").error != nullptr ||
                     !all_came(observations, group) || is_consequence(observations, group);
  return known ? std::nullopt : std::optional(first_undone(observations, group));
}

/// The largest group that crosses nodes, has steady times, and is large enough to tell its parts from each
/// other.
std::vector<Complaint> for_the_record(const Observations& observations) {
  constexpr std::size_t kFewest = 3;
  std::optional<std::size_t> largest;
  for (std::size_t i = 0; i < observations.groups.size(); ++i) {
    const auto& group = observations.groups[i];
    const bool wanted = group.not_run.empty() && traits_of(group.backend).steady_times && !group.neighbours &&
                        observations.hosts_of(group.members).size() >= kFewest;
    if (!wanted || (largest && observations.groups[*largest].members.size() >= group.members.size()))
      continue;
    largest = i;
  }
  if (!largest) return {};
  return {{*largest, kLargeComplaint}};
}

}  // namespace

std::vector<Complaint> complaints(const Observations& observations) {
  if (!observations.went) return {};
  const auto measured = measurements(observations);
  std::vector<Complaint> within;
  std::vector<Complaint> across;
  for (std::size_t i = 0; i < observations.groups.size(); ++i) {
    const auto& group = observations.groups[i];
    const auto bytes = complaint_of(observations, group, measured);
    if (!bytes) continue;
    auto& list = observations.crosses_nodes(group) ? across : within;
    const bool listed = std::ranges::any_of(
        list, [&](const Complaint& one) { return observations.groups[one.group].members == group.members; });
    if (!listed) list.push_back({i, *bytes});
  }
  if (!within.empty()) return within;
  if (!across.empty()) return {across.front()};
  if (observations.level == PreflightLevel::deep) return for_the_record(observations);
  return {};
}

}  // namespace nlaunch::preflight
