#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/registry.h"
#include "base/text.h"
#include "evidence/analyzers/waits.h"
#include "evidence/verdict.h"

// What NCCL's RAS shows: ranks whose counts lag, in which communicator, and ranks that are missing or
// considered dead.
namespace nlaunch::evidence {
namespace {

/// The members by the processes that RAS names.
class Members {
 public:
  explicit Members(const Evidence& evidence) : evidence_(evidence) {
    for (std::size_t i = 0; i < evidence.members.size(); ++i) {
      const auto& member = evidence.members[i];
      std::set<pid_t> pids(member.pids.begin(), member.pids.end());
      pids.insert(member.pid);
      for (const auto pid : pids) {
        if (pid > 0) by_pid_.emplace(pid, i);
      }
    }
  }

  /// By pid, and by address if processes on several hosts have the same pid.
  [[nodiscard]] std::optional<std::size_t> of(const RasRank& rank) const {
    const auto host = evidence_.hosts.find(rank.address);
    std::optional<std::size_t> found;
    const auto [first, last] = by_pid_.equal_range(rank.pid);
    for (auto one = first; one != last; ++one) {
      if (host != evidence_.hosts.end() && host->second != evidence_.members[one->second].host) continue;
      if (found) return std::nullopt;
      found = one->second;
    }
    return found;
  }

  [[nodiscard]] std::string name_of(const RasRank& rank) const {
    if (const auto member = of(rank)) return evidence_.members[*member].name();
    return fmt::format("rank {} (pid {} on {})", rank.rank, rank.pid, rank.address);
  }

  /// For Waits: ranks that RAS does not list.
  [[nodiscard]] std::size_t unlisted() const { return evidence_.members.size(); }

