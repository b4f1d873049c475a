#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "evidence/verdict.h"
#include "evidence/waits.h"

// What PyTorch's flight recorder says: in each group the first collective that does not end, who has entered
// it, who has not, and who has entered another one or the same with another size.
namespace nlaunch::evidence {
namespace {

using Operations = std::map<int, const RecordedOperation*>;  // by rank

/// A group as the recordings of its ranks show it together.
struct Group {
  std::string name;
  std::vector<int> ranks;
  std::map<int, const RecordedGroup*> recorded;  ///< by rank
};

std::map<std::string, Group> groups_of(const std::vector<Recording>& recordings) {
  std::map<std::string, Group> groups;
  for (const auto& recording : recordings) {
    for (const auto& [name, recorded] : recording.groups) {
      auto& group = groups[name];
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

/// The first collective of a rank that has not ended.
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

/// Where the group is stuck: what each rank has at the first collective that is open on one of them.
struct Stuck {
  std::int64_t sequence = 0;
  Operations entered;
  std::vector<int> absent;  ///< have not entered it
  std::vector<int> silent;  ///< left no recording
};

std::optional<Stuck> stuck_at(const Group& group) {
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
    const auto& operations = recorded->second->operations;
    const auto found = std::ranges::find_if(operations, [&](const auto& operation) {
      return !operation.point_to_point && operation.sequence == *first;
    });
    if (found != operations.end()) {
      stuck.entered[rank] = &*found;
    } else if (last_entered(*recorded->second) < *first) {
      stuck.absent.push_back(rank);
    }
  }
  return stuck;
}

/// Ranks give and get parts of different sizes in these.
bool may_differ(const std::string& operation) {
  return operation.find("gather") == 0 || operation.find("scatter") == 0 ||
         operation.find("all_to_all") != std::string::npos ||
         operation.find("alltoall") != std::string::npos || operation.find("coalesced") != std::string::npos;
}

/// What has to be the same on all ranks.
std::string signature(const RecordedOperation& operation) {
  if (may_differ(operation.name)) return operation.name;
  return fmt::format("{} {} -> {}", operation.name, operation.inputs, operation.outputs);
}

/// One that waits for a message waits for its sender, and may be late elsewhere for that alone.
void add_messages(const Group& group, const std::map<int, std::size_t>& index, Waits& waits) {
  for (const auto& [rank, recorded] : group.recorded) {
    for (const auto& operation : recorded->operations) {
      if (!operation.point_to_point || operation.state == "completed" || !index.contains(rank)) continue;
      const auto peer = static_cast<std::size_t>(operation.peer);
      const bool known =
          operation.peer >= 0 && peer < group.ranks.size() && index.contains(group.ranks[peer]);
      // Of whom nothing tells, it is at least not to blame itself.
      waits[index.at(rank)].insert(index.at(known ? group.ranks[peer] : rank));
    }
  }
}

/// Who sees what others see: indices of members by rank of the role.
using Index = std::map<int, std::size_t>;

struct Findings {
  Waits waits;
  Waits messages;                  ///< who waits for a message
  std::vector<Accused> different;  ///< entered another collective, or with another size
  bool minority = true;            ///< they are fewer than the others
  std::map<std::size_t, std::string> absent_why;
  std::vector<std::string> says;
};

std::string ranks_text(const std::vector<int>& ranks) {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(std::to_string(rank));
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", listed(names));
}

void compare(const Group& group, const Stuck& stuck, const Index& index, Findings& findings) {
  std::map<std::string, std::vector<int>> same;
  for (const auto& [rank, operation] : stuck.entered) same[signature(*operation)].push_back(rank);
  if (same.size() < 2) return;
  const auto most = std::ranges::max_element(same, {}, [](const auto& one) { return one.second.size(); });
  findings.minority = findings.minority && most->second.size() * 2 > stuck.entered.size();
  for (const auto& [what, ranks] : same) {
    findings.says.push_back(fmt::format("group {}, collective {}: {} entered {}", group.name, stuck.sequence,
                                        ranks_text(ranks), what));
    if (&ranks == &most->second && most->second.size() * 2 > stuck.entered.size()) continue;
    for (const int rank : ranks) {
      if (index.contains(rank))
        findings.different.push_back(
            {index.at(rank),
             fmt::format("entered {} as collective {} of group {}, where {} entered {}", what, stuck.sequence,
                         group.name, &ranks == &most->second ? "others" : ranks_text(most->second),
                         &ranks == &most->second ? "another one" : most->first)});
    }
  }
}

void look_at(const Group& group, const Index& index, Findings& findings) {
  add_messages(group, index, findings.messages);
  const auto stuck = stuck_at(group);
  if (!stuck) return;
  compare(group, *stuck, index, findings);
  const auto* any = stuck->entered.empty() ? nullptr : stuck->entered.begin()->second;
  if (any == nullptr || (stuck->absent.empty() && stuck->silent.empty())) return;
  std::vector<int> waiting;
  for (const auto& [rank, operation] : stuck->entered) waiting.push_back(rank);
  if (!stuck->absent.empty()) {
    findings.says.push_back(fmt::format("group {}, collective {} ({}): {} entered it, {} never did",
                                        group.name, stuck->sequence, any->name, ranks_text(waiting),
                                        ranks_text(stuck->absent)));
  }
  if (!stuck->silent.empty())
    findings.says.push_back(
        fmt::format("group {}: {} left no recording", group.name, ranks_text(stuck->silent)));
  for (const int rank : stuck->absent) {
    if (!index.contains(rank)) continue;
    findings.absent_why[index.at(rank)] =
        fmt::format("has not entered collective {} ({}) of group {}, as {} did", stuck->sequence, any->name,
                    group.name, ranks_text(waiting));
    for (const int waiter : waiting) {
      if (index.contains(waiter)) findings.waits[index.at(waiter)].insert(index.at(rank));
    }
  }
}

void look_at_role(const Evidence& evidence, const std::string& role, const std::vector<Recording>& recordings,
                  Analysis& analysis) {
  Index index;
  for (std::size_t i = 0; i < evidence.members.size(); ++i) {
    const auto& member = evidence.members[i];
    if (member.role == role && member.rank) index[*member.rank] = i;
  }
  Findings findings;
  for (const auto& [name, group] : groups_of(recordings)) look_at(group, index, findings);
  analysis.says.insert(analysis.says.end(), findings.says.begin(), findings.says.end());
  if (!findings.different.empty()) {
    analysis.accused = findings.different;
    analysis.sure = findings.minority && findings.waits.empty();
    return;
  }
  // Messages alone do not show a hang: they count for those who are late.
  if (!findings.waits.empty()) {
    for (const auto& [waiter, others] : findings.messages)
      findings.waits[waiter].insert(others.begin(), others.end());
  }
  const auto blamed = blame(findings.waits);
  analysis.sure = blamed.sure && blamed.whom.size() * 2 <= index.size();
  for (const auto i : blamed.whom) {
    const auto why = findings.absent_why.find(i);
    analysis.accused.push_back(
        {i, why == findings.absent_why.end() ? "others wait for a message from it" : why->second});
    analysis.sure = analysis.sure && !may_wait_unseen(evidence, i);
  }
}

}  // namespace

Analysis analyze_recorder(const Evidence& evidence) {
  Analysis analysis{"flight recorder", false, {}, {}, false};
  for (const auto& [role, recordings] : evidence.recordings) {
    if (analysis.accused.empty()) look_at_role(evidence, role, recordings, analysis);
  }
  return analysis;
}

}  // namespace nlaunch::evidence
