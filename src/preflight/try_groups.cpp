#include "preflight/try_groups.h"

#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "preflight/trials.h"
#include "sys/files.h"

namespace nlaunch::preflight {
namespace {

namespace fs = std::filesystem;

std::vector<std::size_t> wanted_ranks(const Evidence& evidence, bool apart) {
  std::vector<std::size_t> out;
  if (!apart) {
    for (std::size_t rank = 0; rank < evidence.ranks.size(); ++rank) {
      if (evidence.ranks[rank].no_probe.empty()) out.push_back(rank);
    }
    return out;
  }
  for (const auto& group : evidence.groups) out.insert(out.end(), group.members.begin(), group.members.end());
  std::ranges::sort(out);
  return out;
}

/// Takes away the logs in which nothing stands.
void tidy(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> gone;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto name = entry.path().filename().string();
    if (name.ends_with(".err") && entry.file_size(error) == 0) gone.push_back(entry.path());
  }
  for (const auto& path : gone) fs::remove_all(path, error);
}

Result<void> prepare(const Examination& request, const Evidence& evidence, const std::string& folder) {
  std::error_code error;
  fs::remove_all(folder, error);  // what is left of an earlier preflight would lead ranks astray
  if (auto made = sys::make_private_folder(folder); !made) return made;
  return sys::write_file_atomically(folder + "/spec.json",
                                    json_text(make_spec(evidence, folder, request.addresses), 1) + "\n");
}

void drop_sizes_without_room(Evidence& evidence, const std::vector<std::size_t>& wanted) {
  const auto common = evidence.apart ? 0 : room_for_messages(evidence.reports, wanted);
  for (auto& group : evidence.groups) {
    const auto room = evidence.apart ? room_for_messages(evidence.reports, group.members) : common;
    std::erase_if(group.sizes, [&](std::uint64_t bytes) { return bytes > room; });
  }
}

}  // namespace

Evidence evidence_for(const Examination& request, const std::vector<Rank>& ranks) {
  Evidence out{.plan = request.plan,
               .hosts = request.hosts,
               .clocks = request.clocks,
               .deadlines = request.deadlines,
               .ranks = ranks};
  out.level = request.options.level;
  return out;
}

Result<bool> try_groups(sys::Loop& loop, const Examination& request, Evidence& evidence,
                        const GroupRun& run) {
  // The probes keep their own deadlines and say more; these are for those that cannot.
  constexpr Duration kSlack{500};
  if (auto ready = prepare(request, evidence, run.folder); !ready) return std::unexpected(ready.error());
  const auto& deadlines = evidence.deadlines;
  const auto wanted = wanted_ranks(evidence, run.apart);
  const auto probes = request.probes({evidence.ranks, wanted, run.folder});
  auto outcome = run_probes(loop, *probes,
                            {wanted, evidence.ranks.size(), evidence.groups, deadlines.join + kSlack,
                             std::max(deadlines.join, deadlines.op) + kSlack, run.fit, request.cancelled,
                             run.apart, request.options.progress});
  evidence.reports = std::move(outcome.reports);
  evidence.went = outcome.went;
  evidence.apart = run.apart;
  drop_sizes_without_room(evidence, wanted);
  tidy(run.folder);
  return outcome.cancelled;
}

}  // namespace nlaunch::preflight
