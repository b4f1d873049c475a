#include "cli/run_view.h"

#include <algorithm>

#include "launch/run_folder.h"
#include "supervise/events.h"
#include "sys/proc.h"

namespace nlaunch::cli {
namespace {

using supervise::Json;

ProcessView& process_of(RunView& view, const std::string& name) {
  const auto found = std::ranges::find(view.processes, name, &ProcessView::name);
  if (found != view.processes.end()) return *found;
  return view.processes.emplace_back(ProcessView{name, "not started", 0, false});
}

void take(RunView& view, const Json& event) {
  const auto what = event.value("event", "");
  if (what == "run") {
    view.id = event.value("id", "");
    view.pid = event.value("pid", 0);
    const auto info = sys::process_info(view.pid);
    // A zombie has ended, whoever has not yet asked how.
    view.alive =
        info && info->state != 'Z' && info->start_ticks == event.value("start_ticks", std::uint64_t{0});
    view.state = "running";
  } else if (what == "attempt") {
    view.attempt = event.value("number", 0U);
    view.processes.clear();
  } else if (what == "end") {
    view.state = event.value("outcome", "");
  }
  if (!event.contains("process")) return;
  auto& process = process_of(view, event.value("process", ""));
  if (what == "process-started") {
    process.pid = event.value("pid", 0);
    process.state = "running";
  } else if (what == "process-ready") {
    process.state = "ready";
  } else if (what == "process-ended") {
    process.state = event.value("how", "ended");
  } else if (what == "process-not-started") {
    process.state = event.value("reason", "not started");
  }
}

}  // namespace

Result<RunView> view_run(const std::string& runs_dir, const std::string& run) {
  const auto folder = launch::find_run(runs_dir, run);
  if (!folder) return std::unexpected(folder.error());
  const auto events = supervise::read_events(*folder / "events.jsonl");
  if (!events) return std::unexpected(events.error());
  RunView view;
  view.folder = *folder;
  for (const auto& event : *events) take(view, event);
  for (auto& process : view.processes) {
    process.alive = process.pid > 0 && is_process_of(process.pid, "NLAUNCH_RUN_ID", view.id);
    if (!process.alive && (process.state == "running" || process.state == "ready")) process.state = "gone";
  }
  if (!view.alive && view.state == "running") view.state = "ended without a word: nlaunch itself was killed";
  return view;
}

bool is_process_of(pid_t pid, const std::string& variable, const std::string& value) {
  const auto environment = sys::initial_environment(pid);
  return std::ranges::find(environment, variable + "=" + value) != environment.end();
}

}  // namespace nlaunch::cli
