#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "preflight/arrival.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

const Progress* progress_of(const Evidence& evidence, const GroupTrial& group, std::size_t rank) {
  const auto& groups = evidence.reports[rank].groups;
  const auto found = groups.find(group.name);
  return found == groups.end() ? nullptr : &found->second;
}

/// The first error that is about the group and of this kind, with the rank that told it.
struct Told {
  std::size_t rank = 0;
  const ProbeError* error = nullptr;
};
Told find_error(const Evidence& evidence, const GroupTrial& group, std::string_view kind) {
  for (const auto rank : group.members) {
    for (const auto& error : evidence.reports[rank].errors) {
      if (error.group == group.name && error.kind == kind) return {rank, &error};
    }
  }
  return {};
}

bool complete(const Evidence& evidence, const GroupTrial& group) {
  return std::ranges::all_of(group.members, [&](std::size_t rank) {
    const auto* progress = progress_of(evidence, group, rank);
    return progress != nullptr && progress->results.size() == group.sizes.size();
  });
}

/// Whose contribution alone is not there.
std::optional<std::size_t> missing_of(const GroupTrial& group, const SizeResult& result) {
  const auto member = static_cast<std::size_t>(result.missing);
  if (result.missing < 0 || member >= group.members.size()) return std::nullopt;
  return group.members[member];
}

std::string wrong_text(const Evidence& evidence, const GroupTrial& group, std::size_t rank,
                       const SizeResult& result) {
  const auto culprit = missing_of(group, result);
  return fmt::format(
      "{} of {} elements are wrong at {} on {}, the first at index {} ({:#010x} for {:#010x}){}",
      result.wrong, result.elements, message_text(result.bytes), evidence.ranks[rank].subject,
      result.first_wrong, result.found, result.expected,
      culprit ? fmt::format(": the term of {} is missing", evidence.ranks[*culprit].subject) : "");
}

/// The first rank and size with wrong data, or nothing.
std::optional<Row> judge_data(const Evidence& evidence, const GroupTrial& group) {
  for (const auto rank : group.members) {
    const auto* progress = progress_of(evidence, group, rank);
    if (progress == nullptr) continue;
    for (const auto& result : progress->results) {
      if (result.wrong == 0) continue;
      auto row = failed(
          group.op(), group.name, wrong_text(evidence, group, rank, result), "every element right",
          {"do not use these GPUs and links for training; try NCCL_PROTO=Simple to tell LL128 from the "
           "hardware, and report the node",
           Who::admin});
      if (const auto culprit = missing_of(group, result)) row.hosts = evidence.hosts_of({*culprit});
      return row;
    }
  }
  return std::nullopt;
}

constexpr const char* kSeeErrors = "look at its .err file in the preflight folder";

Row judge_death(const Evidence& evidence, const GroupTrial& group, std::size_t rank, const char* expected,
                const Remedy& remedy) {
  auto row = failed(group.op(), group.name,
                    fmt::format("{}: its probe {}", evidence.ranks[rank].subject, evidence.reports[rank].end),
                    expected, remedy);
  row.hosts = evidence.hosts_of({rank});
  return row;
}

/// Who did not come, when some did.
std::optional<Row> judge_arrival(const Evidence& evidence, const GroupTrial& group) {
  std::vector<std::size_t> missing;
  std::vector<std::size_t> arrived;
  for (const auto rank : group.members) {
    const auto* progress = progress_of(evidence, group, rank);
    (progress != nullptr && progress->joining ? arrived : missing).push_back(rank);
  }
  if (missing.empty()) return std::nullopt;
  const auto last =
      std::ranges::find_if(missing, [&](std::size_t rank) { return !evidence.reports[rank].end.empty(); });
  if (last != missing.end()) return judge_death(evidence, group, *last, "all ranks", {kSeeErrors});
  auto row = failed(
      group.op(), group.name, did_not_join(evidence, missing, arrived), "all ranks",
      {"look at what holds this GPU or process: nvidia-smi, and its .err file in the preflight folder"});
  row.hosts = evidence.hosts_of(missing);
  return row;
}

