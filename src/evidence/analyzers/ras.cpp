#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "base/registry.h"
#include "base/text.h"
#include "evidence/analyzers/waits.h"
#include "evidence/verdict.h"

// What NCCL's RAS shows: ranks whose counts lag, in which communicator, and ranks that are missing or
// considered dead.
namespace nlaunch::evidence {
namespace {

struct RasFindings {
  Waits waits;
  std::map<std::size_t, std::string> why;
  std::vector<std::string> says;
  std::set<std::size_t> mixed;  ///< behind in one operation and ahead in another
  std::set<std::size_t> split;  ///< behind others that are not a majority
  /// Of each communicator, those behind most others, or missing there.
  std::vector<std::set<std::size_t>> behind;
  /// Of each communicator in which all have launched the same, its members: they may be waiting for each
  /// other in it.
  std::vector<std::set<std::size_t>> level;
};

/// The member that RAS means: by pid, and by address if processes on several hosts have the same pid.
std::optional<std::size_t> member_of_ras(const Evidence& evidence, const RasRank& rank) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < evidence.members.size(); ++i) {
    const auto& member = evidence.members[i];
    const bool same_pid =
        member.pid == rank.pid || std::ranges::find(member.pids, rank.pid) != member.pids.end();
    const auto host = evidence.hosts.find(rank.address);
    if (same_pid && rank.pid > 0 && (host == evidence.hosts.end() || host->second == member.host))
      found.push_back(i);
  }
  return found.size() == 1 ? std::optional(found.front()) : std::nullopt;
}

std::string name_of_ras(const Evidence& evidence, const RasRank& rank) {
  const auto member = member_of_ras(evidence, rank);
  if (member) return evidence.members[*member].name();
  return fmt::format("rank {} (pid {} on {})", rank.rank, rank.pid, rank.address);
}

std::set<std::size_t> members_of(const Evidence& evidence, const RasCommunicator& communicator) {
  std::set<std::size_t> members;
  for (const auto& rank : communicator.ranks) {
    if (const auto member = member_of_ras(evidence, rank)) members.insert(*member);
  }
  return members;
}

std::set<std::string> operations_of(const RasCommunicator& communicator) {
  std::set<std::string> names;
  for (const auto& rank : communicator.ranks) {
    for (const auto& [name, count] : rank.launched) names.insert(name);
  }
  return names;
}

/// What the others have launched of an operation.
std::int64_t usual_count(const RasCommunicator& communicator, const std::string& operation) {
  if (const auto told = communicator.usual.find(operation); told != communicator.usual.end())
    return told->second;
  std::map<std::int64_t, int> how_many;
  std::int64_t most = 0;
  for (const auto& rank : communicator.ranks) {
    if (const auto count = rank.launched.find(operation); count != rank.launched.end())
      ++how_many[count->second];
  }
  for (const auto& [count, times] : how_many) {
    if (times >= how_many[most]) most = count;  // of two, the one that is further ahead
  }
  return most;
}

/// More than half of the ranks have launched this many. In the text format, those with the usual count have
/// no line.
bool is_majority(const RasCommunicator& communicator, const std::string& operation, std::int64_t count) {
  const auto others = std::ranges::count_if(communicator.ranks, [&](const RasRank& rank) {
    const auto launched = rank.launched.find(operation);
    return launched != rank.launched.end() && launched->second != count;
  });
  const auto all = std::max(communicator.size, static_cast<int>(communicator.ranks.size()));
  return 2 * others < all;
}

/// "learner.0 and learner.3": the members that have launched this many.
std::string who_launched(const Evidence& evidence, const RasCommunicator& communicator,
                         const std::string& operation, std::int64_t count) {
  std::vector<std::string> names;
  for (const auto& rank : communicator.ranks) {
    const auto launched = rank.launched.find(operation);
    if (launched != rank.launched.end() && launched->second == count)
      names.push_back(name_of_ras(evidence, rank));
  }
  return names.empty() ? "others" : text::join(names, " and ");
}

void wait_for(const Evidence& evidence, const RasCommunicator& communicator,
              const std::set<std::size_t>& late, RasFindings& findings) {
  for (const auto& rank : communicator.ranks) {
    const auto member = member_of_ras(evidence, rank);
    if (member && !late.contains(*member)) findings.waits[*member].insert(late.begin(), late.end());
  }
  // In the text format only outliers have a line: then it is not known which ranks wait, but some do.
  if (!late.empty()) findings.waits[evidence.members.size()].insert(late.begin(), late.end());
}

void look_at_ras_counts(const Evidence& evidence, const RasCommunicator& communicator,
                        RasFindings& findings) {
  std::set<std::size_t> late;
  std::set<std::size_t> ahead;
  std::set<std::size_t> split;
  for (const auto& operation : operations_of(communicator)) {
    const auto normal = usual_count(communicator, operation);
    const bool most = is_majority(communicator, operation, normal);
    const auto others = most ? "most ranks" : who_launched(evidence, communicator, operation, normal);
    for (const auto& rank : communicator.ranks) {
      const auto count = rank.launched.find(operation);
      if (count == rank.launched.end() || count->second == normal) continue;
      findings.says.push_back(
          fmt::format("communicator {}: {} has launched {} {}, {} {}{}", communicator.hash,
                      name_of_ras(evidence, rank), count->second, operation, others, normal,
                      most ? "" : "; neither is a majority: compare where each is in its program"));
      const auto member = member_of_ras(evidence, rank);
      if (!member) continue;
      (count->second < normal ? late : ahead).insert(*member);
      if (!most) split.insert(*member);
      findings.why.try_emplace(
          *member, most
                       ? fmt::format("has launched {} {}, most ranks of communicator {} {}", count->second,
                                     operation, communicator.hash, normal)
                       : fmt::format("has launched {} {}, and {} {} (communicator {}): neither is a majority",
                                     count->second, operation, others, normal, communicator.hash));
    }
  }
  // Behind in one and ahead in another: it is in a different operation than the others.
  std::ranges::set_intersection(late, ahead, std::inserter(findings.mixed, findings.mixed.end()));
  findings.split.insert(split.begin(), split.end());
  std::set<std::size_t> behind;
  std::ranges::set_difference(late, split, std::inserter(behind, behind.end()));
  if (!behind.empty()) findings.behind.push_back(std::move(behind));
  if (late.empty() && ahead.empty()) findings.level.push_back(members_of(evidence, communicator));
  wait_for(evidence, communicator, late, findings);
}

