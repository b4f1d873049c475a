#include "preflight/arrival.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nlaunch::preflight {

std::string names_of(const Evidence& evidence, const std::vector<std::size_t>& ranks, std::size_t like) {
  const auto& plan = evidence.plan;
  const auto process_of = [&](std::size_t rank) -> const plan::Process& {
    return plan.processes[evidence.ranks[rank].process];
  };
  const bool one_role = std::ranges::all_of(ranks, [&](std::size_t rank) {
    return process_of(rank).rank >= 0 && process_of(rank).role == process_of(like).role;
  });
  std::vector<std::string> names;
  for (const auto rank : ranks) {
    names.push_back(one_role ? fmt::format("{}", process_of(rank).rank) : evidence.ranks[rank].subject);
  }
  const auto list = text::join(names, ", ");
  if (!one_role) return list;
  return fmt::format("{} {}", names.size() == 1 ? "rank" : "ranks", list);
}

std::string did_not_join(const Evidence& evidence, const std::vector<std::size_t>& missing,
                         const std::vector<std::size_t>& arrived) {
  std::vector<std::string> names;
  for (const auto rank : missing) names.push_back(evidence.ranks[rank].subject);
  return fmt::format("{} did not join within {}; {} did", text::join(names, ", "),
                     seconds_text(evidence.deadlines.join),
                     arrived.empty() ? "no rank" : names_of(evidence, arrived, missing.front()));
}

}  // namespace nlaunch::preflight
