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

using Index = std::map<int, std::size_t>;  // of members, by rank of the role

/// What one rank recorded of a group.
struct Seen {
  const RecordedGroup* group = nullptr;
  bool is_earlier = false;  ///< see Recording::is_earlier
};

/// A group, combined from the recordings of its ranks.
struct RecordedRanks {
  std::string name;
  std::string description;
  std::vector<int> ranks;
  std::map<int, Seen> recorded;  ///< by rank
};

/// By name and ranks: PyTorch can give the same name to groups of different ranks.
using Groups = std::map<std::pair<std::string, std::vector<int>>, RecordedRanks>;

/// All that is known of the ranks of one role.
struct World {
  const Evidence& evidence;
  Index index;
  Groups groups;

  [[nodiscard]] const Member* member_of(int rank) const {
    const auto found = index.find(rank);
    return found == index.end() ? nullptr : &evidence.members[found->second];
  }
  /// For Waits: of a rank without evidence, a number that no member has.
  [[nodiscard]] std::size_t number_of(int rank) const {
    const auto found = index.find(rank);
    return found == index.end() ? evidence.members.size() + static_cast<std::size_t>(rank) : found->second;
  }
  [[nodiscard]] bool is_known(std::size_t number) const { return number < evidence.members.size(); }
};

Groups groups_of(const std::vector<Recording>& recordings) {
  Groups groups;
  for (const auto& recording : recordings) {
    for (const auto& [name, recorded] : recording.groups) {
      auto& group = groups[{name, recorded.ranks}];
      group.description = recorded.description;
      group.name = recorded.description.empty() ? name : fmt::format("{} ({})", name, recorded.description);
      group.recorded[recording.rank] = {&recorded, recording.is_earlier};
      group.ranks = recorded.ranks;
    }
  }
  for (auto& [key, group] : groups) {
    if (!group.ranks.empty()) continue;
    for (const auto& [rank, seen] : group.recorded) group.ranks.push_back(rank);
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

const RecordedOperation* operation_at(const RecordedGroup& group, std::int64_t sequence) {
  const auto found = std::ranges::find_if(group.operations, [&](const auto& operation) {
    return !operation.point_to_point && operation.sequence == sequence;
  });
  return found == group.operations.end() ? nullptr : &*found;
}

/// Where the group is stuck: the state of each rank at the first collective that is open on one of them.
struct Stuck {
  std::int64_t sequence = 0;
  std::map<int, const RecordedOperation*> entered;  ///< by rank
  std::vector<int> absent;                          ///< have not entered it
  std::vector<int> silent;                          ///< unknown: left no recording, or one of before that
};

/// One in an earlier recording counts if no other rank has gone further since.
std::optional<std::int64_t> first_open(const RecordedRanks& group) {
  std::int64_t newest = -1;
  for (const auto& [rank, seen] : group.recorded) {
    if (!seen.is_earlier) newest = std::max(newest, last_entered(*seen.group));
  }
  std::optional<std::int64_t> first;
  for (const auto& [rank, seen] : group.recorded) {
    const auto* open = open_one(*seen.group);
    if (open == nullptr || (seen.is_earlier && open->sequence < newest)) continue;
    first = std::min(first.value_or(open->sequence), open->sequence);
  }
  return first;
}

std::optional<Stuck> stuck_at(const RecordedRanks& group) {
  const auto first = first_open(group);
  if (!first) return std::nullopt;
  Stuck stuck{*first, {}, {}, {}};
  for (const int rank : group.ranks) {
    const auto recorded = group.recorded.find(rank);
    if (recorded == group.recorded.end()) {
      stuck.silent.push_back(rank);
      continue;
    }
    const auto& seen = recorded->second;
    if (const auto* operation = operation_at(*seen.group, *first)) {
      stuck.entered[rank] = operation;
    } else if (last_entered(*seen.group) < *first) {
      (seen.is_earlier ? stuck.silent : stuck.absent).push_back(rank);
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

/// The root of these, or all but the root, can be done before others have entered.
bool has_root(const std::string& operation) {
  return operation.find("gather") == 0 || operation.find("scatter") == 0 ||
         operation.find("broadcast") != std::string::npos || operation == "reduce";
}

/// "[[32,32],[8]] Float Half": "1024 8 Float Half". The same number of elements in another shape is no
/// mismatch.
std::string element_counts(const std::string& sizes) {
  std::string counts;
  int depth = 0;
  std::uint64_t elements = 1;
  for (std::size_t at = 0; at < sizes.size(); ++at) {
    const char c = sizes[at];
    if (c == '[') {
      ++depth;
      elements = 1;
    } else if (c == ']') {
      constexpr int kTensor = 2;
      if (depth == kTensor) counts += fmt::format("{} ", elements);
      if (--depth == 0) return counts + sizes.substr(at + 1);
    } else if (depth > 0 && c >= '0' && c <= '9') {
      std::uint64_t size = 0;
      const auto* begin = sizes.data() + at;
      const auto* stopped = std::from_chars(begin, sizes.data() + sizes.size(), size).ptr;
      elements *= size;
      at += static_cast<std::size_t>(stopped - begin) - 1;
    }
  }
  return sizes;
}

/// What must be the same on all ranks.
std::string signature_of(const RecordedOperation& operation) {
  if (may_differ(operation.name)) return operation.name;
  return fmt::format("{} {} -> {}", operation.name, element_counts(operation.inputs),
                     element_counts(operation.outputs));
}

std::string describe(const RecordedOperation& operation) {
  if (may_differ(operation.name)) return operation.name;
  return fmt::format("{} {} -> {}", operation.name, operation.inputs, operation.outputs);
}

/// A rank that waits for a message waits for its sender, and may be late elsewhere for that reason alone.
void add_messages(const World& world, const RecordedRanks& group, Waits& waits) {
  for (const auto& [rank, seen] : group.recorded) {
    for (const auto& operation : seen.group->operations) {
      if (!operation.point_to_point || operation.state == "completed") continue;
      const auto peer = static_cast<std::size_t>(operation.peer);
      const bool known = !seen.is_earlier && operation.peer >= 0 && peer < group.ranks.size();
      // One that nothing is known about is at least not to blame itself.
      waits[world.number_of(rank)].insert(world.number_of(known ? group.ranks[peer] : rank));
    }
  }
}

struct RecorderFindings {
  Waits waits;
  Waits messages;                  ///< ranks that wait for a message
  std::vector<Accused> different;  ///< entered another collective, or with a different size
  bool clear = true;               ///< and it is clear that the others are right
  std::map<std::size_t, std::string> absent_why;
  std::set<std::size_t> silent;  ///< whether they wait themselves is unknown
  std::set<std::size_t> out;     ///< of those without a recording, the ones that do nothing any more
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
void wait_for(const World& world, const std::vector<int>& waiting, const std::vector<int>& others,
              RecorderFindings& findings) {
  for (const int waiter : waiting) {
    for (const int other : others) {
      if (waiter != other) findings.waits[world.number_of(waiter)].insert(world.number_of(other));
    }
  }
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(std::to_string(rank));
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", listed(names));
}

/// Those that entered the same.
struct Alike {
  std::string what;
  std::vector<int> ranks;
};

/// A collective that not all ranks of a group entered as the same.
struct Mismatch {
  std::int64_t sequence = 0;
  std::map<std::string, Alike> entered;  ///< by signature
};

/// Some ranks have completed the collective in which others wait, and nobody is late: they may not have been
/// in the same one.
bool have_crossed(const Stuck& stuck) {
  const auto completed = [](const auto& one) { return one.second->state == "completed"; };
  const auto rooted = [](const auto& one) { return has_root(one.second->name); };
  return stuck.absent.empty() && std::ranges::none_of(stuck.entered, rooted) &&
         std::ranges::any_of(stuck.entered, completed) && !std::ranges::all_of(stuck.entered, completed);
}

/// Sizes are compared for all_reduce only: the others may differ in size by design.
bool are_alike(const RecordedOperation& one, const RecordedOperation& other) {
  return one.name == other.name &&
         (one.name != "all_reduce" || element_counts(one.inputs) == element_counts(other.inputs));
}

/// The first collective up to this one that was not the same on all ranks: NCCL may complete it all the same,
/// with wrong data.
std::int64_t first_different(const RecordedRanks& group, std::int64_t sequence) {
  std::map<std::int64_t, const RecordedOperation*> reference;
  for (const auto& [rank, seen] : group.recorded) {
    for (const auto& operation : seen.group->operations) {
      if (operation.point_to_point || operation.sequence >= sequence) continue;
      const auto& other = *reference.try_emplace(operation.sequence, &operation).first->second;
      if (!are_alike(operation, other)) sequence = operation.sequence;
    }
  }
  return sequence;
}

/// At the collective in which the group is stuck, or before it if the ranks have crossed.
std::optional<Mismatch> mismatch_in(const RecordedRanks& group, const Stuck& stuck) {
  Mismatch mismatch{have_crossed(stuck) ? first_different(group, stuck.sequence) : stuck.sequence, {}};
  for (const auto& [rank, seen] : group.recorded) {
    const auto* operation = operation_at(*seen.group, mismatch.sequence);
    if (operation == nullptr) continue;
    auto& alike = mismatch.entered[signature_of(*operation)];
    if (alike.ranks.empty()) alike.what = describe(*operation);
    alike.ranks.push_back(rank);
  }
  return mismatch.entered.size() > 1 ? std::optional(mismatch) : std::nullopt;
}

bool share_a_rank(const RecordedRanks& one, const RecordedRanks& other) {
  return std::ranges::any_of(
      one.ranks, [&](int rank) { return std::ranges::find(other.ranks, rank) != other.ranks.end(); });
}

/// Before this collective they did the same, and they did something: groups with the same description and
/// size may still have nothing in common, as those of an actor and a critic.
bool have_the_same_history(const RecordedRanks& one, const RecordedRanks& other, std::int64_t sequence) {
  std::map<std::int64_t, const RecordedOperation*> before;
  for (const auto& operation : one.recorded.begin()->second.group->operations) {
    if (!operation.point_to_point && operation.sequence < sequence) before[operation.sequence] = &operation;
  }
  bool any = false;
  for (const auto& operation : other.recorded.begin()->second.group->operations) {
    if (operation.point_to_point) continue;
    const auto found = before.find(operation.sequence);
    if (found == before.end()) continue;
    if (signature_of(operation) != signature_of(*found->second)) return false;
    any = true;
  }
  return any;
}

/// Groups like the tensor-parallel ones: of other ranks, as many, with the same description and history.
bool are_of_a_kind(const RecordedRanks& one, const RecordedRanks& other, std::int64_t sequence) {
  return one.description == other.description && one.ranks.size() == other.ranks.size() &&
         !share_a_rank(one, other) && have_the_same_history(one, other, sequence);
}

/// What the ranks of a group ought to have entered.
struct Usual {
  std::map<std::string, Alike>::const_iterator those;
  bool is_of_others = false;  ///< of other groups; else of most of its own ranks
  bool is_clear = false;      ///< it leaves no doubt about those that entered something else
};

/// What the ranks of other groups of its kind entered as their collective with this number, if all of them
/// agree.
std::optional<Usual> usual_beside(const World& world, const RecordedRanks& group, const Mismatch& mismatch) {
  constexpr int kEnough = 32;
  std::set<std::string> entered;
  int others = 0;
  for (const auto& [key, other] : world.groups) {
    if (others >= kEnough || !are_of_a_kind(group, other, mismatch.sequence)) continue;
    bool any = false;
    for (const auto& [rank, seen] : other.recorded) {
      const auto* operation = operation_at(*seen.group, mismatch.sequence);
      if (operation == nullptr) continue;
      entered.insert(signature_of(*operation));
      any = true;
    }
    others += any ? 1 : 0;
    if (entered.size() > 1) return std::nullopt;
  }
  const auto those = entered.empty() ? mismatch.entered.end() : mismatch.entered.find(*entered.begin());
  if (those == mismatch.entered.end()) return std::nullopt;
  return Usual{those, true, others > 1};  // one other group may be the odd one itself
}

/// What most of its ranks entered, else what the other groups of its kind did.
std::optional<Usual> usual_of(const World& world, const RecordedRanks& group, const Mismatch& mismatch) {
  for (auto those = mismatch.entered.begin(); those != mismatch.entered.end(); ++those) {
    if (those->second.ranks.size() * 2 > group.ranks.size()) return Usual{those, false, true};
  }
  return usual_beside(world, group, mismatch);
}

/// Ranks of a group in which not all entered the same: those that did not enter what is usual, first. All are
/// candidates if it is not clear what that is.
void compare_stuck(const World& world, const RecordedRanks& group, const Stuck& stuck,
                   RecorderFindings& findings) {
  const auto mismatch = mismatch_in(group, stuck);
  if (!mismatch) return;
  const auto& entered = mismatch->entered;
  const auto usual = usual_of(world, group, *mismatch);
  const bool is_clear = usual && usual->is_clear;
  const auto reference =
      usual ? usual->those
            : std::ranges::max_element(entered, {}, [](const auto& one) { return one.second.ranks.size(); });
  findings.clear = findings.clear && is_clear;
  const auto accuse = [&](const Alike& alike) {
    const bool is_reference = &alike == &reference->second;
    for (const int rank : alike.ranks) {
      if (world.member_of(rank) == nullptr) continue;
      findings.different.push_back(
          {world.number_of(rank), fmt::format("entered {} as collective {} of group {}, where {} entered {}",
                                              alike.what, mismatch->sequence, group.name,
                                              is_reference ? "others" : ranks_text(reference->second.ranks),
                                              is_reference ? "another one" : reference->second.what)});
    }
  };
  for (const auto& [signature, alike] : entered) {
    const bool is_usual = usual && &alike == &reference->second;
    findings.says.push_back(fmt::format(
        "group {}, collective {}: {} entered {}{}", group.name, mismatch->sequence, ranks_text(alike.ranks),
        alike.what, is_usual && usual->is_of_others ? ", as the other groups of its kind did" : ""));
    if (is_usual) continue;
    accuse(alike);
    if (is_clear) wait_for(world, those_waiting(stuck, reference->second.ranks), alike.ranks, findings);
  }
  if (usual && !is_clear) accuse(reference->second);
}

/// Ranks of which the recordings do not tell whether they entered the collective. One that has ended or is
/// stopped enters nothing any more.
void add_silent(const World& world, const RecordedRanks& group, const Stuck& stuck,
                const std::vector<int>& waiting, RecorderFindings& findings) {
  for (const int rank : stuck.silent) {
    const bool is_recorded = group.recorded.contains(rank);
    const auto* member = world.member_of(rank);
    const auto what = is_recorded ? "left only a recording of before" : "left no recording";
    findings.says.push_back(fmt::format("group {}: rank {} {}", group.name, rank, what));
    if (member == nullptr) continue;
    const auto number = world.number_of(rank);
    const auto situation = situation_of(*member);
    const bool is_out = is_out_of_action(situation);
    (is_out ? findings.out : findings.silent).insert(number);
    findings.absent_why[number] =
        is_out ? fmt::format("{}, and {} of group {} wait{} for it", evidence::describe(situation),
                             ranks_text(waiting), group.name, waiting.size() == 1 ? "s" : "")
               : fmt::format("{}, and {} of group {} may be waiting for it", what, ranks_text(waiting),
                             group.name);
  }
  wait_for(world, waiting, stuck.silent, findings);
}

void look_at_group(const World& world, const RecordedRanks& group, RecorderFindings& findings) {
  add_messages(world, group, findings.messages);
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
  for (const int rank : stuck->absent) {
    findings.absent_why[world.number_of(rank)] =
        fmt::format("has not entered collective {} ({}) of group {}, as {} did", stuck->sequence, any->name,
                    group.name, ranks_text(entered));
  }
  wait_for(world, waiting, stuck->absent, findings);
  add_silent(world, group, *stuck, waiting, findings);
}

/// Those whom the others wait for, the best proof first: ranks that are known not to have entered, then ranks
/// that do nothing any more, then ranks of which nothing is known. Such a rank clears those that wait for it,
/// and may wait, too: it is a candidate only if there is no other.
void accuse_the_awaited(const World& world, RecorderFindings& findings, Analysis& analysis) {
  // Messages alone do not show a hang: they count for ranks that are late.
  if (!findings.waits.empty()) {
    for (const auto& [waiter, others] : findings.messages)
      findings.waits[waiter].insert(others.begin(), others.end());
  }
  auto blamed = blame(findings.waits);
  const auto all = blamed.whom.size();
  std::erase_if(blamed.whom, [&](auto number) { return !world.is_known(number); });
  for (const auto* less : {&findings.silent, &findings.out}) {
    if (!std::ranges::includes(*less, blamed.whom))
      std::erase_if(blamed.whom, [&](auto number) { return less->contains(number); });
  }
  const bool are_all = blamed.whom.size() == all;  // else it may wait for one of the others
  const bool few = blamed.whom.size() * 2 <= world.index.size();
  analysis.weak = !blamed.whom.empty() && std::ranges::includes(findings.silent, blamed.whom);
  if (analysis.weak && !few) return;
  analysis.sure = blamed.sure && few && !analysis.weak;
  for (const auto i : blamed.whom) {
    const auto why = findings.absent_why.find(i);
    analysis.accused.push_back(
        {i, why == findings.absent_why.end() ? "others wait for a message from it" : why->second, true});
    analysis.sure =
        analysis.sure && !may_wait_unseen(world.evidence, i) &&
        (are_all || findings.out.contains(i) || does_own_thing(world.evidence, world.evidence.members[i]));
  }
}

/// It is certain if all that wait do so, directly or not, for those that are different, and for no other that
/// is known not to have come.
void accuse_the_different(const RecorderFindings& findings, Analysis& analysis) {
  analysis.accused = findings.different;
  std::set<std::size_t> explained;
  for (const auto& one : findings.different) explained.insert(one.member);
  const auto waits_for_explained = [&](const auto& wait) {
    const auto is_explained = [&](auto other) { return explained.contains(other); };
    return std::ranges::any_of(wait.second, is_explained) &&
           std::ranges::all_of(wait.second, [&](auto other) {
             return is_explained(other) || findings.silent.contains(other);
           });
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
  for (const auto& [key, group] : world.groups) look_at_group(world, group, findings);
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

}  // namespace
}  // namespace nlaunch::evidence
