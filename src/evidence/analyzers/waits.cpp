#include "evidence/analyzers/waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <string_view>

#include "base/text.h"

namespace nlaunch::evidence {
namespace {

/// Code of Python and its packages that waits for an answer over the network, as py-spy shortens its files.
bool is_of_network(const Frame& frame) {
  constexpr std::array<std::string_view, 6> kPackages{"http/",     "urllib/", "urllib3/",
                                                      "requests/", "httpx/",  "httpcore/"};
  return frame.file == "socket.py" || frame.file == "ssl.py" ||
         std::ranges::any_of(kPackages, [&](auto package) { return frame.file.starts_with(package); });
}

/// Code in which a thread waits for another one, or for any of many things: it does not show which.
bool hands_over(const Frame& frame) {
  constexpr std::array<std::string_view, 10> kFiles{"ray/",
                                                    "threading.py",
                                                    "queue.py",
                                                    "selectors.py",
                                                    "asyncio/",
                                                    "concurrent/futures/",
                                                    "multiprocessing/",
                                                    "aiohttp/",
                                                    "anyio/",
                                                    "zmq/"};
  return std::ranges::any_of(kFiles, [&](auto file) { return frame.file.starts_with(file); });
}

/// Its main thread waits for another one: one that may wait for a server's answer.
bool waits_for_thread(const Member& member) {
  constexpr std::size_t kInnermost = 3;  // CPython's own frame is below those of libc
  if (!member.python.empty()) return hands_over(member.python.front());
  return std::ranges::any_of(member.native | std::views::take(kInnermost), [](const Frame& frame) {
    return frame.function.starts_with("PyThread_acquire_lock");
  });
}

}  // namespace

Blame blame(const Waits& waits) {
  Blame result;
  std::set<std::size_t> waited_for;
  for (const auto& [waiter, others] : waits) waited_for.insert(others.begin(), others.end());
  for (const auto member : waited_for) {
    const auto own = waits.find(member);
    if (own == waits.end() || own->second.empty()) result.whom.insert(member);
  }
  result.sure = !result.whom.empty();
  if (!result.sure) result.whom = waited_for;
  return result;
}

std::string listed(const std::vector<std::string>& names) {
  if (names.size() < 2) return names.empty() ? "" : names.front();
  constexpr std::size_t kMost = 8;
  if (names.size() > kMost) {
    return fmt::format("{} and {} more", text::join(std::vector(names.begin(), names.begin() + kMost), ", "),
                       names.size() - kMost);
  }
  return fmt::format("{} and {}", text::join(std::vector(names.begin(), names.end() - 1), ", "),
                     names.back());
}

// The kernel functions of a thread that waits for the network (net/, fs/select.c, fs/eventpoll.c of Linux
// 6.1).
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

bool waits_for_answer_of(const Member& client, const Member& server) {
  return waits_in_network(client) && are_connected(client, server);
}

bool does_own_thing(const Evidence& evidence, const Member& member) {
  const auto situation = situation_of(member);
  if (situation.doing != Situation::Doing::elsewhere || !situation.certain) return false;
  if (member.server || member.python.empty() || hands_over(member.python.front())) return false;
  return !is_of_network(member.python.front()) ||
         std::ranges::none_of(evidence.members,
                              [&](const auto& other) { return are_connected(member, other); });
}

bool is_in_trouble(const Member& server) {
  const auto& said = *server.server;
  const auto doing = situation_of(server).doing;
  return said.paused || said.stalled > 0 || said.core_silent || !said.health.empty() ||
         doing == Situation::Doing::stopped || doing == Situation::Doing::uninterruptible;
}

std::vector<std::size_t> servers_awaited(const Evidence& evidence, const Member& client) {
  std::vector<std::size_t> found;
  const auto doing = situation_of(client).doing;
  const bool may = doing == Situation::Doing::elsewhere || doing == Situation::Doing::unknown;
  const bool in_network = waits_in_network(client);
  if (client.server || !may || !(in_network || waits_for_thread(client))) return found;
  for (std::size_t i = 0; i < evidence.members.size(); ++i) {
    const auto& other = evidence.members[i];
    if (other.server && are_connected(client, other) && (in_network || is_in_trouble(other)))
      found.push_back(i);
  }
  if (!found.empty() && does_own_thing(evidence, client)) found.clear();
  return found;
}

}  // namespace nlaunch::evidence
