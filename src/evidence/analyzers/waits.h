#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "evidence/verdict.h"

namespace nlaunch::evidence {

/// Who waits for whom: waiter → those who have not come to where it waits. Anything that tells members apart.
using Waits = std::map<std::size_t, std::set<std::size_t>>;

struct Blame {
  std::set<std::size_t> whom;
  bool sure = false;  ///< false: they wait for each other
};
/// Those who are waited for and wait for nobody themselves. Where there is none, they wait in a circle, and
/// any of them can be the cause.
Blame blame(const Waits& waits);

/// "0, 2 and 3"
std::string listed(const std::vector<std::string>& names);

/// Its main thread waits for the network.
bool waits_in_network(const Member& member);

/// One TCP connection at least is between the main programs of both.
bool are_connected(const Member& one, const Member& other);

/// It waits for the network, and is connected to that server.
bool waits_for_answer_of(const Member& client, const Member& server);

/// It is at something of its own for certain: by its Python stack it waits neither for another thread nor for
/// an answer of another member. Never of a server, whose main thread waits for whoever comes.
bool does_own_thing(const Evidence& evidence, const Member& member);

}  // namespace nlaunch::evidence
