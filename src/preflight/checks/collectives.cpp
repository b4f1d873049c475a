#include <fmt/format.h>

#include <algorithm>

#include "base/backend.h"
#include "base/registry.h"
#include "base/text.h"
#include "preflight/checks.h"
#include "preflight/groups/group_outcome.h"

namespace nlaunch::preflight {
namespace {

/// The rank whose contribution alone is wrong, or nothing.
std::optional<std::size_t> explained_by(const GroupTrial& group, const SizeResult& result) {
  const auto member = static_cast<std::size_t>(result.rank);
  if (result.fault.empty() || result.rank < 0 || member >= group.members.size()) return std::nullopt;
  return group.members[member];
}

/// What the first wrong element shows about one rank, to append to a sentence; empty: nothing.
std::string fault_text(const Observations& observations, const GroupTrial& group, std::size_t rank,
                       const SizeResult& result) {
  const auto part = explained_by(group, result);
  if (!part) return "";
  const auto& whose = observations.ranks[*part].subject;
  if (result.fault == "missing") return fmt::format(": the contribution of {} is missing", whose);
  if (result.fault == "twice") return fmt::format(": the contribution of {} was added twice", whose);
  return fmt::format(": received by {} from {}", observations.ranks[rank].subject, whose);
}

/// For a workload the probe reports how many elements are wrong, not which.
std::optional<Row> judge_workloads(const Observations& observations, const GroupTrial& group) {
  for (const auto rank : group.members) {
    const auto* progress = progress_of(observations, group, rank);
    if (progress == nullptr) continue;
    for (const auto& workload : progress->workloads) {
      if (workload.wrong == 0) continue;
      return failed(group.op_name(), group.name,
                    fmt::format("{} elements are wrong in '{}' on {}", workload.wrong, workload.workload,
                                observations.ranks[rank].subject),
                    "all elements correct",
                    {"run nlaunch preflight to see which; do not train on these GPUs and links"});
    }
  }
  return std::nullopt;
}

/// The first rank and size with wrong data, or nothing.
std::optional<Row> judge_data(const Observations& observations, const GroupTrial& group) {
  const auto [rank, result] = find_wrong_data(observations, group);
  if (result == nullptr) return std::nullopt;
  auto row = failed(
      group.op_name(), group.name,
      fmt::format("{} of {} elements are wrong at {} on {}, the first at index {} ({:#010x} for {:#010x}){}",
                  result->wrong, result->elements, message_text(result->bytes),
                  observations.ranks[rank].subject, result->first_wrong, result->found, result->expected,
                  fault_text(observations, group, rank, *result)),
      "all elements correct",
      {"do not train on these GPUs and links; try NCCL_PROTO=Simple to tell LL128 from the hardware, and "
       "report the node",
       Responsible::admin});
  row.hosts = observations.host_of(group);
  // Data from a rank may have been corrupted in transit, and a duplicated contribution may be the fault of
  // any rank.
  const auto part = explained_by(group, *result);
  if (part && result->fault == "missing") row.hosts = observations.hosts_of({*part});
  return row;
}

constexpr const char* kAllWork = "every group of the plan completes";
constexpr const char* kSeeErrors = "see its .err file in the preflight directory";

Row judge_death(const Observations& observations, const GroupTrial& group, std::size_t rank,
                const char* expected, const Remedy& remedy) {
  auto row = failed(
      group.op_name(), group.name,
      fmt::format("{}: its probe {}", observations.ranks[rank].subject, observations.reports[rank].end),
      expected, remedy);
  row.hosts = observations.hosts_of({rank});
  return row;
}

/// The ranks that did not arrive, if some did.
std::optional<Row> judge_arrival(const Observations& observations, const GroupTrial& group) {
  std::vector<std::size_t> missing;
  std::vector<std::size_t> arrived;
  for (const auto rank : group.members) {
    const auto* progress = progress_of(observations, group, rank);
    (progress != nullptr && progress->joining ? arrived : missing).push_back(rank);
  }
  if (missing.empty()) return std::nullopt;
  const auto last = std::ranges::find_if(
      missing, [&](std::size_t rank) { return !observations.reports[rank].end.empty(); });
  if (last != missing.end()) return judge_death(observations, group, *last, "all ranks", {kSeeErrors});
  auto row = failed(
      group.op_name(), group.name, did_not_join(observations, missing, arrived), "all ranks",
      {"check what holds this GPU or process: nvidia-smi, and its .err file in the preflight directory"});
  row.hosts = observations.hosts_of(missing);
  return row;
}

Row judge_incomplete(const Observations& observations, const GroupTrial& group) {
  if (const auto told = find_error(observations, group, "unavailable"); told.error != nullptr) {
    return unknown(group.op_name(), group.name,
                   fmt::format("{}: {}", observations.ranks[told.rank].subject, told.error->text));
  }
  if (auto row = judge_arrival(observations, group)) return *row;
  const auto all = names_of(observations, group.members, group.members.front());
  const Remedy remedy{std::string(traits_of(group.backend).remedy)};
  // A rank that exited without output is the cause of what the others report about it.
  for (const auto rank : group.members) {
    if (!observations.reports[rank].end.empty())
      return judge_death(observations, group, rank, kAllWork, remedy);
  }
  for (const char* kind : {"failed", "deadline"}) {
    const auto told = find_error(observations, group, kind);
    if (told.error == nullptr) continue;
    const auto* verb =
        told.error->phase == "join" ? "the communicator was not created" : "a collective did not complete";
    return failed(group.op_name(), group.name,
                  fmt::format("{} arrived, but {}: {}: {}", all, verb, observations.ranks[told.rank].subject,
                              told.error->text),
                  kAllWork, remedy);
  }
  return failed(group.op_name(), group.name,
                fmt::format("{} arrived, but the group did not finish in time", all), kAllWork, remedy);
}

/// The sizes of a sweep are in the table of times.
std::string timing_text(const Observations& observations, const GroupTrial& group) {
  constexpr std::size_t kMost = 6;
  constexpr std::size_t kLast = 4;
  std::vector<std::string> parts;
  for (const auto& one : measured(observations, group)) {
    parts.push_back(
        fmt::format("{} {} {}", message_text(one.bytes), time_text(one.seconds), format_rate(one.busbw)));
  }
  if (parts.size() > kMost) {
    parts.erase(parts.begin() + 1, parts.end() - kLast);
    parts.front() += " to";
  }
  return text::join(parts, ", ");
}

}  // namespace

Row judge_group(const Observations& observations, const GroupTrial& group) {
  if (!group.not_run.empty()) return skipped(group.op_name(), group.name, group.not_run);
  if (!observations.went)
    return skipped(group.op_name(), group.name, "not run: the ranks were not ready to start");
  if (auto row = judge_data(observations, group)) return *row;
  if (auto row = judge_workloads(observations, group)) return *row;
  if (!complete(observations, group)) {
    if (is_consequence(observations, group))
      return skipped(group.op_name(), group.name, "not run: an earlier group failed");
    auto row = judge_incomplete(observations, group);
    if (row.status == Status::fail && row.hosts.empty()) row.hosts = observations.host_of(group);
    return row;
  }
  return passed(
      group.op_name(), group.name,
      fmt::format("{} ranks over {}, all elements correct{}{}", group.members.size(), name_of(group.backend),
                  group.sizes.empty() ? "" : ": ", timing_text(observations, group)));
}

std::vector<Measurement> measurements(const Observations& observations) {
  std::vector<Measurement> out;
  for (const auto& group : observations.groups) {
    if (!group.not_run.empty() || !observations.went || !complete(observations, group)) continue;
    for (auto& one : measured(observations, group)) out.push_back(std::move(one));
  }
  return out;
}

namespace {

std::vector<Row> check_collectives(const Observations& observations) {
  std::vector<Row> rows;
  for (const auto& group : observations.groups) rows.push_back(judge_group(observations, group));
  if (rows.empty() && !observations.ranks.empty()) {
    rows.push_back(skipped("all_reduce", "this machine", "no group has two or more ranks"));
  }
  return rows;
}

const Registered<Check> collectives_check{{
    .order = 50,
    .name = "collectives",
    .what = "every group completes with correct results",
    .stage = Stage::after,
    .judge = check_collectives,
}};

}  // namespace
}  // namespace nlaunch::preflight
