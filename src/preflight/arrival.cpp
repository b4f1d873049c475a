#include "preflight/arrival.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nlaunch::preflight {

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

}  // namespace nlaunch::preflight
