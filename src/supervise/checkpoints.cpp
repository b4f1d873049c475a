#include "supervise/checkpoints.h"

#include <re2/re2.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "supervise/events.h"
#include "sys/files.h"

namespace nlaunch::supervise {
namespace {

namespace fs = std::filesystem;

/// May start with `${run.dir}`; see plan::Checkpoint.
fs::path folder_of(const plan::Checkpoint& how, const fs::path& run_folder) {
  constexpr std::string_view kRunFolder = "${run.dir}";
  if (!how.dir.starts_with(kRunFolder)) return how.dir;
  return run_folder.string() + how.dir.substr(kRunFolder.size());
}

/// The number in the first group, if the whole name matches.
std::optional<std::uint64_t> step_of(const std::string& name, const re2::RE2& pattern) {
  std::string number;
  if (!re2::RE2::FullMatch(name, pattern, &number)) return std::nullopt;
  return text::whole_number<std::uint64_t>(number);
}

/// The step in the tracker file; empty if the file does not exist or contains no number.
std::optional<std::uint64_t> tracked(const fs::path& tracker) {
  constexpr std::uint64_t kLargest = 4096;
  const auto content = sys::read_regular_file(tracker, kLargest);
  return content ? text::whole_number<std::uint64_t>(text::trim(*content)) : std::nullopt;
}

}  // namespace

CheckpointFolder::CheckpointFolder(const plan::Checkpoint& how, const fs::path& run_folder)
    : how_(how), folder_(folder_of(how, run_folder)), name_(std::make_unique<re2::RE2>(how.folder)) {
  if (!how.partial.empty()) partial_ = std::make_unique<re2::RE2>(how.partial);
  for (const auto& found : look())
    if (!found.complete) left_[found.name] = found.changed;
}

CheckpointFolder::~CheckpointFolder() = default;

std::vector<CheckpointFolder::Found> CheckpointFolder::look() const {
  std::vector<Found> all;
  const auto newest = how_.tracker.empty() ? std::nullopt : tracked(folder_ / how_.tracker);
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    if (!at->is_directory(gone)) continue;
    Found found{.name = at->path().filename(), .changed = at->last_write_time(gone)};
    if (const auto step = step_of(found.name, *name_)) {
      found.step = *step;
      found.complete = !how_.tracker.empty()    ? newest && *step <= *newest
                       : !how_.complete.empty() ? fs::exists(at->path() / how_.complete, gone)
                                                : true;
    } else if (const auto begun = partial_ ? step_of(found.name, *partial_) : std::nullopt) {
      found.step = *begun;
    } else {
      continue;
    }
    all.push_back(std::move(found));
  }
  return all;
}

std::optional<SavedCheckpoint> CheckpointFolder::newest() const {
  std::optional<SavedCheckpoint> newest;
  for (const auto& found : look()) {
    if (found.complete && (!newest || found.step > *newest->step))
      newest = SavedCheckpoint{(folder_ / found.name).string(), found.step};
  }
  return newest;
}

std::string CheckpointFolder::in_flight() const {
  const auto all = look();
  std::optional<std::uint64_t> newest;
  for (const auto& found : all)
    if (found.complete) newest = std::max(newest.value_or(0), found.step);
  for (const auto& found : all) {
    const auto left = left_.find(found.name);
    const bool cut_off = left != left_.end() && left->second == found.changed;
    // Old checkpoints are removed file by file, so they can look incomplete.
    if (!found.complete && !cut_off && (!newest || found.step > *newest)) return found.name;
  }
  return "";
}

std::optional<SavedCheckpoint> checkpoint_to_resume(const plan::Plan& plan, const fs::path& run_folder) {
  if (!plan.checkpoint) return std::nullopt;
  if (!plan.checkpoint->dir.empty()) return CheckpointFolder(*plan.checkpoint, run_folder).newest();
  const auto events = read_events(run_folder / "events.jsonl");
  if (!events) return std::nullopt;
  std::optional<SavedCheckpoint> last;
  for (const auto& event : *events) {
    std::error_code error;
    if (event.value("event", "") != "checkpoint" || !fs::exists(event.value("path", ""), error)) continue;
    last = SavedCheckpoint{event.value("path", ""), {}};
    if (event.contains("step")) last->step = event.value("step", std::uint64_t{0});
  }
  return last;
}

}  // namespace nlaunch::supervise
