#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/registry.h"
#include "base/text.h"
#include "evidence/analyzers/waits.h"
#include "evidence/verdict.h"

// What stacks show: which ranks wait in a collective, and which are elsewhere.
namespace nlaunch::evidence {
namespace {

using Doing = Situation::Doing;

/// The ranks of one role, which meet in its collectives, sorted by what they do.
struct RoleWorld {
  std::vector<std::size_t> members;
  std::map<std::size_t, Situation> situations;

  [[nodiscard]] std::vector<std::size_t> those(Doing doing) const {
    std::vector<std::size_t> found;
    for (const auto i : members) {
      if (situations.at(i).doing == doing) found.push_back(i);
    }
    return found;
  }
};

std::map<std::string, RoleWorld> worlds_of(const Evidence& evidence) {
  std::map<std::string, RoleWorld> found;
  for (std::size_t i = 0; i < evidence.members.size(); ++i) {
    const auto& member = evidence.members[i];
    if (!member.rank) continue;
    auto& world = found[member.role];
    world.members.push_back(i);
    world.situations[i] = situation_of(member);
  }
  return found;
}

std::string names_in(const Evidence& evidence, const std::vector<std::size_t>& members) {
  std::vector<std::string> names;
  for (const auto i : members) names.push_back(evidence.members[i].name());
  return listed(names);
}

void say_groups(const Evidence& evidence, const RoleWorld& world, Analysis& analysis) {
  std::map<std::string, std::vector<std::size_t>> groups;
  for (const auto i : world.members) groups[describe(world.situations.at(i))].push_back(i);
  std::vector<std::pair<std::string, std::vector<std::size_t>>> sorted(groups.begin(), groups.end());
  std::ranges::stable_sort(sorted, std::ranges::greater{},
                           [](const auto& group) { return group.second.size(); });
  for (const auto& [what, members] : sorted)
    analysis.says.push_back(fmt::format("{}: {}", what, names_in(evidence, members)));
}

/// Some wait for all, and others are elsewhere. It is certain if these cannot be waiting for a GPU, and are
/// not the majority.
void accuse_those_elsewhere(const RoleWorld& world, const std::vector<std::size_t>& elsewhere,
                            Analysis& analysis) {
  bool certain = elsewhere.size() * 2 <= world.members.size();
  for (const auto i : elsewhere) {
    const auto& situation = world.situations.at(i);
    certain = certain && situation.certain;
    analysis.accused.push_back({i, describe(situation), true});
  }
  analysis.sure = certain;
}

/// Between two ranks, or a part of the world: a rank that waits there may wait for one that is where the
/// majority is.
bool is_between_some(const std::string& operation) {
  return operation.find("send") != std::string::npos || operation.find("recv") != std::string::npos ||
         operation.find("p2p") != std::string::npos;
}

/// Ranks also meet in groups of some of them, as with tensor parallelism: then the one that waits in another
/// collective than most may be where it ought to be.
bool has_smaller_groups(const Evidence& evidence, const RoleWorld& world) {
  const auto recordings = evidence.recordings.find(evidence.members[world.members.front()].role);
  return recordings != evidence.recordings.end() &&
         std::ranges::any_of(recordings->second, [&](const Recording& recording) {
           return std::ranges::any_of(recording.groups, [&](const auto& group) {
             return !group.second.operations.empty() && !group.second.ranks.empty() &&
                    group.second.ranks.size() < world.members.size();
           });
         });
}

/// All wait in collectives, and not all in the same one.
void accuse_the_few(const Evidence& evidence, const RoleWorld& world, const std::vector<std::size_t>& waiting,
                    Analysis& analysis) {
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> groups;
  for (const auto i : waiting) {
    const auto& situation = world.situations.at(i);
    groups[{situation.operation, situation.place}].push_back(i);
  }
  if (groups.size() < 2) return;
  const auto most =
      std::ranges::max_element(groups, {}, [](const auto& group) { return group.second.size(); });
  std::set<std::string> operations;
  bool between_some = false;
  bool tied = false;
  for (const auto& [key, members] : groups) {
    operations.insert(key.first);
    between_some = between_some || is_between_some(key.first);
    tied = tied || (&members != &most->second && members.size() == most->second.size());
  }
  for (const auto& [key, members] : groups) {
    if (&members == &most->second && !tied) continue;
    for (const auto i : members) {
      analysis.accused.push_back(
          {i, fmt::format("{}, where others are in {}", describe(world.situations.at(i)),
                          tied || most->first.first.empty() ? "another one" : most->first.first)});
    }
  }
  // Such a group may wait for other processes of the run, and so may a group of some ranks.
  const bool alone =
      world.members.size() == evidence.members.size() && waiting.size() == world.members.size();
  analysis.sure = !tied && alone && !between_some && analysis.accused.size() == 1 && operations.size() > 1 &&
                  most->second.size() > 1 && !has_smaller_groups(evidence, world);
}

/// No two are alike: of those without a GPU, one that waits, waits for another, and one that does not is a
/// candidate.
void accuse_those_who_do_not_wait(const Evidence& evidence, const RoleWorld& world, Analysis& analysis) {
  std::vector<Accused> busy;
  for (const auto i : world.members) {
    const auto& situation = world.situations.at(i);
    if (evidence.members[i].cuda) return;
    if (situation.how != "waits")
      busy.push_back({i, fmt::format("{}, while others wait", describe(situation))});
  }
  if (busy.size() * 2 <= world.members.size()) analysis.accused = std::move(busy);
}

/// No rank is seen waiting in a collective: the candidates are those that look unlike most others.
void accuse_the_unlike(const Evidence& evidence, const RoleWorld& world, Analysis& analysis) {
  std::map<std::string, std::vector<std::size_t>> groups;
  for (const auto i : world.members) {
    const auto& situation = world.situations.at(i);
    if (situation.doing == Doing::elsewhere) {
      groups[situation.place].push_back(i);
    } else if (situation.doing == Doing::unknown) {
      groups[situation.how == "waits" ? evidence.members[i].wait_channel : situation.how].push_back(i);
    }
  }
  if (groups.size() < 2) return;
  const auto most =
      std::ranges::max_element(groups, {}, [](const auto& group) { return group.second.size(); });
  if (most->second.size() * 2 <= world.members.size())
    return accuse_those_who_do_not_wait(evidence, world, analysis);
  for (const auto& [key, members] : groups) {
    if (&members == &most->second) continue;
    for (const auto i : members)
      analysis.accused.push_back({i, fmt::format("{}, unlike the others", describe(world.situations.at(i)))});
  }
}

/// If one has exited or is stopped, the others' stacks show less: for example those that are about to exit
/// because of it. One that is only stopped may be a victim in a debugger, if another does something of its
/// own.
bool has_a_better_reason(const Evidence& evidence, const RoleWorld& world, const Analysis& analysis) {
  const bool is_late = std::ranges::any_of(analysis.accused, [&](const auto& one) {
    return world.situations.contains(one.member) && does_own_thing(evidence, evidence.members[one.member]);
  });
  return std::ranges::any_of(world.situations, [&](const auto& one) {
    return is_out_of_action(one.second) && (one.second.doing == Doing::gone || !is_late);
  });
}

void look_at_world(const Evidence& evidence, const RoleWorld& world, Analysis& analysis) {
  constexpr std::size_t kTwo = 2;
  if (world.members.size() < kTwo) return;
  const auto waiting = world.those(Doing::collective);
  const auto on_gpu = world.those(Doing::gpu);
  const auto elsewhere = world.those(Doing::elsewhere);
  const auto unknown = world.those(Doing::unknown);
  if (unknown.size() < world.members.size()) say_groups(evidence, world, analysis);
  if (!elsewhere.empty() && !(waiting.empty() && on_gpu.empty())) {
    accuse_those_elsewhere(world, elsewhere, analysis);
    return;
  }
  if (!unknown.empty() && !waiting.empty()) {
    for (const auto i : unknown) analysis.accused.push_back({i, describe(world.situations.at(i)), true});
    return;
  }
  if (!waiting.empty()) {
    accuse_the_few(evidence, world, waiting, analysis);
  } else if (on_gpu.empty()) {
    accuse_the_unlike(evidence, world, analysis);
    analysis.weak = true;
  }
}

Analysis analyze_stacks(const Evidence& evidence) {
  Analysis analysis;
  for (const auto& [role, world] : worlds_of(evidence)) {
    look_at_world(evidence, world, analysis);
    analysis.weak = analysis.weak || has_a_better_reason(evidence, world, analysis);
  }
  analysis.sure = analysis.sure && !analysis.weak;
  return analysis;
}

const Registered<Analyzer> stacks_analyzer{{.order = 40, .name = "stacks", .analyze = analyze_stacks}};

}  // namespace
}  // namespace nlaunch::evidence
