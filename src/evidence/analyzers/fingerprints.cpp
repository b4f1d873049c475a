#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include "base/registry.h"
#include "base/text.h"
#include "evidence/analyzers/waits.h"
#include "evidence/verdict.h"

namespace nlaunch::evidence {
namespace {

// What ranks print under TORCH_DISTRIBUTED_DEBUG=DETAIL, where PyTorch compares collectives before it runs
// them (torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp): each rank that finds a mismatch prints both.

/// By rank: "ALLREDUCE, TensorShape=[10], TensorDtypes=Float".
using Fingerprints = std::map<int, std::string>;

/// After "CollectiveFingerPrint(": what must be the same on all ranks.
std::string fingerprint(std::string_view text) {
  return std::string(text.substr(0, std::min(text.find(", TensorDeviceTypes"), text.find_first_of(")\n"))));
}

void read_fingerprints(std::string_view words, Fingerprints& found) {
  constexpr std::string_view kBegin = "Detected mismatch between collectives on ranks.";
  constexpr std::string_view kRank = "Rank ";
  constexpr std::string_view kRuns = " is running collective: CollectiveFingerPrint(";
  const auto begin = words.find(kBegin);
  if (begin == std::string_view::npos) return;
  words.remove_prefix(begin + kBegin.size());
  for (auto at = words.find(kRuns); at != std::string_view::npos; at = words.find(kRuns)) {
    const auto rank = words.substr(0, at).rfind(kRank);
    words.remove_prefix(rank == std::string_view::npos ? at : rank + kRank.size());
    int number = -1;
    std::from_chars(words.data(), words.data() + words.size(), number);
    words.remove_prefix(words.find(kRuns) + kRuns.size());
    if (number >= 0) found.emplace(number, fingerprint(words));
  }
}

/// The ranks missing in the barrier before each of them: "[Rank 0]: Ranks 2, 3 failed to pass
/// monitoredBarrier in 30000 ms".
std::vector<int> missing_in_barrier(std::string_view words) {
  constexpr std::string_view kFailed = " failed to pass monitoredBarrier";
  std::vector<int> ranks;
  const auto end = words.find(kFailed);
  if (end == std::string_view::npos) return ranks;
  auto list = words.substr(0, end);
  const auto begin = list.rfind("]: Rank");
  if (begin == std::string_view::npos) return ranks;
  list.remove_prefix(begin + std::string_view("]: Rank").size());
  for (const auto& word : text::split(list, ' ')) {
    int rank = -1;
    const auto [stopped, error] = std::from_chars(word.data(), word.data() + word.size(), rank);
    if (error == std::errc() && rank >= 0) ranks.push_back(rank);
  }
  return ranks;
}

void accuse_the_missing(const Evidence& evidence, const Member& complains, Analysis& analysis) {
  const auto ranks = missing_in_barrier(complains.last_words);
  for (std::size_t i = 0; i < evidence.members.size(); ++i) {
    const auto& member = evidence.members[i];
    if (member.role != complains.role || !member.rank ||
        std::ranges::find(ranks, *member.rank) == ranks.end())
      continue;
    const Accused accused{
        i, fmt::format("has not reached the barrier before a collective, as {} reports", complains.name())};
    if (std::ranges::find(analysis.accused, accused) == analysis.accused.end())
      analysis.accused.push_back(accused);
    analysis.sure = true;
  }
}

void judge_role(const Evidence& evidence, const std::string& role, const Fingerprints& found,
                Analysis& analysis) {
  std::map<std::string, std::vector<int>> same;
  for (const auto& [rank, what] : found) same[what].push_back(rank);
  if (same.size() < 2) return;
  const auto most = std::ranges::max_element(same, {}, [](const auto& one) { return one.second.size(); });
  const bool majority = most->second.size() * 2 > found.size();
  analysis.sure = majority;
  for (const auto& [what, ranks] : same) {
    std::vector<std::string> names;
    for (const int rank : ranks) names.push_back(std::to_string(rank));
    analysis.says.push_back(fmt::format("{} {} of {} entered {}", ranks.size() == 1 ? "rank" : "ranks",
                                        listed(names), role, what));
    if (majority && what == most->first) continue;
    for (std::size_t i = 0; i < evidence.members.size(); ++i) {
      const auto& member = evidence.members[i];
      if (member.role != role || !member.rank || std::ranges::find(ranks, *member.rank) == ranks.end())
        continue;
      analysis.accused.push_back({i, fmt::format("entered {}, where {}", what,
                                                 majority ? fmt::format("others entered {}", most->first)
                                                          : "another rank entered a different collective")});
    }
  }
}

Analysis analyze_fingerprints(const Evidence& evidence) {
  Analysis analysis;
  std::map<std::string, Fingerprints> by_role;
  for (const auto& member : evidence.members) read_fingerprints(member.last_words, by_role[member.role]);
  for (const auto& [role, found] : by_role) {
    if (analysis.accused.empty()) judge_role(evidence, role, found, analysis);
  }
  if (!analysis.accused.empty()) return analysis;
  for (const auto& member : evidence.members) accuse_the_missing(evidence, member, analysis);
  return analysis;
}

const Registered<Analyzer> fingerprints_analyzer{
    {.order = 30, .name = "collectives as the ranks compared them", .analyze = analyze_fingerprints}};

}  // namespace
}  // namespace nlaunch::evidence
