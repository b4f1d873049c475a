#include "evidence/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "evidence/analyzers/waits.h"

namespace nlaunch::evidence {
namespace {

using nlohmann::ordered_json;
using Doing = Situation::Doing;

bool accuses(const std::vector<Accused>& accused, std::size_t member) {
  return std::ranges::any_of(accused, [&](const auto& one) { return one.member == member; });
}

/// The members that all of them name.
std::vector<Accused> common(const std::vector<const Analysis*>& analyses) {
  auto accused = analyses.front()->accused;
  for (const auto* analysis : analyses)
    std::erase_if(accused, [&](const auto& one) { return !accuses(analysis->accused, one.member); });
  return accused;
}

std::vector<Accused> all(const std::vector<const Analysis*>& analyses) {
  std::vector<Accused> accused;
  for (const auto* analysis : analyses) {
    for (const auto& one : analysis->accused) {
      if (!accuses(accused, one.member)) accused.push_back(one);
    }
  }
  return accused;
}

/// The verdict is sure if every other analysis, unless it is weak, also names one of the culprits.
void weigh(Verdict& verdict) {
  std::vector<const Analysis*> sure;
  std::vector<const Analysis*> any;
  for (const auto& analysis : verdict.analyses) {
    if (analysis.accused.empty()) continue;
    any.push_back(&analysis);
    if (analysis.sure) sure.push_back(&analysis);
  }
  std::ranges::stable_partition(any, [](const auto* analysis) { return analysis->sure; });
  if (any.empty()) return;
  if (!sure.empty()) {
    verdict.culprits = common(sure);
    verdict.sure = !verdict.culprits.empty() && std::ranges::all_of(any, [&](const auto* analysis) {
      return analysis->weak || std::ranges::any_of(analysis->accused, [&](const auto& one) {
               return accuses(verdict.culprits, one.member);
             });
    });
  }
  if (!verdict.sure) verdict.culprits = all(any);
}

/// A member that waits for a server's answer is held up itself: that it is late may be the server's fault. It
/// is no candidate if the server is in trouble. Of a server that has nothing to do, the analysis of servers
/// judges.
void pass_on_to_servers(Analysis& analysis, const Evidence& evidence) {
  std::vector<Accused> accused;
  const auto add = [&](Accused one) {
    if (!accuses(accused, one.member)) accused.push_back(std::move(one));
  };
  for (auto& one : analysis.accused) {
    const auto& client = evidence.members[one.member];
    const auto servers = one.is_late ? servers_awaited(evidence, client) : std::vector<std::size_t>();
    bool is_held_up = false;
    for (const auto i : servers) {
      const auto& server = evidence.members[i];
      if (server.server->idle && !is_in_trouble(server)) continue;
      is_held_up = is_held_up || is_in_trouble(server);
      add({i, fmt::format("does not answer {}", client.name())});
      analysis.says.push_back(fmt::format("{} waits for an answer of {}", client.name(), server.name()));
    }
    analysis.sure = analysis.sure && servers.empty();
    if (!is_held_up) add(std::move(one));
  }
  analysis.accused = std::move(accused);
}

std::string sentence(const Verdict& verdict, const Evidence& evidence) {
  const auto waiting = verdict.victims.empty() ? ""
                       : verdict.victims.size() == 1
                           ? fmt::format("; {} waits for it", evidence.members[verdict.victims[0]].name())
                           : fmt::format("; {} others wait", verdict.victims.size());
  if (verdict.culprits.empty()) {
    return fmt::format("unsure: nothing shows which process is to blame{}", waiting);
  }
  std::vector<std::string> names;
  for (const auto& one : verdict.culprits) names.push_back(evidence.members[one.member].str());
  if (!verdict.sure) {
    return fmt::format("unsure: {} {}{}", listed(names),
                       names.size() == 1 ? fmt::format("may be the culprit: it {}", verdict.culprits[0].why)
                                         : "may be the culprits",
                       waiting);
  }
  return names.size() == 1
             ? fmt::format("{} is the culprit: it {}{}", names[0], verdict.culprits[0].why, waiting)
             : fmt::format("{} are the culprits: the first {}{}", listed(names), verdict.culprits[0].why,
                           waiting);
}

/// Processes seen then were stopped by nlaunch, or wait for those that were. Only one that cannot exit is of
/// interest.
void judge_the_end(Verdict& verdict, const Evidence& evidence) {
  std::erase_if(verdict.culprits, [&](const auto& one) {
    return situation_of(evidence.members[one.member]).doing != Doing::uninterruptible;
  });
  verdict.sure = !verdict.culprits.empty();
  verdict.victims.clear();
  verdict.sentence = fmt::format("the run is ending: {}", evidence.ending);
  for (const auto& one : verdict.culprits) {
    verdict.sentence += fmt::format("; {} cannot exit: it {}", evidence.members[one.member].str(), one.why);
  }
}

ordered_json to_json(const Member& member) {
  return {{"process", member.process},
          {"rank", member.rank ? ordered_json(*member.rank) : ordered_json(nullptr)},
          {"host", member.host},
          {"pid", member.pid}};
}

}  // namespace

bool may_wait_unseen(const Evidence& evidence, std::size_t member) {
  const auto situation = situation_of(evidence.members[member]);
  if (situation.doing == Doing::collective || situation.doing == Doing::gpu) return true;
  if (!servers_awaited(evidence, evidence.members[member]).empty()) return true;
  const bool known = situation.doing != Doing::unknown && situation.certain;
  return !known && std::ranges::any_of(evidence.members, [&](const auto& other) {
    return other.role != evidence.members[member].role;
  });
}

Verdict judge(const Evidence& evidence) {
  Verdict verdict;
  for (const auto* analyzer : Registered<Analyzer>::all()) {
    verdict.analyses.push_back(analyzer->analyze(evidence));
    verdict.analyses.back().source = analyzer->name;
    pass_on_to_servers(verdict.analyses.back(), evidence);
  }
  weigh(verdict);
  for (std::size_t i = 0; i < evidence.members.size(); ++i) {
    const auto doing = situation_of(evidence.members[i]).doing;
    const bool waits = doing == Doing::collective || doing == Doing::gpu ||
                       std::ranges::any_of(servers_awaited(evidence, evidence.members[i]),
                                           [&](auto server) { return accuses(verdict.culprits, server); });
    if (waits && !accuses(verdict.culprits, i)) verdict.victims.push_back(i);
  }
  verdict.sentence = sentence(verdict, evidence);
  if (!evidence.ending.empty()) judge_the_end(verdict, evidence);
  return verdict;
}

ordered_json to_json(const Verdict& verdict, const Evidence& evidence) {
  auto object = stamped<ordered_json>(formats::kEvidence);
  object["sure"] = verdict.sure;
  object["sentence"] = verdict.sentence;
  object["culprits"] = ordered_json::array();
  object["victims"] = ordered_json::array();
  object["sources"] = ordered_json::array();
  object["missing"] = evidence.missing;
  for (const auto& one : verdict.culprits) {
    auto culprit = to_json(evidence.members[one.member]);
    const auto situation = situation_of(evidence.members[one.member]);
    if (situation.part) culprit["pid"] = situation.part->pid;
    culprit["program"] = situation.part ? situation.part->title : evidence.members[one.member].title;
    culprit["doing"] = word_of(situation.doing);
    culprit["why"] = one.why;
    object["culprits"].push_back(std::move(culprit));
  }
  for (const auto i : verdict.victims) object["victims"].push_back(to_json(evidence.members[i]));
  for (const auto& analysis : verdict.analyses) {
    std::vector<std::string> names;
    for (const auto& one : analysis.accused) names.push_back(evidence.members[one.member].name());
    object["sources"].push_back(
        {{"source", analysis.source}, {"sure", analysis.sure}, {"accused", names}, {"says", analysis.says}});
  }
  return object;
}

}  // namespace nlaunch::evidence
