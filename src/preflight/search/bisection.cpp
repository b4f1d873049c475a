#include "preflight/search/bisection.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/backend.h"
#include "base/text.h"
#include "preflight/checks.h"
#include "preflight/groups/expectations.h"
#include "preflight/groups/group_outcome.h"

namespace nlaunch::preflight {
namespace {

/// Below this a time is latency, and says nothing about a link.
constexpr std::uint64_t kLeastForRates = 1U << 20U;

std::vector<Part> nodes_of(const Observations& observations, const GroupTrial& group) {
  std::vector<Part> parts;
  std::map<std::uint32_t, std::size_t> places;
  for (const auto rank : group.members) {
    const auto node = observations.ranks[rank].node;
    const auto [place, is_new] = places.try_emplace(node, parts.size());
    if (is_new) parts.push_back({fmt::format("node {}", node), {}, observations.hosts_of({rank})});
    auto& part = parts[place->second];
    if (!part.hosts.empty()) part.name = part.hosts.front();
    part.members.push_back(rank);
  }
  return parts;
}

std::vector<Part> ranks_of(const Observations& observations, const GroupTrial& group) {
  std::vector<Part> parts;
  for (const auto rank : group.members) {
    auto name = observations.ranks[rank].subject;
    const auto& identity = observations.reports[rank].identity;
    if (identity && !identity->bus_id.empty()) name += ", " + identity->bus_id;
    parts.push_back({name, {rank}, observations.hosts_of({rank})});
  }
  return parts;
}

/// The rate of a pair with this time, over each link.
double rate_of(const Bisection& what, const PairTrial& trial) {
  return bus_bandwidth(what.op, what.bytes, trial.seconds, trial.ranks);
}

/// "9.8 GB/s, the median is 22.6 GB/s at 128MiB"
std::string speed_text(const Bisection& what, const PairTrial& trial, double usual) {
  auto typical = trial;
  typical.seconds = usual;
  return fmt::format("{}, the median is {} at {}", format_rate(rate_of(what, trial)),
                     format_rate(rate_of(what, typical)), message_text(what.bytes));
}

std::string pair_name(const Bisection& what, UnitPair pair, const char* between) {
  return fmt::format("{} {} {}", what.parts[pair.first].name, between, what.parts[pair.second].name);
}

Row culprit_row(const Bisection& what, const Culprit& culprit, double usual) {
  const auto& part = what.parts[culprit.unit];
  const auto& worst = culprit.worst;
  const bool slow = worst.trouble.empty();
  auto row = failed(
      "suspect", part.name,
      fmt::format("{} with {} of {} good partners: {}", slow ? "slow" : "fails", culprit.partners,
                  culprit.partners, slow ? speed_text(what, worst, usual) : worst.trouble),
      slow ? "as fast as the others" : "works like the others",
      what.of_nodes ? Remedy{"do not use the node; check its network cards, their cables and its PCIe links",
                             Responsible::admin}
                    : Remedy{"do not use this GPU; check its links: nvidia-smi nvlink -s, nvidia-smi topo -m",
                             Responsible::admin});
  row.hosts = part.hosts;
  return row;
}

Row link_row(const Bisection& what, const BadLink& link, double usual) {
  const bool slow = link.worst.trouble.empty();
  return failed(
      "suspect", pair_name(what, link.worst.units, "-"),
      fmt::format("{} with each other in {} of {} trials, both good with others: {}", slow ? "slow" : "fail",
                  link.trials, link.trials, slow ? speed_text(what, link.worst, usual) : link.worst.trouble),
      "as good as with others",
      {"neither is to blame alone: report the path between them (cable, switch, routing)",
       Responsible::admin});
}

Row undecided_row(const Bisection& what, const PairTrial& trial) {
  return unknown("suspect", pair_name(what, trial.units, "or"),
                 what.parts.size() == 2
                     ? fmt::format("two are not enough to tell which one breaks '{}'", what.group)
                     : fmt::format("too few good partners to tell which one is to blame: {}",
                                   trial.trouble.empty() ? "slow together" : trial.trouble));
}

/// The parts that are not to blame, if any could be judged.
Row cleared_row(const Bisection& what, const Verdicts& found) {
  PairTrial typical;
  typical.ranks = 2 * what.parts.front().members.size();
  typical.seconds = found.usual;
  const auto usual = found.usual > 0 && what.bytes >= kLeastForRates
                         ? fmt::format("; the median is {} at {}", format_rate(rate_of(what, typical)),
                                       message_text(what.bytes))
                         : "";
  const auto* kind = what.of_nodes ? "nodes" : "ranks";
  const auto all = what.parts.size();
  if (found.all_slow) {
    return unknown("suspect", what.group,
                   fmt::format("all pairs are slow, none more than the others{}; the site expects at least "
                               "{}: suspect the settings or the site, not one of the {}",
                               usual, format_rate(what.floor), kind));
  }
  if (found.good == 0) {
    return unknown(
        "suspect", what.group,
        fmt::format("no two of its {} {} work together: suspect the settings or the site, not a single one",
                    all, kind));
  }
  if (found.good == all) {
    return passed("suspect", what.group, fmt::format("all {} {} work well in pairs{}", all, kind, usual));
  }
  return passed("suspect", what.group,
                fmt::format("{} of {} {} are cleared: each worked well with another one{}", found.good, all,
                            kind, usual));
}

}  // namespace

Bisection dissect(const Observations& observations, const Complaint& complaint) {
  const auto& group = observations.groups[complaint.group];
  Bisection out{.group = group.name, .backend = group.backend, .bytes = complaint.bytes};
  if (group.neighbours) out.op = Collective::send_recv;
  out.of_nodes = observations.crosses_nodes(group);
  out.parts = out.of_nodes ? nodes_of(observations, group) : ranks_of(observations, group);
  if (!traits_of(group.backend).steady_times) out.rules.slower.reset();
  const auto pair = pair_trial(out, {0, 1});
  for (const auto& expectation : observations.plan.expected.all_reduce_busbw) {
    if (tried_size(expectation) != out.bytes || !fits(expectation, observations, pair)) continue;
    out.floor = expectation.min;
    out.rules.most_seconds = bus_bandwidth(out.op, out.bytes, 1, pair.members.size()) / expectation.min;
  }
  return out;
}

GroupTrial pair_trial(const Bisection& what, UnitPair pair) {
  GroupTrial trial{
      pair_name(what, pair, "and"), plan::GroupKind::node, what.backend, {}, {what.bytes}, false, ""};
  trial.neighbours = what.op == Collective::send_recv;
  for (const auto unit : {pair.first, pair.second}) {
    const auto& members = what.parts[unit].members;
    trial.members.insert(trial.members.end(), members.begin(), members.end());
  }
  return trial;
}

std::optional<PairTrial> read_trial(const Observations& observations, std::size_t index, UnitPair pair) {
  const auto& group = observations.groups[index];
  PairTrial trial{pair, group.members.size()};
  const auto row = judge_group(observations, group);
  if (row.status == Status::unknown) return std::nullopt;
  if (row.status == Status::fail) trial.trouble = row.value;
  if (trial.trouble.empty()) trial.seconds = measured(observations, group).front().seconds;
  return trial;
}

std::vector<Row> suspect_rows(const Bisection& what, const std::vector<Round>& rounds) {
  if (what.parts.size() == 2) return {undecided_row(what, {{0, 1}, 0})};
  const auto found = conclude(what.parts.size(), rounds, what.rules);
  // If the usual pair is slow itself, a slower one is no more to blame than the others.
  const auto counts = [&](const PairTrial& trial) { return !found.all_slow || !trial.trouble.empty(); };
  std::vector<Row> rows;
  for (const auto& culprit : found.culprits) {
    if (counts(culprit.worst)) rows.push_back(culprit_row(what, culprit, found.usual));
  }
  for (const auto& link : found.links) {
    if (counts(link.worst)) rows.push_back(link_row(what, link, found.usual));
  }
  for (const auto& trial : found.undecided) {
    if (found.good > 0 && counts(trial)) rows.push_back(undecided_row(what, trial));
  }
  rows.push_back(cleared_row(what, found));
  return rows;
}

std::vector<Figure> pair_figures(const Bisection& what, const std::vector<Round>& rounds) {
  std::vector<Figure> out;
  if (what.bytes < kLeastForRates) return out;
  for (const auto& round : rounds) {
    for (const auto& trial : round) {
      if (!trial.trouble.empty()) continue;
      const auto& from = what.parts[trial.units.first];
      const bool within = !what.of_nodes && !from.hosts.empty();
      out.push_back({"pair", within ? from.hosts.front() : "", from.name, what.parts[trial.units.second].name,
                     rate_of(what, trial), "B/s"});
    }
  }
  return out;
}

}  // namespace nlaunch::preflight
