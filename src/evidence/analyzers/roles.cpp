#include <algorithm>
#include <map>

#include "base/registry.h"
#include "evidence/analyzers/waits.h"
#include "evidence/verdict.h"

// Two roles that meet in one collective, as learners and engines do in a weight sync: if all of one role wait
// in it and the other is elsewhere, the other has not entered.
namespace nlaunch::evidence {
namespace {

using Doing = Situation::Doing;

/// The members of one role, by whether they wait in a collective.
struct RoleSide {
  std::vector<std::size_t> members;
  std::size_t waiting = 0;  ///< in a collective, or for their GPU
  std::size_t away = 0;     ///< doing something of their own
  /// Each of them waits with one process, in a collective that no other of its role could have to enter.
  bool meets_others = true;
};

/// How many processes of a member wait in a collective; its main one may do so for its GPU.
std::size_t waiting_processes(const Member& member) {
  const auto doing = situation_of(member).doing;
  const auto parts = std::ranges::count_if(
      member.parts, [](const Part& part) { return situation_of(part).doing == Doing::collective; });
  return static_cast<std::size_t>(parts) + (doing == Doing::collective || doing == Doing::gpu ? 1 : 0);
}

std::map<std::string, RoleSide> sides_of(const Evidence& evidence) {
  std::map<std::string, RoleSide> sides;
  for (std::size_t i = 0; i < evidence.members.size(); ++i) {
    const auto& member = evidence.members[i];
    auto& side = sides[member.role];
    const auto processes = waiting_processes(member);
    side.members.push_back(i);
    if (processes > 0) ++side.waiting;
    if (processes == 0 && does_own_thing(evidence, member)) ++side.away;
    const bool on_gpu = situation_of(member).doing == Doing::gpu;
    const bool has_peers = member.rank && side.members.size() > 1;
    side.meets_others = side.meets_others && processes == 1 && !on_gpu && !has_peers;
  }
  return sides;
}

Analysis analyze_roles(const Evidence& evidence) {
  Analysis analysis;
  const RoleSide* waiting = nullptr;
  const RoleSide* away = nullptr;
  const auto sides = sides_of(evidence);
  for (const auto& [role, side] : sides) {
    const bool all_wait = side.waiting == side.members.size();
    const bool all_away = side.away == side.members.size();
    if ((all_wait && waiting != nullptr) || (all_away && away != nullptr)) return analysis;
    if (all_wait) waiting = &side;
    if (all_away) away = &side;
  }
  if (waiting == nullptr || away == nullptr) return analysis;
  for (const auto i : away->members)
    analysis.accused.push_back({i, describe(situation_of(evidence.members[i]))});
  analysis.sure = away->members.size() == 1 && waiting->meets_others && sides.size() == 2;
  analysis.weak = !analysis.sure;
  return analysis;
}

const Registered<Analyzer> roles_analyzer{{.order = 45, .name = "roles", .analyze = analyze_roles}};

}  // namespace
}  // namespace nlaunch::evidence