 private:
  const Evidence& evidence_;
  std::unordered_multimap<pid_t, std::size_t> by_pid_;
};

struct RasFindings {
  Waits waits;
  std::map<std::size_t, std::string> why;
  std::vector<std::string> says;
  std::set<std::size_t> mixed;    ///< behind in one operation and ahead in another
  std::set<std::size_t> split;    ///< differ from others that are not a majority
  std::set<std::size_t> missing;  ///< do not answer, are considered dead, or have left
};

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

bool is_missing(const RasRank& rank) {
  return rank.dead || rank.silent || rank.status == "NOCOMM" || rank.status == "ABORT";
}

/// More than half of the ranks have launched this many. In the text format, those with the usual count have
/// no line.
bool is_majority(const RasCommunicator& communicator, const std::string& operation, std::int64_t count) {
  const auto others = std::ranges::count_if(communicator.ranks, [&](const RasRank& rank) {
    const auto launched = rank.launched.find(operation);
    return launched == rank.launched.end() ? is_missing(rank) : launched->second != count;
  });
  const auto all = std::max(communicator.size, static_cast<int>(communicator.ranks.size()));
  return 2 * others < all;
}

/// "learner.0 and learner.3": the members that have launched this many.
std::string who_launched(const Members& members, const RasCommunicator& communicator,
                         const std::string& operation, std::int64_t count) {
  std::vector<std::string> names;
  for (const auto& rank : communicator.ranks) {
    const auto launched = rank.launched.find(operation);
    if (launched != rank.launched.end() && launched->second == count) names.push_back(members.name_of(rank));
  }
  return names.empty() ? "others" : text::join(names, " and ");
}

/// The ranks of a communicator that are late.
std::set<std::size_t> look_at_ras_counts(const Members& members, const RasCommunicator& communicator,
                                         RasFindings& findings) {
  std::set<std::size_t> late;
  std::set<std::size_t> ahead;
  for (const auto& operation : operations_of(communicator)) {
    const auto normal = usual_count(communicator, operation);
    const bool most = is_majority(communicator, operation, normal);
    const auto others = most ? "most ranks" : who_launched(members, communicator, operation, normal);
    for (const auto& rank : communicator.ranks) {
      const auto count = rank.launched.find(operation);
      if (count == rank.launched.end() || count->second == normal) continue;
      findings.says.push_back(
          fmt::format("communicator {}: {} has launched {} {}, {} {}{}", communicator.hash,
                      members.name_of(rank), count->second, operation, others, normal,
                      most ? "" : "; neither is a majority: compare where each is in its program"));
      const auto member = members.of(rank);
      if (!member) continue;
      (count->second < normal ? late : ahead).insert(*member);
      if (!most) findings.split.insert(*member);
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
  return late;
}

std::set<std::size_t> look_at_ras_missing(const Members& members, const RasCommunicator& communicator,
                                          RasFindings& findings) {
  std::set<std::size_t> missing;
  for (const auto& rank : communicator.ranks) {
    if (!is_missing(rank)) continue;
    const auto* what = rank.dead ? "is considered dead" : rank.silent ? "does not answer" : "has left";
    findings.says.push_back(
        fmt::format("communicator {}: {} {}", communicator.hash, members.name_of(rank), what));
    const auto member = members.of(rank);
    if (!member) continue;
    missing.insert(*member);
    findings.why.try_emplace(*member, fmt::format("{} (communicator {})", what, communicator.hash));
  }
  return missing;
}

/// Its other ranks wait for those that are late or missing.
void look_at_communicator(const Members& members, const RasCommunicator& communicator,
                          RasFindings& findings) {
  const auto late = look_at_ras_counts(members, communicator, findings);
  const auto missing = look_at_ras_missing(members, communicator, findings);
  findings.missing.insert(missing.begin(), missing.end());
  auto awaited = late;
  awaited.insert(missing.begin(), missing.end());
  for (const auto& rank : communicator.ranks) {
    const auto member = members.of(rank);
    if (member && !awaited.contains(*member)) findings.waits[*member].insert(awaited.begin(), awaited.end());
  }
  // In the text format only outliers have a line: then it is not known which ranks wait, but some do.
  if (!awaited.empty()) findings.waits[members.unlisted()].insert(awaited.begin(), awaited.end());
}

void look_at_ras_processes(const Members& members, const RasReport& report, RasFindings& findings) {
  for (const auto& process : report.processes) {
    const auto* what = process.dead ? "is considered dead by NCCL" : "does not answer NCCL";
    const auto member = members.of(process);
    findings.says.push_back(fmt::format("process {} on {} {}", process.pid, process.address, what));
    if (!member) continue;
    findings.why.try_emplace(*member, what);
    findings.waits[members.unlisted()].insert(*member);
    findings.missing.insert(*member);
  }
}

/// A member of their role has ended, and RAS does not tell in which communicators it is missing: they may be
/// late because of it.
bool have_a_better_reason(const Evidence& evidence, const std::set<std::size_t>& late,
                          const RasFindings& findings) {
  for (std::size_t other = 0; other < evidence.members.size(); ++other) {
    const auto& member = evidence.members[other];
    if (!member.rank || findings.missing.contains(other) || !is_out_of_action(situation_of(member))) continue;
    if (std::ranges::any_of(late, [&](auto i) {
          return evidence.members[i].role == member.role && !does_own_thing(evidence, evidence.members[i]);
        }))
      return true;
  }
  return false;
}

/// By its stack. Then that it is late in another one may only follow from that.
bool waits_in_collective(const Member& member) {
  return situation_of(member).doing == Situation::Doing::collective;
}

/// Counts do not show what a rank that is late waits for: a message, or a collective of which it is not known
/// that it is stuck. Several may wait for each other.
bool is_proven(const Evidence& evidence, const RasFindings& findings, std::size_t member, bool is_alone) {
  if (findings.missing.contains(member)) return true;
  if (does_own_thing(evidence, evidence.members[member])) return true;
  if (!is_alone || findings.split.contains(member)) return false;
  return findings.mixed.contains(member) || !may_wait_unseen(evidence, member);
}

Analysis analyze_ras(const Evidence& evidence) {
  const Members members(evidence);
  RasFindings findings;
  for (const auto& report : evidence.ras) {
    for (const auto& communicator : report.communicators)
      look_at_communicator(members, communicator, findings);
    look_at_ras_processes(members, report, findings);
  }
  Analysis analysis;
  std::set<std::string> once;
  for (auto& line : findings.says) {
    if (once.insert(line).second) analysis.says.push_back(std::move(line));
  }
  auto blamed = blame(findings.waits);
  blamed.whom.erase(members.unlisted());
  // Of one that does not answer it is not known whether it is late.
  const bool are_all_missing = std::ranges::includes(findings.missing, blamed.whom);
  const bool is_one_kind = are_all_missing || std::ranges::none_of(blamed.whom, [&](auto i) {
                             return findings.missing.contains(i);
                           });
  if (!is_one_kind) std::erase_if(blamed.whom, [&](auto i) { return findings.missing.contains(i); });
  analysis.sure = blamed.sure && is_one_kind && blamed.whom.size() * 2 <= evidence.members.size();
  bool all_wait = !blamed.whom.empty();
  for (const auto i : blamed.whom) {
    analysis.accused.push_back({i, findings.why[i], !findings.mixed.contains(i)});
    analysis.sure = analysis.sure && is_proven(evidence, findings, i, blamed.whom.size() == 1);
    all_wait = all_wait && waits_in_collective(evidence.members[i]);
  }
  analysis.weak = all_wait || have_a_better_reason(evidence, blamed.whom, findings);
  analysis.sure = analysis.sure && !analysis.weak;
  return analysis;
}

const Registered<Analyzer> ras_analyzer{{.order = 50, .name = "NCCL RAS", .analyze = analyze_ras}};

}  // namespace
}  // namespace nlaunch::evidence
