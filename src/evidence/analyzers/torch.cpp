#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/registry.h"
#include "base/text.h"
#include "evidence/analyzers/waits.h"
#include "evidence/verdict.h"

namespace nlaunch::evidence {
namespace {

// What PyTorch's flight recorder shows: in each group the first collective that does not complete, the ranks
// that entered it, those that did not, and those that entered another one or the same with a different size.

using Operations = std::map<int, const RecordedOperation*>;  // by rank
using Index = std::map<int, std::size_t>;                    // of members, by rank of the role

/// A group, combined from the recordings of its ranks.
struct RecordedRanks {
  std::string name;
  std::string description;
  std::vector<int> ranks;
  std::map<int, const RecordedGroup*> recorded;  ///< by rank
};

using Groups = std::map<std::string, RecordedRanks>;

Groups groups_of(const std::vector<Recording>& recordings) {
  Groups groups;
  for (const auto& recording : recordings) {
    for (const auto& [name, recorded] : recording.groups) {
      auto& group = groups[name];
      group.description = recorded.description;
      group.name = recorded.description.empty() ? name : fmt::format("{} ({})", name, recorded.description);
      group.recorded[recording.rank] = &recorded;
      if (group.ranks.empty()) group.ranks = recorded.ranks;
    }
  }
  for (auto& [name, group] : groups) {
    if (!group.ranks.empty()) continue;
    for (const auto& [rank, recorded] : group.recorded) group.ranks.push_back(rank);
  }
  return groups;
}

/// The first collective of a rank that has not completed.
const RecordedOperation* open_one(const RecordedGroup& group) {
  const auto found = std::ranges::find_if(group.operations, [](const auto& operation) {
    return !operation.point_to_point && operation.state != "completed";
  });
  return found == group.operations.end() ? nullptr : &*found;
}

std::int64_t last_entered(const RecordedGroup& group) {
  std::int64_t last = -1;
  for (const auto& operation : group.operations) {
    if (!operation.point_to_point) last = std::max(last, operation.sequence);
  }
  return last;
}

/// Where the group is stuck: the state of each rank at the first collective that is open on one of them.
struct Stuck {
  std::int64_t sequence = 0;
  Operations entered;
  std::vector<int> absent;  ///< have not entered it
  std::vector<int> silent;  ///< left no recording
};

const RecordedOperation* operation_at(const RecordedGroup& group, std::int64_t sequence) {
  const auto found = std::ranges::find_if(group.operations, [&](const auto& operation) {
    return !operation.point_to_point && operation.sequence == sequence;
  });
  return found == group.operations.end() ? nullptr : &*found;
}

std::optional<Stuck> stuck_at(const RecordedRanks& group) {
  std::optional<std::int64_t> first;
  for (const auto& [rank, recorded] : group.recorded) {
    const auto* open = open_one(*recorded);
    if (open != nullptr && (!first || open->sequence < *first)) first = open->sequence;
  }
  if (!first) return std::nullopt;
  Stuck stuck{*first, {}, {}, {}};
  for (const int rank : group.ranks) {
    const auto recorded = group.recorded.find(rank);
    if (recorded == group.recorded.end()) {
      stuck.silent.push_back(rank);
      continue;
    }
    if (const auto* operation = operation_at(*recorded->second, *first)) {
      stuck.entered[rank] = operation;
    } else if (last_entered(*recorded->second) < *first) {
      stuck.absent.push_back(rank);
    }
  }
  return stuck;
}

/// Ranks send and receive parts of different sizes in these.
bool may_differ(const std::string& operation) {
  return operation.find("gather") == 0 || operation.find("scatter") == 0 ||
         operation.find("all_to_all") != std::string::npos ||
         operation.find("alltoall") != std::string::npos || operation.find("coalesced") != std::string::npos;
}

/// What must be the same on all ranks.
std::string operation_signature(const RecordedOperation& operation) {
  if (may_differ(operation.name)) return operation.name;
  return fmt::format("{} {} -> {}", operation.name, operation.inputs, operation.outputs);
}

/// A rank that waits for a message waits for its sender, and may be late elsewhere for that reason alone.
void add_messages(const RecordedRanks& group, const Index& index, Waits& waits) {
  for (const auto& [rank, recorded] : group.recorded) {
    for (const auto& operation : recorded->operations) {
      if (!operation.point_to_point || operation.state == "completed" || !index.contains(rank)) continue;
      const auto peer = static_cast<std::size_t>(operation.peer);
      const bool known =
          operation.peer >= 0 && peer < group.ranks.size() && index.contains(group.ranks[peer]);
      // One that nothing is known about is at least not to blame itself.
      waits[index.at(rank)].insert(index.at(known ? group.ranks[peer] : rank));
    }
  }
}

struct RecorderFindings {
  Waits waits;
  Waits messages;                  ///< ranks that wait for a message
  std::vector<Accused> different;  ///< entered another collective, or with a different size
  bool clear = true;               ///< and it is clear that the others are right
  std::map<std::size_t, std::string> absent_why;
  std::set<std::size_t> silent;  ///< left no recording: whether they wait themselves is unknown
  std::vector<std::string> says;
};

/// Those that have entered the collective and not left it.
std::vector<int> those_waiting(const Stuck& stuck, const std::vector<int>& ranks) {
  std::vector<int> waiting;
  for (const int rank : ranks) {
    const auto entered = stuck.entered.find(rank);
    if (entered != stuck.entered.end() && entered->second->state != "completed") waiting.push_back(rank);
  }
  return waiting;
}

/// Ranks that have entered a collective wait for those that have not, or that entered another one.
void wait_for(const std::vector<int>& waiting, const std::vector<int>& others, const Index& index,
              RecorderFindings& findings) {
  for (const int waiter : waiting) {
    for (const int other : others) {
      if (index.contains(waiter) && index.contains(other) && waiter != other)
        findings.waits[index.at(waiter)].insert(index.at(other));
    }
  }
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(std::to_string(rank));
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", listed(names));
}

/// All that is known of the ranks of one role.
struct World {
  const Evidence& evidence;
  Index index;
  Groups groups;
};

/// By what they entered.
using Entered = std::map<std::string, std::vector<int>>;

/// What the ranks of a group ought to have entered.
struct Usual {
  std::string what;
  bool is_clear = false;  ///< it leaves no doubt about those that entered something else
};

bool share_a_rank(const RecordedRanks& one, const RecordedRanks& other) {
  return std::ranges::any_of(
      one.ranks, [&](int rank) { return std::ranges::find(other.ranks, rank) != other.ranks.end(); });
}

/// Groups like the tensor-parallel ones: of other ranks, as many, and with the same description.
bool are_of_a_kind(const RecordedRanks& one, const RecordedRanks& other) {
  return one.description == other.description && one.ranks.size() == other.ranks.size() &&
         !share_a_rank(one, other);
}

/// What the ranks of other groups of its kind entered as their collective with this number, if all of them
/// agree.
std::optional<Usual> usual_beside(const World& world, const RecordedRanks& group, std::int64_t sequence) {
  std::set<std::string> entered;
  int others = 0;
  for (const auto& [name, other] : world.groups) {
    if (!are_of_a_kind(group, other)) continue;
    ++others;
    for (const auto& [rank, recorded] : other.recorded) {
      if (const auto* operation = operation_at(*recorded, sequence))
        entered.insert(operation_signature(*operation));
    }
  }
  // One other group may be the odd one itself.
  if (entered.size() == 1) return Usual{*entered.begin(), others > 1};
  return std::nullopt;
}

/// A collective that not all ranks of a group entered as the same.
struct Mismatch {
  std::int64_t sequence = 0;
  Entered entered;
  std::size_t ranks = 0;
};

/// Some ranks have completed the collective in which others wait, and nobody is late: they were not in the
/// same one.
bool have_crossed(const Stuck& stuck) {
  const auto completed = [](const auto& one) { return one.second->state == "completed"; };
  return stuck.absent.empty() && stuck.silent.empty() && std::ranges::any_of(stuck.entered, completed) &&
         !std::ranges::all_of(stuck.entered, completed);
}

/// Of those that completed, some have another size on each rank for a reason.
bool are_alike(const RecordedOperation& one, const RecordedOperation& other) {
  return one.name == other.name && (one.name != "all_reduce" || one.inputs == other.inputs);
}

/// The first collective up to this one that was not the same on all ranks: NCCL may complete it all the same,
/// with wrong data.
std::int64_t first_different(const RecordedRanks& group, std::int64_t sequence) {
  std::map<std::int64_t, const RecordedOperation*> reference;
  for (const auto& [rank, recorded] : group.recorded) {
    for (const auto& operation : recorded->operations) {
      if (operation.point_to_point || operation.sequence >= sequence) continue;
      const auto& other = *reference.try_emplace(operation.sequence, &operation).first->second;
      if (!are_alike(operation, other)) sequence = operation.sequence;
    }
  }
  return sequence;
}

/// At the collective in which the group is stuck, or before it if the ranks have crossed.
std::optional<Mismatch> mismatch_in(const RecordedRanks& group, const Stuck& stuck) {
  Mismatch mismatch{have_crossed(stuck) ? first_different(group, stuck.sequence) : stuck.sequence, {}, 0};
  for (const auto& [rank, recorded] : group.recorded) {
    const auto* operation = operation_at(*recorded, mismatch.sequence);
    if (operation == nullptr) continue;
    mismatch.entered[operation_signature(*operation)].push_back(rank);
    ++mismatch.ranks;
  }
  return mismatch.entered.size() > 1 ? std::optional(mismatch) : std::nullopt;
}

/// What most of its ranks entered, else what the other groups of its kind did.
std::optional<Usual> usual_of(const World& world, const RecordedRanks& group, const Mismatch& mismatch) {
  for (const auto& [what, ranks] : mismatch.entered) {
    if (ranks.size() * 2 > mismatch.ranks) return Usual{what, true};
  }
  auto usual = usual_beside(world, group, mismatch.sequence);
  if (usual && !mismatch.entered.contains(usual->what)) usual.reset();
  return usual;
}

/// Ranks of a group in which not all entered the same: those that did not enter what is usual, first. All are
/// candidates if it is not clear what that is.
void compare_stuck(const World& world, const RecordedRanks& group, const Stuck& stuck,
                   RecorderFindings& findings) {
  const auto mismatch = mismatch_in(group, stuck);
  if (!mismatch) return;
  const auto& same = mismatch->entered;
  const auto usual = usual_of(world, group, *mismatch);
  const auto reference =
      usual ? same.find(usual->what)
            : std::ranges::max_element(same, {}, [](const auto& one) { return one.second.size(); });
  const bool is_majority = reference->second.size() * 2 > mismatch->ranks;
  const bool is_clear = usual && usual->is_clear;
  findings.clear = findings.clear && is_clear;
  const auto accuse = [&](const Entered::value_type& one) {
    const bool is_reference = &one == &*reference;
    for (const int rank : one.second) {
      if (world.index.contains(rank))
        findings.different.push_back(
            {world.index.at(rank), fmt::format("entered {} as collective {} of group {}, where {} entered {}",
                                               one.first, mismatch->sequence, group.name,
                                               is_reference ? "others" : ranks_text(reference->second),
                                               is_reference ? "another one" : reference->first)});
    }
  };
  for (const auto& one : same) {
    const bool is_reference = &one == &*reference;
    findings.says.push_back(fmt::format(
        "group {}, collective {}: {} entered {}{}", group.name, mismatch->sequence, ranks_text(one.second),
        one.first, is_reference && usual && !is_majority ? ", as the other groups of its kind did" : ""));
    if (is_reference && usual) continue;
    accuse(one);
    if (is_clear) wait_for(those_waiting(stuck, reference->second), one.second, world.index, findings);
  }
  if (usual && !is_clear) accuse(*reference);
}

/// Ranks that left no recording. One that has ended or is stopped enters nothing any more; of another it is
/// unknown.
void add_silent(const World& world, const RecordedRanks& group, const Stuck& stuck,
                const std::vector<int>& waiting, RecorderFindings& findings) {
  for (const int rank : stuck.silent) {
    if (!world.index.contains(rank)) continue;
    const auto member = world.index.at(rank);
    const auto situation = situation_of(world.evidence.members[member]);
    const bool is_out = is_out_of_action(situation);
    if (!is_out) findings.silent.insert(member);
    findings.absent_why[member] =
        is_out ? fmt::format("{}, and {} of group {} wait{} for it", describe(situation), ranks_text(waiting),
                             group.name, waiting.size() == 1 ? "s" : "")
               : fmt::format("left no recording, and {} of group {} may be waiting for it",
                             ranks_text(waiting), group.name);
  }
  wait_for(waiting, stuck.silent, world.index, findings);
}

void look_at_group(const World& world, const RecordedRanks& group, RecorderFindings& findings) {
  add_messages(group, world.index, findings.messages);
  const auto stuck = stuck_at(group);
  if (!stuck) return;
  compare_stuck(world, group, *stuck, findings);
  const auto* any = stuck->entered.empty() ? nullptr : stuck->entered.begin()->second;
  if (any == nullptr || (stuck->absent.empty() && stuck->silent.empty())) return;
  std::vector<int> entered;
  for (const auto& [rank, operation] : stuck->entered) entered.push_back(rank);
  const auto waiting = those_waiting(*stuck, entered);
  if (!stuck->absent.empty()) {
    findings.says.push_back(fmt::format("group {}, collective {} ({}): {} entered it, {} never did",
                                        group.name, stuck->sequence, any->name, ranks_text(entered),
                                        ranks_text(stuck->absent)));
  }
  if (!stuck->silent.empty())
    findings.says.push_back(
        fmt::format("group {}: {} left no recording", group.name, ranks_text(stuck->silent)));
  for (const int rank : stuck->absent) {
    if (!world.index.contains(rank)) continue;
    findings.absent_why[world.index.at(rank)] =
        fmt::format("has not entered collective {} ({}) of group {}, as {} did", stuck->sequence, any->name,
                    group.name, ranks_text(entered));
  }
  wait_for(waiting, stuck->absent, world.index, findings);
  add_silent(world, group, *stuck, waiting, findings);
}

/// Those whom the others wait for. One that left no recording clears those that wait for it, and may wait,
/// too: it is a candidate only if there is no other.
void accuse_the_awaited(const World& world, RecorderFindings& findings, Analysis& analysis) {
  // Messages alone do not show a hang: they count for ranks that are late.
  if (!findings.waits.empty()) {
    for (const auto& [waiter, others] : findings.messages)
      findings.waits[waiter].insert(others.begin(), others.end());
  }
  auto blamed = blame(findings.waits);
  analysis.weak = !blamed.whom.empty() && std::ranges::includes(findings.silent, blamed.whom);
  if (!analysis.weak)
    std::erase_if(blamed.whom, [&](auto member) { return findings.silent.contains(member); });
  const bool few = blamed.whom.size() * 2 <= world.index.size();
  if (analysis.weak && !few) return;
  analysis.sure = blamed.sure && few && !analysis.weak;
  for (const auto i : blamed.whom) {
    const auto why = findings.absent_why.find(i);
    analysis.accused.push_back(
        {i, why == findings.absent_why.end() ? "others wait for a message from it" : why->second, true});
    analysis.sure = analysis.sure && !may_wait_unseen(world.evidence, i);
  }
}

/// It is certain if all that wait do so, directly or not, for those that are different.
void accuse_the_different(const RecorderFindings& findings, Analysis& analysis) {
  analysis.accused = findings.different;
  std::set<std::size_t> explained;
  for (const auto& one : findings.different) explained.insert(one.member);
  const auto waits_for_explained = [&](const auto& wait) {
    return std::ranges::any_of(wait.second, [&](auto other) { return explained.contains(other); });
  };
  for (bool grown = true; grown;) {
    grown = false;
    for (const auto& wait : findings.waits) {
      if (waits_for_explained(wait)) grown = explained.insert(wait.first).second || grown;
    }
  }
  analysis.sure = findings.clear && std::ranges::all_of(findings.waits, [&](const auto& wait) {
                    return explained.contains(wait.first);
                  });
}

void look_at_role(const Evidence& evidence, const std::string& role, const std::vector<Recording>& recordings,
                  Analysis& analysis) {
  World world{evidence, {}, groups_of(recordings)};
  for (std::size_t i = 0; i < evidence.members.size(); ++i) {
    const auto& member = evidence.members[i];
    if (member.role == role && member.rank) world.index[*member.rank] = i;
  }
  RecorderFindings findings;
  for (const auto& [name, group] : world.groups) look_at_group(world, group, findings);
  analysis.says.insert(analysis.says.end(), findings.says.begin(), findings.says.end());
  if (findings.different.empty()) {
    accuse_the_awaited(world, findings, analysis);
  } else {
    accuse_the_different(findings, analysis);
  }
}

Analysis analyze_recorder(const Evidence& evidence) {
  Analysis analysis;
  for (const auto& [role, recordings] : evidence.recordings) {
    if (analysis.accused.empty()) look_at_role(evidence, role, recordings, analysis);
  }
  return analysis;
}

const Registered<Analyzer> recorder_analyzer{
    {.order = 20, .name = "flight recorder", .analyze = analyze_recorder}};

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