void look_at_ras_missing(const Evidence& evidence, const RasCommunicator& communicator,
                         RasFindings& findings) {
  std::set<std::size_t> missing;
  for (const auto& rank : communicator.ranks) {
    if (!rank.dead && !rank.silent && rank.status != "NOCOMM" && rank.status != "ABORT") continue;
    const auto* what = rank.dead ? "is considered dead" : rank.silent ? "does not answer" : "has left";
    findings.says.push_back(
        fmt::format("communicator {}: {} {}", communicator.hash, name_of_ras(evidence, rank), what));
    const auto member = member_of_ras(evidence, rank);
    if (!member) continue;
    missing.insert(*member);
    findings.why.try_emplace(*member, fmt::format("{} (communicator {})", what, communicator.hash));
  }
  wait_for(evidence, communicator, missing, findings);
  if (!missing.empty()) findings.behind.push_back(std::move(missing));
}

void look_at_ras_processes(const Evidence& evidence, const RasReport& report, RasFindings& findings) {
  std::set<std::size_t> missing;
  for (const auto& process : report.processes) {
    const auto* what = process.dead ? "is considered dead by NCCL" : "does not answer NCCL";
    const auto member = member_of_ras(evidence, process);
    findings.says.push_back(fmt::format("process {} on {} {}", process.pid, process.address, what));
    if (!member) continue;
    findings.why.try_emplace(*member, what);
    findings.waits[evidence.members.size()].insert(*member);
    missing.insert(*member);
  }
  if (!missing.empty()) findings.behind.push_back(std::move(missing));
}

RasFindings findings_of(const Evidence& evidence) {
  RasFindings findings;
  for (const auto& report : evidence.ras) {
    for (const auto& communicator : report.communicators) {
      look_at_ras_counts(evidence, communicator, findings);
      look_at_ras_missing(evidence, communicator, findings);
    }
    look_at_ras_processes(evidence, report, findings);
  }
  return findings;
}

/// It is behind in one communicator where it is clear which ranks are, not only where there is no majority.
bool is_clearly_behind(const RasFindings& findings, std::size_t member) {
  return !findings.split.contains(member) ||
         std::ranges::any_of(findings.behind, [&](const auto& behind) { return behind.contains(member); });
}

/// Several that are late are all to blame if they are late in the same communicator, and none of the others
/// could have stopped them: one in which all have launched the same may be stuck itself.
bool may_wait_for_each_other(const RasFindings& findings, const std::set<std::size_t>& late) {
  if (late.size() < 2) return false;
  const auto within = [&](const auto& level) {
    return level.size() > 1 && std::ranges::includes(late, level);
  };
  const auto all_late = [&](const auto& behind) { return std::ranges::includes(behind, late); };
  return std::ranges::any_of(findings.level, within) || std::ranges::none_of(findings.behind, all_late);
}

/// A rank of the same role has ended or is stopped, and is not among them: they may be late because of it.
bool have_a_better_reason(const Evidence& evidence, const std::set<std::size_t>& late) {
  return std::ranges::any_of(late, [&](auto i) {
    if (i >= evidence.members.size()) return false;
    for (std::size_t other = 0; other < evidence.members.size(); ++other) {
      if (evidence.members[other].role == evidence.members[i].role && evidence.members[other].rank &&
          !late.contains(other) && is_out_of_action(situation_of(evidence.members[other])))
        return true;
    }
    return false;
  });
}

Analysis analyze_ras(const Evidence& evidence) {
  auto findings = findings_of(evidence);
  Analysis analysis;
  std::set<std::string> once;
  for (auto& line : findings.says) {
    if (once.insert(line).second) analysis.says.push_back(std::move(line));
  }
  const auto blamed = blame(findings.waits);
  for (const auto i : blamed.whom) {
    if (i < evidence.members.size())
      analysis.accused.push_back({i, findings.why[i], !findings.mixed.contains(i)});
  }
  // Of two ranks in different operations neither is more to blame than the other.
  constexpr std::size_t kTwo = 2;
  analysis.weak = have_a_better_reason(evidence, blamed.whom);
  analysis.sure = !analysis.weak && blamed.sure && blamed.whom.size() * 2 <= evidence.members.size() &&
                  (findings.mixed.empty() || evidence.members.size() > kTwo) &&
                  !may_wait_for_each_other(findings, blamed.whom);
  for (const auto& one : analysis.accused)
    analysis.sure = analysis.sure && is_clearly_behind(findings, one.member) &&
                    (findings.mixed.contains(one.member) || !may_wait_unseen(evidence, one.member));
  return analysis;
}

const Registered<Analyzer> ras_analyzer{{.order = 50, .name = "NCCL RAS", .analyze = analyze_ras}};

}  // namespace
}  // namespace nlaunch::evidence
