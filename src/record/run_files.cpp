#include "record/run_files.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"
#include "base/json.h"
#include "supervise/events.h"
#include "sys/files.h"
#include "sys/run_file.h"

namespace nlaunch::record {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBound = "bound.";
constexpr std::string_view kJson = ".json";

/// Reads the files of one run and collects the problems with them.
class Reader {
 public:
  /// Null: it does not exist, or is damaged.
  Json read(const fs::path& file, const Format& format) {
    auto json = sys::read_run_file(file, format);
    if (!json) note(json.error());
    return json && *json ? std::move(**json) : Json();
  }
  std::vector<Json> read_events(const fs::path& file) {
    std::error_code error;
    if (!fs::exists(fs::symlink_status(file, error))) return {};
    auto events = supervise::read_events(file);
    if (!events) note(events.error());
    return events ? std::move(*events) : std::vector<Json>();
  }
  [[nodiscard]] const Diagnostics& newer() const { return newer_; }
  [[nodiscard]] const Diagnostics& damaged() const { return damaged_; }

 private:
  void note(const Diagnostics& why) {
    for (const auto& item : why.items()) (item.id == "format.newer" ? newer_ : damaged_).add(item);
  }

  Diagnostics newer_;
  Diagnostics damaged_;
};

std::map<std::string, Json> read_bound(const fs::path& attempt, Reader& reader) {
  std::map<std::string, Json> out;
  for (const auto& name : sys::names_in(attempt)) {
    if (!name.starts_with(kBound) || !name.ends_with(kJson) || name.size() < kBound.size() + kJson.size())
      continue;
    auto json = reader.read(attempt / name, formats::kBound);
    if (json.is_object())
      out[name.substr(kBound.size(), name.size() - kBound.size() - kJson.size())] = std::move(json);
  }
  return out;
}

}  // namespace

std::vector<fs::path> evidence_folders(const Attempt& attempt) {
  const auto evidence = attempt.folder / "evidence";
  std::vector<fs::path> folders;
  if (!sys::is_folder_itself(evidence)) return folders;
  for (const auto& time : sys::names_in(evidence)) {
    if (sys::is_folder_itself(evidence / time)) folders.push_back(evidence / time);
  }
  return folders;
}

Json read_json(const fs::path& file) {
  constexpr std::uint64_t kLargest = 256U << 20U;
  const auto content = sys::read_regular_file(file, kLargest, sys::Links::refused);
  if (!content) return nullptr;
  auto json = parse_ordered_json(*content);
  return json.is_discarded() ? Json() : json;
}

const Json& at(const Json& from, std::string_view key) {
  static const Json kNothing;
  if (!from.is_object()) return kNothing;
  const auto found = from.find(key);
  return found == from.end() ? kNothing : *found;
}

std::string text_at(const Json& from, std::string_view key) {
  const auto& found = at(from, key);
  return found.is_string() ? found.get<std::string>() : "";
}

double number_at(const Json& from, std::string_view key, double otherwise) {
  const auto& found = at(from, key);
  return found.is_number() ? found.get<double>() : otherwise;
}

std::vector<std::pair<unsigned, fs::path>> attempt_folders(const fs::path& run) {
  constexpr std::string_view kAttempt = "attempt-";
  std::vector<std::pair<unsigned, fs::path>> out;
  for (const auto& name : sys::names_in(run)) {
    if (!name.starts_with(kAttempt) || !sys::is_folder_itself(run / name)) continue;
    unsigned number = 0;
    const auto* end = name.data() + name.size();
    const auto [stopped, error] = std::from_chars(name.data() + kAttempt.size(), end, number);
    if (error == std::errc() && stopped == end) out.emplace_back(number, run / name);
  }
  std::ranges::sort(out);
  return out;
}

Result<RunFiles> read_run(const fs::path& folder, Parts parts) {
  RunFiles out;
  Reader reader;
  out.folder = folder;
  out.plan = reader.read(folder / "plan.json", formats::kPlan);
  out.lock = reader.read(folder / "lock.json", formats::kLock);
  out.summary = reader.read(folder / "summary.json", formats::kSummary);
  out.job = read_json(folder / "job.json");
  for (const auto& [number, path] : attempt_folders(folder)) {
    auto& attempt = out.attempts.emplace_back(Attempt{.number = number, .folder = path});
    attempt.steps = reader.read_events(path / "steps.jsonl");
    attempt.diagnosis = reader.read(path / "diagnosis.json", formats::kDiagnosis);
    if (parts == Parts::without_nodes) continue;
    attempt.bound = read_bound(path, reader);
    attempt.preflight = reader.read(path / "preflight.json", formats::kPreflight);
    attempt.audit = reader.read(path / "audit.json", formats::kAudit);
  }
  out.events = reader.read_events(folder / "events.jsonl");
  if (!reader.newer().empty()) return std::unexpected(reader.newer());
  out.damaged = reader.damaged();
  return out;
}

}  // namespace nlaunch::record
