#include "preflight/groups/drills.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/backend.h"
#include "base/text.h"

namespace nlaunch::preflight {
namespace {

using Launches = std::vector<DrillLaunch>;
using End = DrillSeen::End;

/// The same for all ranks.
Drill alike(unsigned ranks, const Launches& launches) {
  Drill drill;
  drill.does.assign(ranks, launches);
  return drill;
}

/// Every second rank does it in the opposite order.
Drill crossed(unsigned ranks, const Launches& launches) {
  auto drill = alike(ranks, launches);
  for (std::size_t rank = 1; rank < drill.does.size(); rank += 2) std::ranges::reverse(drill.does[rank]);
  return drill;
}

Drill order_mismatch(unsigned ranks) {
  auto drill = crossed(ranks, {{0, 0, 0}, {1, 1, 1}});
  drill.communicators = 2;
  return drill;
}

Drill implicit_order(unsigned ranks) {
  auto drill = order_mismatch(ranks);
  drill.env = {{"NCCL_LAUNCH_ORDER_IMPLICIT", "1"}};
  return drill;
}

Drill missing_rank(unsigned ranks) {
  auto drill = alike(ranks, {{0, 0, 0}});
  drill.does.back().clear();
  return drill;
}

Drill graph_of_all(unsigned ranks) {
  auto drill = alike(ranks, {{0, 0, 0}});
  drill.captured = true;
  return drill;
}

Drill graph_of_all_but_one(unsigned ranks) {
  auto drill = missing_rank(ranks);
  drill.captured = true;
  return drill;
}

Drill two_streams(unsigned ranks) {
  return alike(ranks, {{0, 0, 0}, {0, 1, 1}});
}

Drill two_streams_crossed(unsigned ranks) {
  return crossed(ranks, {{0, 0, 0}, {0, 1, 1}});
}

constexpr DrillCase kCases[] = {
    {"order-mismatch", "",
     "two communicators over the same ranks, each on its own stream: half of the ranks launch A then B, the "
     "others B then A",
     false, order_mismatch},
    {"order-mismatch", "NCCL_LAUNCH_ORDER_IMPLICIT=1",
     "the same, with NCCL (2.26 and later) keeping the launch order between communicators", true,
     implicit_order},
    {"missing-rank", "", "the last rank does not enter an all-reduce", false, missing_rank},
    {"graph", "all ranks", "a CUDA graph with an all-reduce, launched by all ranks", true, graph_of_all},
    {"graph", "all but the last", "the same, but the last rank launches nothing", true, graph_of_all_but_one},
    {"two-streams", "one order",
     "two all-reduces in one communicator, on two streams, in the same order on all ranks", true,
     two_streams},
    {"two-streams", "two orders", "the same, but every second rank in the opposite order", true,
     two_streams_crossed},
};

/// What each rank of the group saw; null: it did not report.
using Seen = std::vector<const DrillSeen*>;

Seen seen_by(const GroupTrial& trial, const Measured& measured) {
  Seen out;
  for (const auto member : trial.members) {
    const DrillSeen* seen = nullptr;
    if (member < measured.reports.size()) {
      const auto& groups = measured.reports[member].groups;
      const auto found = groups.find(trial.name);
      if (found != groups.end() && found->second.drill) seen = &*found->second.drill;
    }
    out.push_back(seen);
  }
  return out;
}

std::string ranks_text(const std::vector<std::size_t>& ranks) {
  std::vector<std::string> numbers;
  for (const auto rank : ranks) numbers.push_back(std::to_string(rank));
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", text::join(numbers, ", "));
}

std::string message_of(const DrillSeen& seen) {
  return seen.text.empty() ? "no message" : text::printable(seen.text);
}

/// In words that do not distinguish the ranks of one kind.
std::string words_of(const DrillSeen* seen) {
  if (seen == nullptr) return "did not report";
  if (seen->launched == 0) return "did not take part";
  switch (seen->end) {
    case End::completed:
      return seen->wrong == 0 ? "completed, all elements correct"
                              : "completed with wrong results, no message";
    case End::waiting:
      return "waited, " + message_of(*seen);
    case End::blocked:
      return "waited inside a call, " + message_of(*seen);
    case End::failed:
      return message_of(*seen);
  }
  return "";
}

std::string shows(const Seen& seen) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> kinds;
  for (std::size_t rank = 0; rank < seen.size(); ++rank) {
    const auto words = words_of(seen[rank]);
    auto kind = std::ranges::find(kinds, words, [](const auto& one) { return one.first; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {words, {}});
    kind->second.push_back(rank);
  }
  std::string out;
  for (const auto& [words, ranks] : kinds)
    out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", ranks_text(ranks), words);
  return out;
}

/// The ranks that took part and satisfy the condition.
template <class Is>
std::vector<std::size_t> ranks_that(const Seen& seen, Is is) {
  std::vector<std::size_t> out;
  for (std::size_t rank = 0; rank < seen.size(); ++rank) {
    if (seen[rank] != nullptr && seen[rank]->launched > 0 && is(*seen[rank])) out.push_back(rank);
  }
  return out;
}

double longest(const Seen& seen) {
  double seconds = 0;
  for (const auto* one : seen) seconds = one == nullptr ? seconds : std::max(seconds, one->seconds);
  return seconds;
}

/// "all ranks", "all ranks that took part", "ranks 0, 2".
std::string responsible(const std::vector<std::size_t>& some, std::size_t took_part, std::size_t ranks) {
  if (some.size() == ranks) return "all ranks";
  return some.size() == took_part ? "all ranks that took part" : ranks_text(some);
}

std::string end_of(const Seen& seen, Duration deadline) {
  const auto all = ranks_that(seen, [](const DrillSeen&) { return true; });
  const auto failed = ranks_that(seen, [](const DrillSeen& one) { return one.end == End::failed; });
  const auto stuck = ranks_that(
      seen, [](const DrillSeen& one) { return one.end == End::waiting || one.end == End::blocked; });
  const auto wrong = ranks_that(seen, [](const DrillSeen& one) { return one.wrong > 0; });
  if (std::ranges::find(seen, nullptr) != seen.end()) return "unknown: not every rank reported what it saw";
  if (!failed.empty()) {
    return fmt::format("fails on {} after {}: {}{}", responsible(failed, all.size(), seen.size()),
                       time_text(longest(seen)), message_of(*seen[failed.front()]),
                       stuck.empty() ? "" : fmt::format("; {} waited until the deadline", ranks_text(stuck)));
  }
  if (!stuck.empty()) {
    const auto* first = seen[stuck.front()];
    return fmt::format("hangs: {} wait, {}; stopped after {} by its deadline",
                       responsible(stuck, all.size(), seen.size()), message_of(*first),
                       seconds_text(deadline));
  }
  if (!wrong.empty()) {
    return fmt::format("completes with wrong results and no message: {} elements on {}",
                       seen[wrong.front()]->wrong, ranks_text({wrong.front()}));
  }
  return fmt::format("completes after {}, all elements correct", time_text(longest(seen)));
}

/// Why the ranks did not start.
std::string trouble(const GroupTrial& trial, const Measured& measured) {
  if (!trial.not_run.empty()) return trial.not_run;
  if (measured.cancelled) return "cancelled";
  for (const auto& row : measured.rows) {
    if (row.status == Status::fail || row.status == Status::unknown)
      return fmt::format("{}: {}", row.subject, row.value);
  }
  return "the ranks did not start";
}

}  // namespace

nlohmann::json to_json(const std::vector<DrillRow>& rows) {
  auto out = nlohmann::json::array();
  for (const auto& row : rows) {
    out.push_back(
        {{"drill", row.drill}, {"arm", row.arm}, {"does", row.does}, {"shows", row.shows}, {"end", row.end}});
  }
  return out;
}

std::span<const DrillCase> drill_cases() {
  return kCases;
}

GroupTrial drill_trial(const DrillCase& which, GroupTrial trial, Duration deadline) {
  const auto& backend = traits_of(trial.backend);
  if (which.gpu && !backend.has_streams)
    trial.not_run = fmt::format("not run: {} has no streams or CUDA graphs", backend.title);
  trial.sizes.clear();
  trial.workloads.clear();
  trial.transport = false;
  trial.drill = which.make(static_cast<unsigned>(trial.members.size()));
  trial.drill->name = which.name;
  trial.drill->deadline = deadline;
  trial.drill->bytes = backend.drill_message;
  return trial;
}

DrillRow judge_drill(const DrillCase& which, const GroupTrial& trial, const Measured& measured) {
  DrillRow row{std::string(which.name), std::string(which.arm), std::string(which.does), "", ""};
  const auto seen = seen_by(trial, measured);
  const bool nobody = std::ranges::all_of(seen, [](const auto* one) { return one == nullptr; });
  if (nobody) {
    row.end = trouble(trial, measured);
    return row;
  }
  row.shows = shows(seen);
  row.end = end_of(seen, trial.drill->deadline);
  return row;
}

}  // namespace nlaunch::preflight
