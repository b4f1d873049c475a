#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "base/registry.h"
#include "evidence/analyzers/waits.h"
#include "evidence/verdict.h"

namespace nlaunch::evidence {
namespace {

// What /proc and the ends of processes show: who is stopped, stuck in the kernel, or gone, and servers that
// have lost a part.

using Doing = Situation::Doing;

/// The last output of a process that exited because another did.
bool blames_a_peer(const Member& member) {
  constexpr std::array<std::string_view, 11> kPatterns{"Connection closed by peer",
                                                       "Connection reset by peer",
                                                       "Connection refused",
                                                       "Broken pipe",
                                                       "ncclRemoteError",
                                                       "remote process exited",
                                                       "Socket Timeout",
                                                       "Timed out waiting",
                                                       "Detected mismatch between collectives",
                                                       "failed to pass monitoredBarrier",
                                                       "Watchdog caught collective operation timeout"};
  return std::ranges::any_of(
      kPatterns, [&](auto pattern) { return member.last_words.find(pattern) != std::string::npos; });
}

/// Gloo on the rank that received more than it expected: either it or its sender has a different size. In a
/// ring, the sender to rank r is rank r + 1 (gloo/allreduce.cc).
bool got_too_much(const Member& member) {
  return member.last_words.find("op.preamble.length <= op.nbytes") != std::string::npos;
}

std::optional<std::size_t> sender_to(const Evidence& evidence, const Member& receiver) {
  if (!receiver.rank) return std::nullopt;
  int size = 0;
  for (const auto& member : evidence.members) {
    if (member.role == receiver.role && member.rank) size = std::max(size, *member.rank + 1);
  }
  for (std::size_t i = 0; i < evidence.members.size(); ++i) {
    const auto& member = evidence.members[i];
    if (member.role == receiver.role && member.rank == (*receiver.rank + 1) % size) return i;
  }
  return std::nullopt;
}

/// Of the processes that have exited: the first that does not complain about another.
void accuse_the_gone(const Evidence& evidence, const std::vector<std::size_t>& gone, Analysis& analysis) {
  std::vector<std::size_t> silent;
  for (const auto i : gone) {
    const auto& member = evidence.members[i];
    if (got_too_much(member)) {
      analysis.accused.push_back({i, "received more from another rank than it expected: their sizes differ"});
      if (const auto sender = sender_to(evidence, member))
        analysis.accused.push_back(
            {*sender,
             fmt::format("sent {} more than it expected, as they exchange data in a ring", member.name())});
      analysis.sure = false;
      return;
    }
    if (!blames_a_peer(member)) silent.push_back(i);
  }
  std::ranges::stable_sort(silent, {}, [&](auto i) { return evidence.members[i].ended_at; });
  for (const auto i : silent) {
    const auto& member = evidence.members[i];
    const bool first = silent.size() == 1 || (i == silent.front() && member.ended_at > 0 &&
                                              member.ended_at < evidence.members[silent[1]].ended_at);
    analysis.accused.push_back({i, fmt::format("{}{}", member.ended.empty() ? "is gone" : member.ended,
                                               gone.size() > 1 && first ? ", before the others" : "")});
    if (first) {
      analysis.sure = true;
      return;
    }
  }
  analysis.sure = false;
}

/// One that runs again, by its title, is no loss: a server, or Ray, has started it anew.
bool is_back(const Member& member, const std::string& lost) {
  return std::ranges::any_of(member.parts,
                             [&](const Part& part) { return lost.starts_with(part.title + " (pid "); });
}

/// It answers, and generates what it is asked for.
bool serves_well(const Server& server) {
  return server.health.empty() && !server.core_silent && server.stalled == 0;
}

/// A server that has lost the process that computes may keep running, and never answers. A process that is no
/// server may have ended that part itself: it is only a candidate. So are two, of which either may have lost
/// its own because of the other.
void accuse_who_lost_a_part(const Evidence& evidence, Analysis& analysis) {
  std::set<std::string> processes;
  bool all_serve = true;
  for (std::size_t i = 0; i < evidence.members.size(); ++i) {
    const auto& member = evidence.members[i];
    const auto lost =
        std::ranges::find_if(member.killed_parts, [&](const auto& part) { return !is_back(member, part); });
    if (lost == member.killed_parts.end() || situation_of(member).doing == Doing::gone ||
        (member.server && serves_well(*member.server)) || !processes.insert(member.process).second)
      continue;
    all_serve = all_serve && member.server.has_value();
    analysis.accused.push_back({i, fmt::format("has lost a process: {}", *lost)});
  }
  if (analysis.accused.empty()) return;
  analysis.sure = analysis.accused.size() == 1 && all_serve;
  analysis.weak = !analysis.sure;
}

/// A process that has done its work and shuts down may take its time, and is not a hang: it is only reported.
void accuse_the_ending(const Evidence& evidence, Analysis& analysis) {
  for (std::size_t i = 0; i < evidence.members.size(); ++i) {
    const auto situation = situation_of(evidence.members[i]);
    if (situation.doing == Doing::ending) analysis.accused.push_back({i, describe(situation)});
  }
  if (analysis.accused.empty()) return;
  analysis.sure = false;
  analysis.weak = true;
}

Analysis analyze_processes(const Evidence& evidence) {
  Analysis analysis;
  analysis.sure = true;
  std::vector<std::size_t> gone;
  for (std::size_t i = 0; i < evidence.members.size(); ++i) {
    const auto situation = situation_of(evidence.members[i]);
    if (situation.doing == Doing::gone && evidence.members[i].rank) gone.push_back(i);
    if (situation.doing == Doing::stopped || situation.doing == Doing::uninterruptible)
      analysis.accused.push_back({i, describe(situation)});
  }
  if (analysis.accused.empty() && gone.empty()) accuse_who_lost_a_part(evidence, analysis);
  // A process that succeeded is not a cause at the end of the run; while others continue, it is.
  const bool held_up = !analysis.accused.empty();
  if (!held_up && gone.empty()) accuse_the_ending(evidence, analysis);
  if (!gone.empty() && !held_up) accuse_the_gone(evidence, gone, analysis);
  if (held_up && analysis.accused.size() == evidence.members.size() && analysis.accused.size() > 1)
    analysis.sure = false;
  for (const auto& accused : analysis.accused)
    analysis.says.push_back(fmt::format("{} {}", evidence.members[accused.member].str(), accused.why));
  return analysis;
}

const Registered<Analyzer> processes_analyzer{
    {.order = 10, .name = "processes", .analyze = analyze_processes}};

// What TCP connections show: which process waits for data from another one. A program that communicates over
// its own sockets (a star around rank 0, HTTP to an engine) is in no collective, but waits all the same.

Analysis analyze_connections(const Evidence& evidence) {
  Analysis analysis;
  Waits waits;
  for (std::size_t i = 0; i < evidence.members.size(); ++i) {
    const auto& waiter = evidence.members[i];
    if (waiter.connections.empty() || !waits_in_network(waiter)) continue;
    for (std::size_t j = 0; j < evidence.members.size(); ++j) {
      if (j != i && are_connected(waiter, evidence.members[j])) waits[i].insert(j);
    }
  }
  const auto blamed = blame(waits);
  if (!blamed.sure) return analysis;
  for (const auto i : blamed.whom) {
    const auto situation = situation_of(evidence.members[i]);
    // A member that is not known to do something of its own may well wait for a third one.
    if (situation.doing != Doing::elsewhere || situation.how == "waits") continue;
    analysis.accused.push_back({i, describe(situation)});
    for (const auto& [waiter, others] : waits) {
      if (!others.contains(i)) continue;
      analysis.says.push_back(fmt::format("{} waits for data from {}", evidence.members[waiter].name(),
                                          evidence.members[i].name()));
    }
  }
  analysis.sure =
      analysis.accused.size() == 1 && situation_of(evidence.members[analysis.accused[0].member]).certain;
  return analysis;
}

const Registered<Analyzer> connections_analyzer{
    {.order = 60, .name = "connections", .analyze = analyze_connections}};

}  // namespace
}  // namespace nlaunch::evidence