Row judge_incomplete(const Evidence& evidence, const GroupTrial& group) {
  if (const auto told = find_error(evidence, group, "unavailable"); told.error != nullptr) {
    return unknown(group.op(), group.name,
                   fmt::format("{}: {}", evidence.ranks[told.rank].subject, told.error->text));
  }
  if (auto row = judge_arrival(evidence, group)) return *row;
  const auto all = names_of(evidence, group.members, group.members.front());
  const Remedy remedy{
      "NCCL's own log says more: --with nccl-debug writes it to the folder nccl beside preflight.json"};
  // One that has gone without a word is the cause of what the others say of it.
  for (const auto rank : group.members) {
    if (!evidence.reports[rank].end.empty())
      return judge_death(evidence, group, rank, "every group of the plan works", remedy);
  }
  for (const char* kind : {"failed", "deadline"}) {
    const auto told = find_error(evidence, group, kind);
    if (told.error == nullptr) continue;
    const auto* verb =
        told.error->phase == "join" ? "the communicator was not made" : "a collective did not end";
    return failed(group.op(), group.name,
                  fmt::format("{} arrived, but {}: {}: {}", all, verb, evidence.ranks[told.rank].subject,
                              told.error->text),
                  "every group of the plan works", remedy);
  }
  return failed(group.op(), group.name, fmt::format("{} arrived, but the group was not done in time", all),
                "every group of the plan works", remedy);
}

/// The slowest rank's figures for each size of a group that is complete.
std::vector<Measurement> measured(const Evidence& evidence, const GroupTrial& group) {
  std::vector<Measurement> out;
  for (std::size_t i = 0; i < group.sizes.size(); ++i) {
    Measurement slowest{group.name,
                        group.op(),
                        std::string(name_of(group.backend)),
                        static_cast<std::uint32_t>(group.members.size()),
                        group.sizes[i],
                        0,
                        0};
    for (const auto rank : group.members) {
      const auto& result = progress_of(evidence, group, rank)->results[i];
      if (result.seconds < slowest.seconds) continue;
      slowest.seconds = result.seconds;
      slowest.busbw = result.busbw;
    }
    out.push_back(std::move(slowest));
  }
  return out;
}

std::string figures(const Evidence& evidence, const GroupTrial& group) {
  std::vector<std::string> parts;
  for (const auto& one : measured(evidence, group)) {
    parts.push_back(
        fmt::format("{} {} {}", message_text(one.bytes), time_text(one.seconds), format_rate(one.busbw)));
  }
  return text::join(parts, ", ");
}

/// All ranks take the groups in the same order, so that the first group that is not complete holds the cause:
/// later ones only wait for its ranks, unless they say what is wrong themselves.
bool is_consequence(const Evidence& evidence, const GroupTrial& group) {
  if (find_error(evidence, group, "failed").error != nullptr) return false;
  const auto cause = std::ranges::find_if(evidence.groups, [&](const GroupTrial& other) {
    return other.not_run.empty() && !complete(evidence, other);
  });
  return cause != evidence.groups.end() && &*cause != &group;
}

Row judge_group(const Evidence& evidence, const GroupTrial& group) {
  if (!group.not_run.empty()) return skipped(group.op(), group.name, group.not_run);
  if (!evidence.went) return skipped(group.op(), group.name, "not run: the ranks were not fit to begin");
  if (auto row = judge_data(evidence, group)) return *row;
  if (!complete(evidence, group)) {
    if (is_consequence(evidence, group))
      return skipped(group.op(), group.name, "not done: an earlier group failed");
    return judge_incomplete(evidence, group);
  }
  return passed(group.op(), group.name,
                fmt::format("{} ranks over {}, every element right: {}", group.members.size(),
                            name_of(group.backend), figures(evidence, group)));
}

}  // namespace

std::vector<Row> check_collectives(const Evidence& evidence) {
  std::vector<Row> rows;
  for (const auto& group : evidence.groups) rows.push_back(judge_group(evidence, group));
  if (rows.empty() && !evidence.ranks.empty()) {
    rows.push_back(skipped("all_reduce", "this machine", "no group of two or more ranks"));
  }
  return rows;
}

std::vector<Measurement> measurements(const Evidence& evidence) {
  std::vector<Measurement> out;
  for (const auto& group : evidence.groups) {
    if (!group.not_run.empty() || !evidence.went || !complete(evidence, group)) continue;
    for (auto& one : measured(evidence, group)) out.push_back(std::move(one));
  }
  return out;
}

}  // namespace nlaunch::preflight
