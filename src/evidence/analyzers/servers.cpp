#include <fmt/format.h>

#include <algorithm>

#include "base/registry.h"
#include "evidence/analyzers/waits.h"
#include "evidence/verdict.h"

// What servers report about themselves: an engine that is paused, or has requests and generates nothing,
// blocks whatever waits for it. Nothing that wants tokens waits for one that has nothing to do.
namespace nlaunch::evidence {
namespace {

using Doing = Situation::Doing;

std::vector<std::size_t> live_servers(const Evidence& evidence) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < evidence.members.size(); ++i) {
    const auto doing = situation_of(evidence.members[i]).doing;
    const bool held_up = doing == Doing::gone || doing == Doing::stopped || doing == Doing::uninterruptible;
    if (evidence.members[i].server && !held_up) found.push_back(i);
  }
  return found;
}

bool has_part(const Member& member, Doing doing) {
  return std::ranges::any_of(member.parts,
                             [&](const Part& part) { return situation_of(part).doing == doing; });
}

/// A process that works for a server also waits for another one that must enter a collective.
bool has_part_in_collective(const Member& member) {
  return has_part(member, Doing::collective);
}

bool is_waited_for(const Evidence& evidence, const Member& server) {
  return std::ranges::any_of(evidence.members,
                             [&](const auto& other) { return waits_for_answer_of(other, server); });
}

/// "waits in share_of_e (learner.py:84)"
std::string own_thing(const Situation& situation) {
  return situation.place.empty() ? situation.how : fmt::format("{} in {}", situation.how, situation.place);
}

std::vector<std::size_t> with_own_thing(const Evidence& evidence) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < evidence.members.size(); ++i) {
    if (does_own_thing(evidence, evidence.members[i])) found.push_back(i);
  }
  return found;
}

/// An engine is paused for a weight sync, too: the process that should resume it may be doing something else,
/// or wait with its workers for the weights. This excludes one that waits for its answer. Where another
/// engine has lost a process, it is not what the sync waits for.
void accuse_the_paused(const Evidence& evidence, const std::vector<std::size_t>& servers,
                       Analysis& analysis) {
  const auto has_lost = [](const Member& one) {
    return !one.killed_parts.empty() && one.server && !one.server->health.empty();
  };
  if (std::ranges::any_of(evidence.members, has_lost)) return;
  bool sure = true;
  for (const auto i : servers) {
    const auto& server = evidence.members[i];
    if (!server.server->paused || has_part_in_collective(server)) continue;
    analysis.accused.push_back({i, describe(situation_of(server))});
    sure = sure && is_waited_for(evidence, server);
  }
  analysis.sure = sure && !analysis.accused.empty();
  if (analysis.accused.empty() || sure) return;
  const auto& paused = evidence.members[analysis.accused[0].member];
  for (const auto i : with_own_thing(evidence)) {
    const auto what = own_thing(situation_of(evidence.members[i]));
    analysis.accused.push_back({i, fmt::format("{}, while {} is paused", what, paused.name())});
  }
}

void accuse_the_stalled(const Evidence& evidence, const std::vector<std::size_t>& servers,
                        Analysis& analysis) {
  bool sure = true;
  for (const auto i : servers) {
    const auto& server = evidence.members[i];
    const auto requests = server.server->stalled;
    if (requests == 0 || server.server->paused || has_part_in_collective(server)) continue;
    analysis.accused.push_back({i, fmt::format("has {} request{} in flight and generates nothing", requests,
                                               requests == 1 ? "" : "s")});
    // Its GPU may wait for others, too.
    sure = sure && server.server->counts_at_once && !has_part(server, Doing::gpu);
  }
  analysis.sure = sure && !analysis.accused.empty();
}

/// Empty: its answers show no problem.
std::string silence_of(const Server& said) {
  if (!said.health.empty() || !said.core_silent) return said.health;
  return "answers on its health path, but not GET /is_paused: the engine behind it does not answer";
}

/// Alone it proves nothing: a server may be too busy to answer.
void accuse_the_silent(const Evidence& evidence, const std::vector<std::size_t>& servers,
                       Analysis& analysis) {
  for (const auto i : servers) {
    auto silence = silence_of(*evidence.members[i].server);
    if (!silence.empty() && !has_part_in_collective(evidence.members[i]))
      analysis.accused.push_back({i, std::move(silence)});
  }
}

