#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "evidence/verdict.h"

namespace nlaunch::evidence {

/// Who waits for whom: waiter → the members that have not reached the point where it waits. The numbers can
/// be anything that identifies members.
using Waits = std::map<std::size_t, std::set<std::size_t>>;

struct Blame {
  std::set<std::size_t> whom;
  bool sure = false;  ///< false: they wait for each other
};
/// Members that others wait for and that wait for nothing themselves. If there are none, they wait in a
/// circle, and any of them can be the cause.
Blame blame(const Waits& waits);

/// "0, 2 and 3"
std::string listed(const std::vector<std::string>& names);

/// Its main thread waits for the network.
bool waits_in_network(const Member& member);

/// There is at least one TCP connection between them.
bool are_connected(const Member& one, const Member& other);

/// It waits for the network, and is connected to that server.
bool waits_for_answer_of(const Member& client, const Member& server);

/// A member that was queried as a server (`server` is set), and has a problem by its own account or a process
/// that cannot continue.
bool is_in_trouble(const Member& server);

/// The servers whose answer it waits for: indices into Evidence::members. Of a program whose main thread
/// waits for another thread, only servers in trouble: which thread it waits for is unknown. Empty for a
/// server, whose main thread waits for requests.
std::vector<std::size_t> servers_awaited(const Evidence& evidence, const Member& client);

/// It certainly does something of its own: according to its Python stack, it waits neither for another thread
/// nor for an answer from another member. Never true for a server, whose main thread waits for requests.
bool does_own_thing(const Evidence& evidence, const Member& member);

}  // namespace nlaunch::evidence
