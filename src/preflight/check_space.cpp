#include <fmt/format.h>

#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

constexpr std::uint64_t kMiB = 1U << 20U;
constexpr std::uint64_t kGiB = 1U << 30U;

Row judge_room(const std::string& subject, std::uint64_t free) {
  const auto value = size_text(free) + " free";
  constexpr std::uint64_t kLeast = 100 * kMiB;
  if (free >= kGiB) return passed("space", subject, value);
  auto row = warned("space", subject, value, "1 GiB free", {"make room, or choose another folder"});
  if (free < kLeast) row.status = Status::fail;
  return row;
}

/// NCCL and PyTorch's data loaders put buffers into shared memory; where there is no rank, nobody may need
/// it.
Row judge_shared_memory(const std::string& subject, const std::string& error, bool has_ranks) {
  auto row = failed("space", subject, error, "a folder that can be written to",
                    {"NCCL and PyTorch's data loaders put buffers there: ask for access to it"});
  if (!has_ranks) row.status = Status::warn;
  return row;
}

Row judge_folder(const Folder& folder, const Answer& answer, bool has_ranks) {
  const auto subject = fmt::format("{} {}", folder.what, folder.path);
  if (!answer.error.empty()) {
    const bool hangs = answer.error.contains("did not answer");
    return unknown("space", subject, answer.error + (hangs ? ": its file system may hang" : ""));
  }
  const auto error = answer.said.value("error", "");
  const bool only_looked_at = folder.use == Folder::Use::look;
  if (only_looked_at && answer.said.value("read_only", false)) return passed("space", subject, error);
  if (!error.empty() && folder.use == Folder::Use::write)
    return judge_shared_memory(subject, error, has_ranks);
  if (!error.empty()) {
    return failed("space", subject, error,
                  only_looked_at ? "a folder that is there" : "a folder that can be written to",
                  {"choose another one, or ask for access"});
  }
  constexpr double kSlow = 1;  // seconds
  if (const auto seconds = answer.said.value("seconds", 0.0); seconds > kSlow) {
    return warned("space", subject, fmt::format("a file of 4 KiB took {:.1f} s to write", seconds),
                  "less than 1 s",
                  {"its file system is overloaded or sick: choose another one, or report it"});
  }
  const auto free = answer.said.value("free", std::uint64_t{0});
  return folder.use == Folder::Use::fill ? judge_room(subject, free)
                                         : passed("space", subject, size_text(free) + " free");
}

}  // namespace

std::vector<Row> check_space(const NodeObservations& observations) {
  std::vector<Row> rows;
  for (const auto& folder : observations.folders) {
    const auto* answer = observations.answer("folder/" + folder.path);
    if (answer == nullptr) continue;
    auto row = judge_folder(folder, *answer, !observations.ranks.empty());
    // Whether /dev/shm is there, and large enough, stands among the limits.
    const bool told =
        folder.use == Folder::Use::write && (row.status == Status::pass || !observations.machine.shm_free);
    if (!told) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace nlaunch::preflight
