#include "launch/run_dir/run_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/json.h"
#include "base/text.h"
#include "plan/json.h"
#include "sys/files.h"

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool is_run(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "plan.json", error);
}

/// The Slurm jobs as which it was submitted, and those that continued it.
json jobs_of(const fs::path& run) {
  constexpr std::uint64_t kLargest = 1U << 20U;
  const auto submitted =
      parse_json(sys::read_regular_file(run / "job.json", kLargest, sys::Links::refused).value_or(""));
  return submitted.is_object() ? submitted.value("jobs", json::array()) : json::array();
}

/// Its job was submitted and has not started.
bool waits(const fs::path& run) {
  std::error_code error;
  return !jobs_of(run).empty() && !fs::exists(run / "events.jsonl", error);
}

/// By time, then by pid.
auto age(const fs::path& folder) {
  constexpr std::size_t kTime = sizeof("20260131-120000") - 1;
  const auto id = folder.filename().string();
  return std::tuple(id.substr(0, kTime), id.size(), id);
}

std::unexpected<Diagnostics> not_found(const fs::path& runs, const std::string& run,
                                       const std::vector<std::string>& names) {
  const auto where = fs::absolute(runs).string();
  std::error_code error;
  const auto message =
      !fs::is_directory(runs, error)
          ? fmt::format("no run '{}': the directory '{}' does not exist", run, where)
          : fmt::format("no run '{}' in '{}': it is not a path, id, job or name of a run there{}", run, where,
                        names.empty() ? "" : fmt::format(" (names: {})", text::join(names, ", ")));
  return std::unexpected(
      Diagnostics({Severity::error,
                   "launch.run",
                   message,
                   {},
                   {},
                   "give the run's path, or the directory that contains it with --runs-dir"}));
}

}  // namespace

std::string new_run_id() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &local);
  return fmt::format("{}-{}", text, ::getpid());
}

Result<RunPaths> make_run_folder(const fs::path& runs, const std::string& name, const std::string& id) {
  constexpr unsigned kTries = 1000;
  RunPaths paths{id, fs::absolute(runs / name / id), {}};
  std::error_code error;
  fs::create_directories(paths.folder.parent_path(), error);
  // Pids are unique only within a container and a machine: another one that shares the directory may have the
  // same in this second.
  for (unsigned number = 2; !error; ++number) {
    if (::mkdir(paths.folder.c_str(), 0700) == 0) return paths;
    if (errno != EEXIST || number > kTries) error.assign(errno, std::generic_category());
    paths.id = fmt::format("{}-{}", id, number);
    paths.folder.replace_filename(paths.id);
  }
  paths.folder.replace_filename(id);
  Diagnostics diagnostics;
  diagnostics
      .error("file.folder", {},
             fmt::format("cannot create the directory '{}': {}", paths.folder.string(), error.message()))
      .hint = "--runs-dir DIR puts run directories elsewhere";
  return std::unexpected(std::move(diagnostics));
}

Result<void> point_link(const fs::path& link, const std::string& target) {
  std::error_code error;
  const auto temporary = link.parent_path() / fmt::format(".{}-{}", link.filename().string(), target);
  fs::create_symlink(target, temporary, error);
  if (!error) fs::rename(temporary, link, error);
  if (error)
    return failure("launch.link", "cannot point '{}' at '{}': {}", link.string(), target, error.message());
  return {};
}

Result<void> point_latest(const RunPaths& paths) {
  return point_link(paths.folder.parent_path() / "latest", paths.id);
}

unsigned next_attempt(const RunPaths& paths) {
  unsigned attempt = 0;
  std::error_code error;
  while (fs::exists(paths.folder / fmt::format("attempt-{}", attempt), error)) ++attempt;
  return attempt;
}

Result<void> make_attempt_folder(RunPaths& paths, unsigned attempt) {
  paths.attempt = paths.folder / fmt::format("attempt-{}", attempt);
  for (const auto& folder :
       {paths.attempt, paths.attempt / "logs", paths.attempt / "log-times", paths.attempt / "nccl"}) {
    if (const auto made = sys::make_private_folder(folder); !made) return std::unexpected(made.error());
  }
  return {};
}

std::vector<fs::path> runs_of(const fs::path& folder_of_name) {
  std::vector<fs::path> runs;
  std::error_code error;
  for (const auto& run : fs::directory_iterator(folder_of_name, error)) {
    if (!run.is_symlink(error) && is_run(run.path())) runs.push_back(run.path());
  }
  std::ranges::sort(runs, std::greater(), age);
  return runs;
}

namespace {

/// One of its jobs, or the allocation in which it was started.
bool has_job(const fs::path& run, const std::string& job) {
  const auto jobs = jobs_of(run);
  if (std::ranges::find(jobs, json(job)) != jobs.end()) return true;
  constexpr std::size_t kLongest = 65536;
  const auto events = sys::open_regular_file(run / "events.jsonl", sys::Links::refused);
  std::string line(kLongest, '\0');
  line.resize(events ? sys::read_up_to(events->get(), line) : 0);
  const auto first = parse_json(line.substr(0, line.find('\n')));
  return first.is_object() && first.value("job", "") == job;
}

std::vector<fs::path> runs_of_job(const fs::path& runs, const std::string& job) {
  std::vector<fs::path> found;
  if (job.empty() || job.find_first_not_of("0123456789") != std::string::npos) return found;
  std::error_code error;
  for (const auto& name : fs::directory_iterator(runs, error)) {
    for (const auto& run : runs_of(name.path())) {
      if (has_job(run, job)) found.push_back(run);
    }
  }
  std::ranges::sort(found, std::greater(), age);
  return found;
}

}  // namespace

Result<fs::path> find_run(const fs::path& runs, const std::string& run,
                          const std::function<bool(const fs::path&)>& alive) {
  if (is_run(run)) return fs::absolute(run);
  std::error_code error;
  if (const auto named = runs_of(runs / run); !named.empty()) {
    if (waits(named.front())) return fs::canonical(named.front(), error);
    const auto live = std::ranges::find_if(named, alive);
    if (live != named.end()) return fs::canonical(*live, error);
    return fs::canonical(is_run(runs / run / "latest") ? runs / run / "latest" : named.front(), error);
  }
  std::vector<std::string> names;
  for (const auto& name : fs::directory_iterator(runs, error)) {
    if (is_run(name.path() / run)) return fs::canonical(name.path() / run, error);
    if (name.is_directory(error)) names.push_back(name.path().filename().string());
  }
  if (const auto of_job = runs_of_job(runs, run); !of_job.empty()) {
    const auto live = std::ranges::find_if(of_job, alive);
    return fs::canonical(live != of_job.end() ? *live : of_job.front(), error);
  }
  std::ranges::sort(names);
  return not_found(runs, run, names);
}

namespace {

Result<plan::Plan> plan_in(const std::string& file, sys::Links links) {
  constexpr std::uint64_t kLargestPlan = 1U << 30U;
  const auto content = sys::read_regular_file(file, kLargestPlan, links);
  if (!content) return std::unexpected(content.error());
  return plan::from_json(*content, file);
}

}  // namespace

Result<plan::Plan> read_plan(const std::string& file) {
  return plan_in(file, sys::Links::followed);
}

Result<plan::Plan> plan_of_run(const fs::path& run) {
  return plan_in((run / "plan.json").string(), sys::Links::refused);
}

}  // namespace nlaunch::launch