/// Engines have nothing to do. A process that still waits for an answer from one has requested something
/// other than tokens: then either side can be the cause.
void accuse_who_waits_for_the_idle(const Evidence& evidence, const std::vector<std::size_t>& idle,
                                   Analysis& analysis) {
  for (const auto i : idle) {
    const auto& server = evidence.members[i];
    for (std::size_t j = 0; j < evidence.members.size(); ++j) {
      const auto& client = evidence.members[j];
      if (client.server || situation_of(client).doing != Doing::elsewhere ||
          does_own_thing(evidence, client) || !waits_for_answer_of(client, server))
        continue;
      const auto add = [&](std::size_t member, std::string why) {
        if (std::ranges::find(analysis.accused, member, &Accused::member) == analysis.accused.end())
          analysis.accused.push_back({member, std::move(why)});
      };
      add(i, fmt::format("has nothing to generate, while {} waits for its answer", client.name()));
      add(j, fmt::format("{}, connected to {}, which has nothing to generate",
                         own_thing(situation_of(client)), server.name()));
    }
  }
}

/// It is unknown whether it waits for an engine.
bool is_unclear(const Evidence& evidence, const Member& member) {
  const auto doing = situation_of(member).doing;
  return !member.server && !does_own_thing(evidence, member) &&
         (doing == Doing::elsewhere || doing == Doing::unknown);
}

/// Without a stack the kernel still shows that a process waits, and not for the network. If it is the only
/// one that could send requests to the engines, it is what blocks them.
void accuse_the_only_client(const Evidence& evidence, const std::string& idle, Analysis& analysis) {
  std::vector<std::size_t> clients;
  for (std::size_t i = 0; i < evidence.members.size(); ++i) {
    const auto& member = evidence.members[i];
    if (!member.server && situation_of(member).doing != Doing::gone) clients.push_back(i);
  }
  if (clients.size() != 1) return;
  const auto& client = evidence.members[clients.front()];
  const auto situation = situation_of(client);
  const bool waits =
      situation.doing == Doing::unknown && situation.how != "computes" && !waits_in_network(client);
  if (waits && !client.wait_channel.empty())
    analysis.accused.push_back(
        {clients.front(), fmt::format("{} ({}) and requests nothing, while {} nothing to do", situation.how,
                                      client.wait_channel, idle)});
}

/// If all servers of the run are idle engines, they are not to blame for a process that does something else.
void accuse_who_leaves_them_idle(const Evidence& evidence, const std::vector<std::size_t>& servers,
                                 Analysis& analysis) {
  std::vector<std::size_t> idle;
  std::vector<std::string> names;
  for (const auto i : servers) {
    if (!evidence.members[i].server->idle) continue;
    idle.push_back(i);
    names.push_back(evidence.members[i].name());
  }
  if (idle.empty()) return;
  accuse_who_waits_for_the_idle(evidence, idle, analysis);
  const bool ambiguous = !analysis.accused.empty();
  const auto have = fmt::format("{} {}", listed(names), names.size() == 1 ? "has" : "have");
  for (const auto i : with_own_thing(evidence)) {
    analysis.accused.push_back(
        {i, fmt::format("{}, while {} nothing to do", own_thing(situation_of(evidence.members[i])), have)});
  }
  if (analysis.accused.empty()) accuse_the_only_client(evidence, have, analysis);
  const bool clear =
      std::ranges::none_of(evidence.members, [&](const auto& one) { return is_unclear(evidence, one); });
  const auto all =
      std::ranges::count_if(evidence.members, [](const auto& one) { return one.server.has_value(); });
  analysis.sure =
      clear && !ambiguous && analysis.accused.size() == 1 && idle.size() == static_cast<std::size_t>(all);
}

void say_what_they_do(const Evidence& evidence, const std::vector<std::size_t>& servers, Analysis& analysis) {
  for (const auto i : servers) {
    const auto& said = *evidence.members[i].server;
    const auto say = [&](const std::string& what) {
      analysis.says.push_back(fmt::format("{} {}", evidence.members[i].name(), what));
    };
    if (said.paused) say("is paused");
    if (said.stalled > 0)
      say(fmt::format("has {} requests in flight, and counts no new token within a second", said.stalled));
    if (said.idle) say("has nothing to do");
    if (const auto silence = silence_of(said); !silence.empty()) say(silence);
  }
}

Analysis analyze_servers(const Evidence& evidence) {
  Analysis analysis;
  const auto servers = live_servers(evidence);
  say_what_they_do(evidence, servers, analysis);
  for (const auto accuse :
       {accuse_the_paused, accuse_the_stalled, accuse_the_silent, accuse_who_leaves_them_idle}) {
    accuse(evidence, servers, analysis);
    if (!analysis.accused.empty()) break;
  }
  analysis.weak = !analysis.sure;
  return analysis;
}

const Registered<Analyzer> servers_analyzer{{.order = 65, .name = "servers", .analyze = analyze_servers}};

}  // namespace
}  // namespace nlaunch::evidence
