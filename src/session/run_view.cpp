#include "session/run_view.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "launch/job/step.h"
#include "launch/machine.h"
#include "launch/run_dir/run_folder.h"
#include "record/run_files.h"
#include "supervise/events.h"
#include "sys/proc.h"
#include "sys/spawn.h"

namespace nlaunch::session {
namespace {

using supervise::Json;

/// Takes the events of a run in their order.
class Reader {
 public:
  explicit Reader(RunView& view) : view_(view) {}
  void take(const Json& event);

 private:
  ProcessView& process_of(const std::string& name) {
    const auto [found, is_new] = index_.try_emplace(name, view_.processes.size());
    if (is_new) view_.processes.push_back(ProcessView{.name = name, .host = "", .state = "not started"});
    return view_.processes[found->second];
  }

  RunView& view_;
  std::map<std::string, std::size_t> index_;  ///< of processes, by name
};

bool is_elsewhere(const Json& run) {
  const auto host = record::text_at(run, "host");
  return !host.empty() && host != launch::this_host().host;
}

void Reader::take(const Json& event) {
  auto& view = view_;
  const auto what = event.value("event", "");
  if (what == "run" || what == "taken-over") {
    view.name = event.value("name", "");
    view.id = event.value("id", "");
    view.since = event.value("time", "");
    if (view.started.empty()) view.started = view.since;
    view.ended.clear();
    view.exit_code.reset();
    view.site = event.value("site", "");
    view.nodes = event.value("nodes", 0U);
    view.pid = event.value("pid", 0);
    view.job = event.value("job", "");
    view.elsewhere = is_elsewhere(event);
    view.alive = is_led(event);
    view.state = "running";
  } else if (what == "attempt") {
    view.attempt = event.value("number", 0U);
    view.ending.clear();
    view.processes.clear();
    index_.clear();
  } else if (what == "run-ending") {
    view.ending = event.value("what", "");
  } else if (what == "attempt-ended") {
    view.ending.clear();
  } else if (what == "end") {
    view.state = event.value("outcome", "");
    view.alive = view.alive && !view.elsewhere;
    view.since = view.ended = event.value("time", "");
    view.exit_code = event.value("exit_code", 0);
  } else if (what == "goes-on") {
    view.job = event.value("job", "");
    view.pid = 0;
    view.elsewhere = view.alive = true;
    view.state = fmt::format("waiting for job {} to continue", view.job);
  }
  if (!event.contains("process")) return;
  if (what == "link") {
    supervise::add_link(view.links, {record::text_at(event, "kind"), record::text_at(event, "url"),
                                     record::text_at(event, "process")});
    return;
  }
  auto& process = process_of(event.value("process", ""));
  if (what == "process-started") {
    process.pid = event.value("pid", 0);
    process.host = event.value("host", "");
    process.state = "running";
  } else if (what == "process-ready") {
    process.state = "ready";
  } else if (what == "process-stale") {
    process.state = "ready, stale";
  } else if (what == "process-fresh") {
    process.state = "ready";
  } else if (what == "process-lost") {
    process.state = "lost";
  } else if (what == "process-ended") {
    process.state = event.value("how", "ended");
  } else if (what == "process-not-started") {
    process.state = event.value("reason", "not started");
  }
}

/// Only from its events, without inspecting its processes, so that every reader gets the same result.
Result<RunView> told_by_events(const std::filesystem::path& folder) {
  const auto events = supervise::read_events(folder / "events.jsonl");
  if (!events) return std::unexpected(events.error());
  RunView view;
  view.folder = folder;
  Reader reader(view);
  for (const auto& event : *events) reader.take(event);
  if (!view.alive && view.state == "running") {
    view.state = kDied;
    view.since = view.ended = events->back().value("time", "");
  }
  return view;
}

bool is_alive(const std::filesystem::path& folder) {
  const auto view = told_by_events(folder);
  return view && view->alive;
}

}  // namespace

double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool is_led(const Json& run) {
  if (is_elsewhere(run)) return true;
  const auto info = sys::process_info(static_cast<pid_t>(record::number_at(run, "pid")));
  // A zombie has exited, even if its parent has not waited for it yet.
  return info && info->state != 'Z' && info->name.starts_with("nlaunch") &&
         static_cast<double>(info->start_ticks) == record::number_at(run, "start_ticks");
}

Result<std::filesystem::path> find_run(const std::string& runs_dir, const std::string& run) {
  return launch::find_run(runs_dir, run, [](const auto& one) { return is_alive(one); });
}

Result<std::filesystem::path> newest_run(const std::string& runs_dir) {
  std::error_code error;
  std::optional<std::filesystem::path> newest;
  std::pair<bool, std::filesystem::path> best;  // alive, id
  for (const auto& name : std::filesystem::directory_iterator(runs_dir, error)) {
    for (const auto& run : launch::runs_of(name.path())) {
      const std::pair of_run(is_alive(run), run.filename());
      if (newest && of_run <= best) continue;
      newest = run;
      best = of_run;
    }
  }
  if (newest) return *newest;
  return failure("run.none", "no runs in '{}'", std::filesystem::absolute(runs_dir).string());
}

Result<RunView> view_run(const std::string& runs_dir, const std::string& run) {
  const auto folder = find_run(runs_dir, run);
  if (!folder) return std::unexpected(folder.error());
  std::error_code error;
  if (!std::filesystem::exists(*folder / "events.jsonl", error)) {
    RunView view;
    view.folder = *folder;
    view.preflight_only = std::filesystem::exists(*folder / "attempt-0" / "preflight.json", error);
    view.job = submitted_job(*folder);
    view.id = folder->filename();
    view.name = folder->parent_path().filename();
    view.elsewhere = view.alive = !view.job.empty();
    view.state = view.alive            ? fmt::format("waiting for job {} to start", view.job)
                 : view.preflight_only ? "preflight"
                                       : "not started";
    return view;
  }
  auto view = told_by_events(*folder);
  if (!view) return view;
  const auto node = launch::node_name(sys::own_environment());
  for (auto& process : view->processes) {
    const bool lives = process.state == "running" || process.state.starts_with("ready");
    process.alive = lives;
    process.here = process.host.empty() ? !view->elsewhere : process.host == node;
    if (!process.here) continue;
    process.alive = process.pid > 0 && is_process_of(process.pid, "NLAUNCH_RUN_ID", view->id);
    if (!process.alive && lives) process.state = "gone";
  }
  return view;
}

std::string submitted_job(const std::filesystem::path& folder) {
  constexpr std::uint64_t kLargest = 1U << 20U;
  const auto job = parse_ordered_json(
      sys::read_regular_file(folder / "job.json", kLargest, sys::Links::refused).value_or(""));
  const auto jobs = job.is_object() ? job.value("jobs", Json::array()) : Json::array();
  return jobs.is_array() && !jobs.empty() && jobs.back().is_string() ? jobs.back().get<std::string>() : "";
}

Result<void> check_owner(const RunView& view) {
  struct stat info {};
  if (::stat(view.folder.c_str(), &info) != 0 || info.st_uid == ::geteuid()) return {};
  return failure("run.owner", "{} belongs to {}: only that user can act on this run", view.folder.string(),
                 sys::user_name(info.st_uid));
}

bool writes_its_events(const RunView& view) {
  namespace fs = std::filesystem;
  struct stat events {};
  if (::lstat((view.folder / "events.jsonl").c_str(), &events) != 0) return false;
  const auto has_open = [&](pid_t pid) {
    std::error_code error;
    for (fs::directory_iterator at(fmt::format("/proc/{}/fd", pid), error), end; !error && at != end;
         at.increment(error)) {
      struct stat open {};
      if (::stat(at->path().c_str(), &open) == 0 && open.st_dev == events.st_dev &&
          open.st_ino == events.st_ino)
        return true;
    }
    return false;
  };
  // The pid belongs to the guardian; a child of it writes the events.
  const auto below = sys::descendants(view.pid);
  return has_open(view.pid) || std::ranges::any_of(below, [&](const sys::ProcessInfo& process) {
           return process.parent == view.pid && process.name.starts_with("nlaunch") && has_open(process.pid);
         });
}

bool is_process_of(pid_t pid, const std::string& variable, const std::string& value) {
  const auto environment = sys::initial_environment(pid);
  return std::ranges::find(environment, variable + "=" + value) != environment.end();
}

}  // namespace nlaunch::session
