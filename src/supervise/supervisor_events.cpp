#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "supervise/stop_signal.h"
#include "supervise/supervisor.h"

// Events from the backend, as they go into the record and into the state machine.
namespace nlaunch::supervise {

void Supervisor::on(const ProcessEvent& process_event) {
  std::visit([&](const auto& what) { on(process_event.at, what); }, process_event.what);
}

void Supervisor::on(Duration at, const process_event::Started& started) {
  auto& report = outcome_.processes[started.process];
  report.pid = started.pid;
  report.started = at;
  report.ready = report.ended = std::nullopt;
  report.stopped = false;
  report.status = std::nullopt;
  report.exception = std::nullopt;
  explanations_.erase(started.process);
  Json fields{{"process", report.name}, {"pid", started.pid}, {"restarts", report.restarts}};
  if (!report.host.empty()) fields["host"] = report.host;
  record("process-started", fields);
  if (rules_.processes[started.process].ready == ProcessRules::Ready::started) {
    report.ready = at;
    say_ready_again(started.process, at);
  }
  if (watching_) watching_->on(started);
  handle(event::Started{started.process});
}

void Supervisor::on(Duration, const process_event::NotStarted& not_started) {
  record("process-not-started", {{"process", name_of(not_started.process)}, {"reason", not_started.reason}});
  handle(event::SpawnFailed{not_started.process, not_started.reason});
}

void Supervisor::on(Duration at, const process_event::Ready& ready) {
  note_ready(ready.process, at);
  handle(ready);
}

void Supervisor::note_ready(ProcessIndex process, Duration at) {
  auto& report = outcome_.processes[process];
  report.ready = at;
  explanations_.erase(process);
  record("process-ready",
         {{"process", report.name}, {"after_ms", (at - report.started.value_or(at)).count()}});
  if (begins_stale(rules_, state_, process)) record("process-stale", {{"process", report.name}});
  if (rules_.processes[process].borrowed && report.restarts == 0)
    say(fmt::format("{} is ready on {}", report.name, report.host));
  say_once_all_are_ready(process, at);
  say_ready_again(process, at);
}

/// For a process that the run had continued without.
void Supervisor::say_ready_again(ProcessIndex process, Duration at) {
  const auto lost = lost_at_.extract(process);
  if (lost.empty()) return;
  const auto& report = outcome_.processes[process];
  record("process-back", {{"process", report.name}, {"after_ms", (at - lost.mapped()).count()}});
  say(fmt::format("{} is back{}, {} after it was lost", report.name,
                  report.host.empty() ? "" : " on " + report.host, in_seconds(at - lost.mapped())));
}

/// A process that is ready again after a restart is not reported.
void Supervisor::say_once_all_are_ready(ProcessIndex process, Duration at) {
  const auto role_of = [this](ProcessIndex of) {
    return options_.plan.processes[rules_.processes[of].process].role;
  };
  const auto role = role_of(process);
  if (not_ready_[role].erase(process) == 0 || !not_ready_[role].empty()) return;
  auto first = at;
  for (ProcessIndex other = 0; other < outcome_.processes.size(); ++other) {
    if (role_of(other) == role) first = std::min(first, outcome_.processes[other].started.value_or(at));
  }
  const auto& of = options_.plan.roles[role];
  const auto borrowed = std::ranges::count_if(rules_.processes, [&](const ProcessRules& rules) {
    const auto& other = options_.plan.processes[rules.process];
    return rules.borrowed && other.role == role && plan::in_replica(of, other).rank == 0;
  });
  say(fmt::format("{0}: {1} of {1} {2} after {3}", of.name, plan::replicas(of) - borrowed,
                  of.ready.exited ? "done" : "ready", in_seconds(at - first)));
}

void Supervisor::on(Duration, const process_event::NotReady& not_ready) {
  const auto process = not_ready.process;
  if (!std::holds_alternative<Running>(state_.processes[process].phase)) return;  // stopped meanwhile
  if (!outcome_.decided) outcome_.not_ready = not_ready.waited;
  if (rules_.processes[process].ready == ProcessRules::Ready::exited)
    say(fmt::format("stopping {} ({})", name_of(process), not_ready.waited));
  note_explanation(process, explain(planned_role(process), name_of(process), not_ready.seen));
  handle(event::ReadyTimeout{process});
}

const plan::Role& Supervisor::planned_role(ProcessIndex process) const {
  return options_.plan.role_of(options_.plan.processes[rules_.processes[process].process]);
}

/// It is reported with the end of the run, or at once if the run goes on.
void Supervisor::note_explanation(ProcessIndex process, Explanation explanation) {
  later({}, [this, text = fmt::format("{}; {}", explanation.why, explanation.fix)] {
    if (!outcome_.decided) say(text);
  });
  explanations_.insert_or_assign(process, std::move(explanation));
}

void Supervisor::on(Duration, const process_event::Unresponsive& silent) {
  record("process-unresponsive", {{"process", name_of(silent.process)}, {"why", silent.reason}});
  if (std::holds_alternative<Serving>(state_.processes[silent.process].phase))
    say(fmt::format("{} stopped responding ({})", name_of(silent.process), silent.reason));
  handle(silent);
}

void Supervisor::on(Duration, const process_event::Fresh& fresh) {
  record("process-fresh", {{"process", name_of(fresh.process)}});
  say(fmt::format("{} has the current weights", name_of(fresh.process)));
  handle(fresh);
}

void Supervisor::on(Duration at, const process_event::Raised& raised) {
  auto& report = outcome_.processes[raised.process];
  report.exception = Exception{raised.type, raised.message, at - raised.ago, raised.within};
  record("process-raised", {{"process", report.name},
                            {"exception", report.exception->str()},
                            {"raised_ms", report.exception->at.count()}});
}

void Supervisor::on(Duration at, const process_event::Ended& ended) {
  auto& report = outcome_.processes[ended.process];
  report.ended = at;
  report.status = ended.status;
  record("process-ended", {{"process", report.name}, {"pid", report.pid}, {"how", ended.status.str()}});
  const bool was_task = rules_.processes[ended.process].ready == ProcessRules::Ready::exited;
  if (was_task && ended.status.ok() && !report.stopped) note_ready(ended.process, at);
  if (watching_) watching_->on(ended);
  // A program that cannot do its work exits within this time; one that loads first has a readiness check.
  constexpr Duration kSoon = std::chrono::seconds(10);
  auto event = ended;
  event.soon = at - report.started.value_or(at) < kSoon;
  handle(event);
}

void Supervisor::on(Duration at, const process_event::ChildEnded& ended) {
  constexpr std::size_t kMostChildren = 32;
  auto& report = outcome_.processes[ended.process];
  const Child child{ended.pid, ended.title};
  record("child-ended", {{"process", report.name},
                         {"pid", ended.pid},
                         {"child", text::printable(ended.title)},
                         {"how", ended.status ? ended.status->str() : "ended"}});
  if (report.children.size() == kMostChildren) report.children.erase(report.children.begin());
  report.children.push_back({child, ended.status, at, ended.logs});
  if (!is_part_of_server(ended.title)) return;
  later(kTimeToEndWithoutPart,
        [this, p = ended.process, pid = report.pid, reason = end_of_child(report, report.children.back())] {
          if (outcome_.processes[p].pid == pid) handle(event::PartLost{p, reason});
        });
}

void Supervisor::on(Duration, const process_event::CleanedUp& cleaned) {
  auto& report = outcome_.processes[cleaned.process];
  report.last_lines = cleaned.last_lines;
  if (!cleaned.killed.empty()) {
    record("leftovers-killed", {{"process", report.name}, {"killed", cleaned.killed}});
    report.left_behind.insert(report.left_behind.end(), cleaned.killed.begin(), cleaned.killed.end());
  }
  if (cleaned.port)
    note_explanation(cleaned.process, explain(planned_role(cleaned.process), report.name, *cleaned.port));
  handle(event::CleanedUp{cleaned.process});
}

void Supervisor::on(Duration, const process_event::NotKillable& stuck) {
  record("process-not-killable", {{"process", name_of(stuck.process)}});
  handle(event::Ended{stuck.process, sys::WaitStatus(SIGKILL)});
}

void Supervisor::on(Duration, const process_event::Signal& signal) {
  record("signal", {{"signal", sys::signal_name(signal.signal)}});
  const bool by_a_person = signal.signal == SIGINT || signal.signal == stop_signal();
  const auto cause = cause_of(rules_, signal.signal);
  const bool may_wait = by_a_person || (cause && std::holds_alternative<WalltimeNear>(*cause));
  // A second request means that the user does not want to wait.
  const bool again = held_ && held_->stops;
  if (may_wait && !again && hold_for_checkpoint(true, [this, signal] { handle(signal); })) return;
  if (cause) held_.reset();
  handle(signal);
}

void Supervisor::on(Duration at, const process_event::NodeLost& lost) {
  record("node-lost", {{"host", lost.host}, {"why", lost.why}});
  for (const auto process : lost.processes) {
    auto& report = outcome_.processes[process];
    if (report.started && !report.ended) report.ended = at;
  }
  handle(lost);
}

void Supervisor::on(Duration, const process_event::NodeBack& back) {
  Json names = Json::array();
  std::string before;
  for (const auto process : back.processes) {
    auto& report = outcome_.processes[process];
    before = std::exchange(report.host, back.host);
    names.push_back(report.name);
  }
  record("node-back", {{"host", back.host}, {"before", before}, {"processes", names}});
  const auto node = options_.plan.processes[rules_.processes[back.processes.front()].process].node;
  const bool is_new = options_.plan.is_borrowed(node) && before == options_.plan.name_of_borrowed(node);
  say(is_new                ? fmt::format("{} joins the run as {}", back.host, before)
      : back.host == before ? fmt::format("{} is back", back.host)
                            : fmt::format("{} replaces {}", back.host, before));
  handle(back);
}

void Supervisor::on(Duration, const process_event::Abort& abort) {
  handle(abort);
}

void Supervisor::on(Duration, const process_event::Progress& progress) {
  if (watching_) watching_->on(progress);
}

/// All ranks may report it.
void Supervisor::on(Duration, const process_event::Saved& saved) {
  if (saved_ && saved_->path == saved.path) return;
  saved_ = SavedCheckpoint{saved.path, watching_ ? watching_->progress().last_step : std::nullopt};
  Json fields{{"process", name_of(saved.process)}, {"path", saved.path}};
  if (saved_->step) fields["step"] = *saved_->step;
  record("checkpoint", fields);
}

/// It may be told again, by an agent that has another leader now.
void Supervisor::on(Duration, const process_event::Linked& linked) {
  if (!add_link(outcome_.links, {linked.kind, linked.url, name_of(linked.process)})) return;
  record("link", {{"process", name_of(linked.process)}, {"kind", linked.kind}, {"url", linked.url}});
}

void Supervisor::on(Duration, const process_event::Collected& collected) {
  if (investigation_) investigation_->on(collected);
}

void Supervisor::on(Duration, const process_event::Trouble& trouble) {
  if (std::ranges::find(outcome_.troubles, trouble.sentence) != outcome_.troubles.end())
    return;  // already reported by another node or process
  outcome_.troubles.push_back(trouble.sentence);
  record("trouble", {{"what", trouble.sentence}});
  say(trouble.sentence);
}

}  // namespace nlaunch::supervise
