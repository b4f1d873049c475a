#include "session/recent_preflight.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/units.h"
#include "launch/run_dir/run_folder.h"
#include "preflight/report/report_json.h"
#include "record/compare.h"
#include "record/run_files.h"
#include "supervise/requests.h"

namespace nlaunch::session {
namespace {

namespace fs = std::filesystem;
using record::Json;

constexpr std::chrono::minutes kRecent{10};

/// What the nodes bound, by file name, without what differs for every run; empty: nothing can be read.
std::map<std::string, std::string> bindings(const fs::path& attempt, const std::string& run) {
  std::map<std::string, std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(attempt, error)) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with("bound.") || !name.ends_with(".json")) continue;
    auto bound = record::read_json(entry.path());
    if (!bound.is_object()) return {};
    bound.erase("notes");
    bound.erase("dropped");
    if (auto processes = bound.find("processes"); processes != bound.end() && processes->is_array()) {
      for (auto& process : *processes) {
        if (!process.is_object() || !record::at(process, "env").is_object()) continue;
        auto kept = Json::object();
        for (const auto& [variable, value] : process["env"].items())
          if (!record::varies_by_job(variable)) kept[variable] = value;
        process["env"] = std::move(kept);
      }
    }
    out[name] = boost::replace_all_copy(json_text(bound), run, "RUN");
  }
  return out;
}

/// The time of the last change in a directory, seconds since 1970; 0: there is no such directory.
std::int64_t changed(const fs::path& folder) {
  struct stat info {};
  return ::stat(folder.c_str(), &info) == 0 ? info.st_mtim.tv_sec : 0;
}

/// The run directory of another run, or of `nlaunch preflight`.
struct Other {
  fs::path folder;
  fs::path attempt;  ///< the last one; empty: none
  std::size_t attempts = 0;
  std::optional<preflight::Report> report{};

  /// Without the report.
  explicit Other(const fs::path& run) : folder(run) {
    const auto all = record::attempt_folders(run);
    attempts = all.size();
    if (!all.empty()) attempt = all.back().second;
  }

  [[nodiscard]] std::int64_t last_change() const { return std::max(changed(folder), changed(attempt)); }

  void read_report() {
    const auto json = record::read_json(attempt / "preflight.json");
    try {
      if (json.is_object()) report = preflight::report_from_json(json);
    } catch (const std::exception&) {
      // It is damaged, or of another version.
    }
  }

  /// It may have shown that something is wrong, or is still running.
  [[nodiscard]] bool went_wrong(const std::string& job) const {
    using preflight::Status;
    if (report && report->job == job &&
        (report->cancelled || report->verdict == Status::fail || report->verdict == Status::unknown))
      return true;
    std::error_code error;
    const bool is_run = fs::exists(folder / "events.jsonl", error);
    if (!is_run) return attempts > 0 && !report;
    return attempts > 1 ||
           record::text_at(record::read_json(folder / "summary.json"), "outcome") != "finished";
  }

  [[nodiscard]] bool passed(PreflightLevel level, const std::string& job) const {
    using preflight::Status;
    return report && report->level >= level && report->job == job && !report->cancelled &&
           (report->verdict == Status::pass || report->verdict == Status::warn) && !was_updated();
  }

 private:
  /// Then its plan and what its nodes bound are not what was checked.
  [[nodiscard]] bool was_updated() const {
    std::error_code error;
    return std::ranges::any_of(fs::directory_iterator(attempt, error), [](const fs::directory_entry& entry) {
      return entry.path().filename().string().starts_with(supervise::kUpdatePlan);
    });
  }
};

}  // namespace

std::optional<RecentPreflight> recent_preflight(const launch::RunPaths& paths, PreflightLevel level,
                                                const std::string& job, std::int64_t now) {
  if (record::attempt_folders(paths.folder).size() > 1) return std::nullopt;
  const auto oldest = now - std::chrono::seconds(kRecent).count();
  const auto plan = record::read_json(paths.folder / "plan.json");
  const auto nodes = static_cast<std::size_t>(record::number_at(record::at(plan, "node"), "count", 1));
  std::map<std::string, std::string> here;
  std::optional<RecentPreflight> found;
  std::int64_t wrong = 0;  // when something went wrong last
  for (const auto& run : launch::runs_of(paths.folder.parent_path())) {
    if (run.filename() == paths.folder.filename()) continue;
    Other other(run);
    if (other.last_change() < oldest) continue;
    other.read_report();
    if (other.went_wrong(job)) wrong = std::max(wrong, other.last_change());
    if (!other.passed(level, job)) continue;
    const auto time = other.report->time;
    if (time < oldest || time > now || (found && found->report.time >= time)) continue;
    if (record::read_json(run / "plan.json") != plan) continue;
    if (here.empty()) here = bindings(paths.attempt, paths.id);
    if (here.size() != nodes) return std::nullopt;  // they share no directory
    if (bindings(other.attempt, run.filename().string()) != here) continue;
    found = RecentPreflight{run.filename().string(), *other.report, std::chrono::seconds(now - time)};
  }
  if (found && found->report.time <= wrong) return std::nullopt;
  return found;
}

std::string sentence(const RecentPreflight& recent) {
  const bool warned = recent.report.verdict == preflight::Status::warn;
  return fmt::format(
      "preflight: level quick, because level {} passed{} {} ago (run {}) with the same plan, nodes, GPUs, "
      "libraries and environment; --fresh repeats it",
      name_of(recent.report.level), warned ? " with warnings" : "", format_duration(recent.age), recent.run);
}

}  // namespace nlaunch::session
