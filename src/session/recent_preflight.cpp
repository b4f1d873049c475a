#include "session/recent_preflight.h"

#include <fmt/format.h>

#include <boost/algorithm/string/replace.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/units.h"
#include "launch/run_dir/run_folder.h"
#include "preflight/report/report_json.h"
#include "record/compare.h"
#include "record/run_files.h"

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

/// The report of its last attempt, if that is a preflight's.
std::optional<preflight::Report> last_report(const fs::path& run, fs::path& attempt) {
  const auto attempts = record::attempt_folders(run);
  if (attempts.empty()) return std::nullopt;
  attempt = attempts.back().second;
  const auto json = record::read_json(attempt / "preflight.json");
  if (!json.is_object()) return std::nullopt;
  try {
    return preflight::report_from_json(json);
  } catch (const std::exception&) {  // damaged, or of another version
    return std::nullopt;
  }
}

/// True for a run that may have shown that something is wrong, or is still running.
bool did_not_finish(const fs::path& run) {
  std::error_code error;
  if (!fs::exists(run / "events.jsonl", error)) return false;  // of `nlaunch preflight`
  return record::text_at(record::read_json(run / "summary.json"), "outcome") != "finished";
}

bool passed(const preflight::Report& report, PreflightLevel level, const std::string& job) {
  using preflight::Status;
  return report.level >= level && report.job == job && !report.cancelled &&
         (report.verdict == Status::pass || report.verdict == Status::warn);
}

}  // namespace

std::optional<RecentPreflight> recent_preflight(const launch::RunPaths& paths, PreflightLevel level,
                                                const std::string& job, std::int64_t now) {
  const auto oldest = now - std::chrono::seconds(kRecent).count();
  const auto plan = record::read_json(paths.folder / "plan.json");
  const auto nodes = static_cast<std::size_t>(record::number_at(record::at(plan, "node"), "count", 1));
  std::map<std::string, std::string> here;
  for (const auto& run : launch::runs_of(paths.folder.parent_path())) {
    if (run.filename() == paths.folder.filename()) continue;
    if (did_not_finish(run)) return std::nullopt;
    fs::path attempt;
    const auto report = last_report(run, attempt);
    if (!report) continue;
    if (report->time < oldest || report->time > now) return std::nullopt;  // all others are older
    if (!passed(*report, level, job) || record::read_json(run / "plan.json") != plan) continue;
    if (here.empty()) here = bindings(paths.attempt, paths.id);
    if (here.size() != nodes) return std::nullopt;  // they share no directory
    if (bindings(attempt, run.filename().string()) != here) continue;
    return RecentPreflight{run.filename().string(), *report, std::chrono::seconds(now - report->time)};
  }
  return std::nullopt;
}

std::string sentence(const RecentPreflight& recent) {
  const bool warned = recent.report.verdict == preflight::Status::warn;
  return fmt::format(
      "preflight: level quick, because level {} passed{} {} ago (run {}) with the same plan, nodes, GPUs, "
      "libraries and environment; --fresh repeats it",
      name_of(recent.report.level), warned ? " with warnings" : "", format_duration(recent.age), recent.run);
}

}  // namespace nlaunch::session
