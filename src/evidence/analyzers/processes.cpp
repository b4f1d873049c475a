#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/registry.h"
#include "evidence/analyzers/waits.h"
#include "evidence/verdict.h"

namespace nlaunch::evidence {
namespace {

// What /proc alone says: who is stopped, stuck in the kernel, or gone.

using Doing = Situation::Doing;

/// The last words of one who ended because another did.
bool blames_a_peer(const Member& member) {
  constexpr std::array<std::string_view, 10> kPatterns{"Connection closed by peer",
                                                       "Connection reset by peer",
                                                       "Connection refused",
                                                       "Broken pipe",
                                                       "ncclRemoteError",
                                                       "remote process exited",
                                                       "Socket Timeout",
                                                       "Timed out waiting",
                                                       "Detected mismatch between collectives",
                                                       "failed to pass monitoredBarrier"};
  return std::ranges::any_of(
      kPatterns, [&](auto pattern) { return member.last_words.find(pattern) != std::string::npos; });
}

/// Gloo on the rank that got more than it expected: either it or its sender has another size. In a ring, who
/// sends to rank r is rank r + 1 (gloo/allreduce.cc).
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

/// Of those that are gone: the first to go that does not complain of another.
void accuse_the_gone(const Evidence& evidence, const std::vector<std::size_t>& gone, Analysis& analysis) {
  std::vector<std::size_t> silent;
  for (const auto i : gone) {
    const auto& member = evidence.members[i];
    if (got_too_much(member)) {
      analysis.accused.push_back({i, "got more from another rank than it expected: their sizes differ"});
      if (const auto sender = sender_to(evidence, member))
        analysis.accused.push_back(
            {*sender,
             fmt::format("sent {} more than it expected, where they go around in a ring", member.name())});
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
  // One that has ended well at its own end is no reason; while others go on, it is.
  const bool held_up = !analysis.accused.empty();
  if (!gone.empty() && !held_up) accuse_the_gone(evidence, gone, analysis);
  if (held_up && analysis.accused.size() == evidence.members.size() && analysis.accused.size() > 1)
    analysis.sure = false;
  for (const auto& accused : analysis.accused)
    analysis.says.push_back(fmt::format("{} {}", evidence.members[accused.member].str(), accused.why));
  return analysis;
}

const Registered<Analyzer> processes_analyzer{
    {.order = 10, .name = "processes", .analyze = analyze_processes}};

// What TCP connections say: who waits for what another one has to send. A program that talks over sockets of
// its own (a star around rank 0, HTTP to an engine) is in no collective, and waits all the same.

/// Where the kernel has a thread that waits for the network (net/, fs/select.c, fs/eventpoll.c of Linux 6.1).
bool waits_in_network(const Member& member) {
  constexpr std::array kChannels{"wait_woken",  "sk_wait_data",          "ep_poll",        "do_poll",
                                 "do_sys_poll", "poll_schedule_timeout", "inet_csk_accept"};
  constexpr std::array kCalls{"recv",       "recvfrom", "poll",   "ppoll",
                              "epoll_wait", "select",   "accept", "accept4"};
  const auto in_kernel = [&](const char* channel) { return member.wait_channel.starts_with(channel); };
  if (std::ranges::any_of(kChannels, in_kernel)) return true;
  if (member.native.empty()) return false;
  return std::ranges::any_of(kCalls, [&](const char* call) {
    const auto& inner = member.native.front().function;
    return inner == call || inner == fmt::format("__{}", call) || inner == fmt::format("__libc_{}", call);
  });
}

bool are_connected(const Member& one, const Member& other) {
  return std::ranges::any_of(one.connections, [&](const Connection& here) {
    return std::ranges::any_of(other.connections, [&](const Connection& there) {
      return here.local == there.peer && here.peer == there.local;
    });
  });
}

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
    // Who is not known to do something of its own may well wait for a third one.
    if (situation.doing != Doing::elsewhere || situation.how == "waits") continue;
    analysis.accused.push_back({i, describe(situation)});
    for (const auto& [waiter, others] : waits) {
      if (!others.contains(i)) continue;
      analysis.says.push_back(fmt::format("{} waits for what {} has to send", evidence.members[waiter].name(),
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
