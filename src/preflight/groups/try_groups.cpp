#include "preflight/groups/try_groups.h"

#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "preflight/groups/trials.h"
#include "sys/files.h"

namespace nlaunch::preflight {
namespace {

namespace fs = std::filesystem;

std::vector<std::size_t> wanted_ranks(const Observations& observations, bool apart) {
  std::vector<std::size_t> out;
  if (!apart) {
    for (std::size_t rank = 0; rank < observations.ranks.size(); ++rank) {
      if (observations.ranks[rank].no_probe.empty()) out.push_back(rank);
    }
    return out;
  }
  for (const auto& group : observations.groups)
    out.insert(out.end(), group.members.begin(), group.members.end());
  std::ranges::sort(out);
  return out;
}

/// Removes the logs that are empty.
void tidy(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> gone;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto name = entry.path().filename().string();
    if (name.ends_with(".err") && entry.file_size(error) == 0) gone.push_back(entry.path());
  }
  for (const auto& path : gone) fs::remove_all(path, error);
}

Result<void> prepare(const Examination& request, const Observations& observations,
                     const std::string& folder) {
  std::error_code error;
  fs::remove_all(folder, error);  // files of an earlier preflight would mislead ranks
  if (auto made = sys::make_private_folder(folder); !made) return made;
  return sys::write_file_atomically(folder + "/spec.json",
                                    json_text(make_spec(observations, folder, request.addresses), 1) + "\n");
}

void drop_sizes_without_room(Observations& observations, const std::vector<std::size_t>& wanted) {
  const auto common = observations.apart ? 0 : room_for_messages(observations.reports, wanted);
  for (auto& group : observations.groups) {
    const auto room = observations.apart ? room_for_messages(observations.reports, group.members) : common;
    std::erase_if(group.sizes, [&](std::uint64_t bytes) { return bytes > room; });
  }
}

}  // namespace

Observations observations_for(const Examination& request, const std::vector<Rank>& ranks) {
  Observations out{.plan = request.plan,
                   .hosts = request.hosts,
                   .clocks = request.clocks,
                   .deadlines = request.deadlines,
                   .ranks = ranks};
  out.level = request.options.level;
  return out;
}

Result<bool> try_groups(sys::Loop& loop, const Examination& request, Observations& observations,
                        const GroupRun& run) {
  // The probes have their own deadlines and report more; these are for probes that cannot.
  constexpr Duration kSlack{500};
  if (auto ready = prepare(request, observations, run.folder); !ready) return std::unexpected(ready.error());
  const auto& deadlines = observations.deadlines;
  const auto wanted = wanted_ranks(observations, run.apart);
  const auto probes = request.probes({observations.ranks, wanted, run.folder});
  const auto begin = Timeline::Clock::now();
  auto outcome = run_probes(loop, *probes,
                            {wanted, observations.ranks.size(), observations.groups, deadlines.join + kSlack,
                             std::max(deadlines.join, deadlines.op) + kSlack, run.fit, request.cancelled,
                             run.apart, request.options.progress, request.options.timeline});
  request.options.took("probes, from their start to their end", begin);
  observations.reports = std::move(outcome.reports);
  observations.went = outcome.went;
  observations.apart = run.apart;
  drop_sizes_without_room(observations, wanted);
  tidy(run.folder);
  return outcome.cancelled;
}

}  // namespace nlaunch::preflight
