#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "evidence/verdict.h"
#include "evidence/waits.h"

// What TCP connections say: who waits for what another one has to send. A program that talks over sockets of
// its own (a star around rank 0, HTTP to an engine) is in no collective, and waits all the same.
namespace nlaunch::evidence {
namespace {

using Doing = Situation::Doing;

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

}  // namespace

Analysis analyze_connections(const Evidence& evidence) {
  Analysis analysis{"connections", false, {}, {}, false};
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

}  // namespace nlaunch::evidence
