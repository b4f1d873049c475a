#include "preflight/complaints.h"

#include <algorithm>
#include <optional>

#include "preflight/checks.h"
#include "preflight/expectations.h"
#include "preflight/group_outcome.h"
#include "preflight/slow_settings.h"

namespace nlaunch::preflight {
namespace {

constexpr std::uint64_t kLarge = 128U << 20U;

bool all_came(const Evidence& evidence, const GroupTrial& group) {
  return std::ranges::all_of(group.members, [&](std::size_t rank) {
    const auto* progress = progress_of(evidence, group, rank);
    return progress != nullptr && progress->joining && evidence.reports[rank].end.empty();
  });
}

/// The size at which it stopped; the smallest where it did not begin.
std::uint64_t first_undone(const Evidence& evidence, const GroupTrial& group) {
  auto done = group.sizes.size() - 1;
  for (const auto rank : group.members)
    done = std::min(done, progress_of(evidence, group, rank)->results.size());
  return group.sizes[done];
}

/// The size at which a group that is complete misses a floor of the site, for no setting of the job.
std::optional<std::uint64_t> slow_at(const Evidence& evidence, const GroupTrial& group,
                                     const std::vector<Measurement>& measured) {
  for (const auto& expectation : evidence.plan.expected.all_reduce_busbw) {
    if (!fits(expectation, evidence, group)) continue;
    const auto slow = std::ranges::find_if(measured, [&](const Measurement& one) {
      return one.group == group.name && one.bytes == tried_size(expectation) && one.busbw < expectation.min;
    });
    if (slow != measured.end() && slow_settings(evidence, group).empty()) return slow->bytes;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> complaint_of(const Evidence& evidence, const GroupTrial& group,
                                          const std::vector<Measurement>& measured) {
  if (!group.not_run.empty() || group.members.size() < 2 || group.sizes.empty()) return std::nullopt;
  if (const auto wrong = find_wrong_data(evidence, group); wrong.result != nullptr)
    return wrong.result->bytes;
  if (complete(evidence, group)) return slow_at(evidence, group, measured);
  const bool known = find_error(evidence, group, "unavailable").error != nullptr ||
                     !all_came(evidence, group) || is_consequence(evidence, group);
  return known ? std::nullopt : std::optional(first_undone(evidence, group));
}

/// The largest group that crosses nodes over NCCL, of enough of them to tell one from the others.
std::vector<Complaint> for_the_record(const Evidence& evidence) {
  constexpr std::size_t kFewest = 3;
  std::optional<std::size_t> largest;
  for (std::size_t i = 0; i < evidence.groups.size(); ++i) {
    const auto& group = evidence.groups[i];
    const bool wanted = group.not_run.empty() && group.backend == Backend::nccl && !group.neighbours &&
                        evidence.hosts_of(group.members).size() >= kFewest;
    if (!wanted || (largest && evidence.groups[*largest].members.size() >= group.members.size())) continue;
    largest = i;
  }
  if (!largest) return {};
  return {{*largest, kLarge}};
}

}  // namespace

std::vector<Complaint> complaints(const Evidence& evidence) {
  if (!evidence.went) return {};
  const auto measured = measurements(evidence);
  std::vector<Complaint> within;
  std::vector<Complaint> across;
  for (std::size_t i = 0; i < evidence.groups.size(); ++i) {
    const auto& group = evidence.groups[i];
    const auto bytes = complaint_of(evidence, group, measured);
    if (!bytes) continue;
    auto& list = evidence.crosses_nodes(group) ? across : within;
    const bool listed = std::ranges::any_of(
        list, [&](const Complaint& one) { return evidence.groups[one.group].members == group.members; });
    if (!listed) list.push_back({i, *bytes});
  }
  if (!within.empty()) return within;
  if (!across.empty()) return {across.front()};
  if (evidence.level == PreflightLevel::deep) return for_the_record(evidence);
  return {};
}

}  // namespace nlaunch::preflight
