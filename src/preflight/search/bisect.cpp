#include "preflight/search/bisect.h"

#include <fmt/format.h>

#include <algorithm>

#include "preflight/groups/try_groups.h"
#include "preflight/search/bisection.h"

namespace nlaunch::preflight {
namespace {

/// A pair has few ranks and few sizes: one that takes longer is what the search looks for.
constexpr Deadlines kOfPair{std::chrono::seconds(10), std::chrono::seconds(10)};

struct Search {
  Bisection what;
  std::vector<Round> rounds;
  std::vector<UnitPair> next;
};

/// The pairs of all searches as one set of groups; none: all are finished.
std::vector<GroupTrial> next_trials(std::vector<Search>& searches) {
  std::vector<GroupTrial> trials;
  for (auto& search : searches) {
    const auto units = search.what.parts.size();
    search.next = units > 2 ? next_round(units, search.rounds, search.what.rules) : std::vector<UnitPair>();
    for (const auto& pair : search.next) trials.push_back(pair_trial(search.what, pair));
  }
  return trials;
}

void read_round(const Observations& observations, std::vector<Search>& searches) {
  std::size_t index = 0;
  for (auto& search : searches) {
    if (search.next.empty()) continue;
    Round round;
    for (const auto& pair : search.next) {
      if (auto trial = read_trial(observations, index++, pair)) round.push_back(std::move(*trial));
    }
    search.rounds.push_back(std::move(round));
  }
}

}  // namespace

TakenApart bisect(sys::Loop& loop, const Examination& request, const Observations& observations,
                  const std::vector<Complaint>& complaints) {
  TakenApart out;
  std::vector<Search> searches;
  for (const auto& complaint : complaints) searches.push_back({dissect(observations, complaint), {}, {}});
  auto round = observations_for(request, observations.ranks);
  round.deadlines = {std::min(request.deadlines.join, kOfPair.join),
                     std::min(request.deadlines.op, kOfPair.op)};
  for (unsigned number = 1;; ++number) {
    round.groups = next_trials(searches);
    if (round.groups.empty()) break;
    request.options.tell(fmt::format("search round {}: {} pairs", number, round.groups.size()));
    const auto cancelled =
        try_groups(loop, request, round,
                   {.folder = fmt::format("{}/preflight/pairs-{}", request.folder, number), .apart = true});
    if (!cancelled) {
      out.rows.push_back(unknown("suspect", "preflight directory", cancelled.error().first_message()));
      return out;
    }
    out.cancelled = *cancelled;
    if (out.cancelled) return out;
    read_round(round, searches);
  }
  for (const auto& search : searches) {
    std::ranges::move(suspect_rows(search.what, search.rounds), std::back_inserter(out.rows));
    std::ranges::move(pair_figures(search.what, search.rounds), std::back_inserter(out.figures));
  }
  return out;
}

}  // namespace nlaunch::preflight
