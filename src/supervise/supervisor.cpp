#include "supervise/supervisor.h"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "plan/json.h"
#include "supervise/requests.h"
#include "supervise/steering.h"
#include "supervise/stop_signal.h"
#include "sys/files.h"

namespace nlaunch::supervise {
namespace {

constexpr Duration kLookAtRunFolder = std::chrono::seconds(2);
constexpr Duration kLookAtCheckpoint = std::chrono::milliseconds(500);
/// Processes that have not exited by then are named.
constexpr Duration kPatience = std::chrono::seconds(2);
/// For the remaining output at the end, so that a paused reader (a pager, a busy file server) gets it.
constexpr Duration kForTheTerminal = std::chrono::seconds(5);

/// "engine.0 and 2 more"
std::string in_short(const std::vector<std::string>& names) {
  return names.size() == 1 ? names.front() : fmt::format("{} and {} more", names.front(), names.size() - 1);
}

Result<plan::Plan> read_plan(const std::filesystem::path& file) {
  constexpr std::uint64_t kLargest = 1U << 30U;
  const auto text = sys::read_regular_file(file, kLargest, sys::Links::refused);
  if (!text) return std::unexpected(text.error());
  return plan::from_json(*text, file.filename());
}

}  // namespace

Supervisor::Supervisor(sys::Loop& loop, Options options)
    : loop_(loop),
      options_(std::move(options)),
      rules_(rules_of(options_.plan)),
      roster_(options_.plan, rules_, options_.address_of),
      not_ready_(options_.plan.roles.size()) {
  for (const auto& rules : rules_.processes) {
    const auto& process = options_.plan.processes[rules.process];
    if (rules.ready != ProcessRules::Ready::started && !rules.borrowed)
      not_ready_[process.role].insert(static_cast<ProcessIndex>(outcome_.processes.size()));
    auto& report = outcome_.processes.emplace_back();
    report.name = options_.plan.name_of(process);
    report.rank = process.rank;
    report.program = sys::process_title(options_.plan.role_of(process).command, "");
    if (!options_.hosts.empty()) report.host = options_.hosts.at(process.node);
    report.log = (options_.logs / (report.name + ".log")).string();
  }
  if (options_.goes_on)
    for (auto& pool : rules_.borrowed) pool.min = 0;
  outcome_.started_at = utc_now();
  // Logs are in the attempt's directory, which is in the run directory.
  if (const auto& how = options_.plan.checkpoint; how && !how->dir.empty())
    checkpoints_.emplace(*how, options_.logs.parent_path().parent_path());
  for (std::uint32_t role = 0; role < options_.plan.roles.size(); ++role) load_addresses(role);
}

/// A previous leader of this attempt may have changed them.
void Supervisor::load_addresses(std::uint32_t role) {
  constexpr std::uint64_t kLargest = 16U << 20U;
  const auto file = options_.logs.parent_path() / "addrs" / options_.plan.roles[role].name;
  const auto number = sys::read_regular_file(file.string() + ".generation", kLargest);
  const auto generation = number ? text::whole_number<std::uint64_t>(text::trim(*number)) : std::nullopt;
  if (generation.value_or(1) == 1) return;
  const auto addresses = sys::read_regular_file(file, kLargest);
  if (addresses) roster_.begin_with(role, *generation, text::split(text::trim(*addresses), '\n'));
}

Supervisor::~Supervisor() = default;

Outcome Supervisor::run(ProcessBackend& backend) {
  backend_ = &backend;
  listen();
  watch();
  record("attempt-started", {{"attempt", options_.attempt},
                             {"guardian", options_.guardian.guardian()},
                             {"supervisor", ::getpid()}});
  take(begin(rules_));
  process_queues();
  if (!finished_) loop_.run();
  return std::move(outcome_);
}

void Supervisor::listen() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, stop_signal()}) {
    loop_.on_signal(signal, [this, signal, here = std::weak_ptr(here_)] {
      if (!here.expired()) on(since_start(), process_event::Signal{signal});
    });
  }
  if (const int guardian = options_.guardian.fd(); guardian >= 0) {
    loop_.watch(guardian, [this, guardian, &loop = loop_, here = std::weak_ptr(here_)] {
      loop.unwatch(guardian);
      if (here.expired()) return;
      record("guardian-lost");
      handle(event::GuardianLost{});
    });
  }
  look_at_files();
}

void Supervisor::watch() {
  const auto say_it = [this](const std::string& text) { say(text); };
  const auto record_it = [this](std::string_view event, const Json& fields) { record(event, fields); };
  std::set<std::uint32_t> nodes;
  for (const auto& process : rules_.processes) nodes.insert(options_.plan.processes[process.process].node);
  investigation_ = std::make_unique<Investigation>(
      loop_, Investigation::Options{
                 .evidence = options_.logs.parent_path() / "evidence",
                 .nodes = nodes.size(),
                 .judge = options_.judge,
                 .progress = [this] { return watching_ ? watching_->progress() : watch::Progress(); },
                 .say = say_it,
                 .record = record_it,
                 .collect = [this](const action::Collect& collect) { backend_->perform(collect); }});
  if (!options_.plan.watch) return;
  std::vector<std::string> names;
  for (const auto& process : outcome_.processes) names.push_back(process.name);
  watching_ = std::make_unique<StallMonitor>(
      loop_, StallMonitor::Options{.plan = options_.plan,
                                   .rules = rules_,
                                   .names = std::move(names),
                                   .investigation = *investigation_,
                                   .say = say_it,
                                   .record = record_it,
                                   .step = [this](auto step, auto seconds) { keep_step(step, seconds); },
                                   .abort = [this](const event::Abort& abort) { handle(abort); }});
}

/// steps.jsonl of the attempt: reports of a run read it, and events.jsonl stays short.
void Supervisor::keep_step(std::uint64_t step, std::optional<double> seconds) {
  if (!steps_) {
    steps_.emplace(options_.logs.parent_path() / "steps.jsonl",
                   [this](const std::string& sentence) { say(sentence); });
  }
  Json fields{{"step", step}};
  if (seconds) fields["seconds"] = *seconds;
  steps_->write("step", fields);
}

void Supervisor::look_at_files() {
  later(kLookAtRunFolder, [this] {
    options_.events.check();
    look_for_request();
    look_for_run_requests();
    look_at_files();
  });
}

/// Handles a request for evidence: only while the processes run, and one at a time.
void Supervisor::look_for_request() {
  if (outcome_.decided || investigation_->goes_on()) return;
  std::error_code error;
  if (!std::filesystem::remove(options_.logs.parent_path() / kEvidenceWanted, error)) return;
  say("evidence was requested; collecting it from all processes");
  investigation_->begin([](const std::string&, const Judgement&) {});
}

void Supervisor::look_for_run_requests() {
  for (const auto& pending : take_requests(options_.logs.parent_path())) {
    if (pending.request.kind == RunRequest::Kind::update) {
      update(pending);
      continue;
    }
    const auto decision = decide(options_.plan, rules_, state_, hosts_now(), pending.request);
    note_request(pending, decision.answer);
    grant(decision);
  }
}

std::vector<std::string> Supervisor::hosts_now() const {
  std::vector<std::string> hosts;
  for (const auto& process : outcome_.processes) hosts.push_back(process.host);
  return hosts;
}

void Supervisor::note_request(const PendingRequest& pending, const Answer& given) {
  record("request", {{"kind", nlaunch::name_of(pending.request.kind)},
                     {"what", pending.request.what},
                     {"count", pending.request.count},
                     {"granted", given.granted},
                     {"answer", given.text}});
  if (given.granted) say(fmt::format("as requested: {}", given.text));
  answer(pending, given);
}

void Supervisor::grant(const Decision& decision) {
  auto then = [this, events = decision.events] {
    for (const auto& event : events) handle(event);
  };
  const bool stops_learner = std::ranges::any_of(decision.events, [this](const Event& event) {
    const auto* restart = std::get_if<event::RestartWanted>(&event);
    return restart != nullptr && std::ranges::any_of(restart->processes, [this](ProcessIndex process) {
             return rules_.processes[process].saves;
           });
  });
  if (!stops_learner || !hold_for_checkpoint(false, then)) then();
}

/// Binds all nodes to the new plan before anything of the old one is stopped.
void Supervisor::update(const PendingRequest& pending) {
  const auto& name = pending.request.what;
  const auto refuse = [&](const std::string& why) { note_request(pending, {false, why}); };
  if (!options_.rebinder.prepare) return refuse("this run cannot be updated");
  if (updates_) return refuse("another update is in progress");
  if (!name.starts_with(kUpdatePlan) || name.contains('/'))
    return refuse("the request does not name a plan file");
  const auto after = read_plan(options_.logs.parent_path() / name);
  const auto before = read_plan(plan_file());
  for (const auto* plan : {&after, &before})
    if (!*plan) return refuse(plan->error().first_message());
  const auto roles = updatable_roles(*before, *after, rules_, state_);
  if (!roles) return refuse(roles.error());
  updates_ = true;
  options_.rebinder.prepare({*after, *roles, name},
                            [this, pending, other = *after, roles = *roles](const std::string& why) {
                              updates_ = false;
                              if (!why.empty()) return note_request(pending, {false, why});
                              adopt(pending, other, roles);
                            });
}

/// A leader that takes over the run, and agents that join later, read the plan from its file, so it is
/// written before anyone uses it.
void Supervisor::adopt(const PendingRequest& pending, const plan::Plan& after,
                       const std::vector<std::string>& roles) {
  const auto refuse = [&](const std::string& why) { note_request(pending, {false, why}); };
  if (!std::holds_alternative<Going>(state_.phase)) return refuse("the run is ending");
  if (const auto kept = sys::write_file_atomically(plan_file(), plan::to_text(after, 2) + "\n"); !kept)
    return refuse(kept.error().first_message());
  options_.rebinder.adopt();
  outcome_.updated = after;
  for (ProcessIndex process = 0; process < rules_.processes.size(); ++process) {
    const auto& role = after.role_of(after.processes[rules_.processes[process].process]);
    outcome_.processes[process].program = sys::process_title(role.command, "");
  }
  const auto decision = start_again(options_.plan, rules_, state_, roles);
  note_request(pending, decision.answer);
  grant(decision);
}

std::filesystem::path Supervisor::plan_file() const {
  return options_.logs.parent_path().parent_path() / "plan.json";
}

/// Calls `then` once no checkpoint is being written. False: none is, and nothing waits. A stop of the run
/// replaces an action that does not stop it.
bool Supervisor::hold_for_checkpoint(bool stops, std::function<void()> then) {
  if (!checkpoints_ || !std::holds_alternative<Going>(state_.phase)) return false;
  const auto name = checkpoints_->in_flight();
  if (name.empty()) return false;
  const bool waits = held_.has_value();
  if (waits && !stops) {
    if (held_->stops) return true;  // the run is ending
    then = [before = std::move(held_->then), then = std::move(then)] {
      before();
      then();
    };
  }
  held_ = Held{stops, std::move(then)};
  if (waits) return true;
  const auto& wait = options_.plan.checkpoint->wait;
  record("checkpoint-awaited", {{"folder", name}});
  say(fmt::format("waiting up to {} for checkpoint {}, which is being written{}", format_duration(wait), name,
                  stops ? "; press Ctrl-C again to skip the wait" : ""));
  held_until_ = since_start() + wait;
  look_at_checkpoint();
  return true;
}

void Supervisor::look_at_checkpoint() {
  later(kLookAtCheckpoint, [this] {
    if (!held_) return;
    const auto name = checkpoints_->in_flight();
    if (!name.empty() && since_start() < held_until_) return look_at_checkpoint();
    if (!name.empty())
      say(fmt::format("checkpoint {} is still incomplete after {}", name,
                      format_duration(options_.plan.checkpoint->wait)));
    const auto held = std::exchange(held_, std::nullopt);
    held->then();
  });
}

/// Records how far the run came, and how much of that is saved.
void Supervisor::note_checkpoint() {
  if (watching_) outcome_.last_step = watching_->progress().last_step;
  outcome_.checkpoint = checkpoints_ ? checkpoints_->newest() : saved_;
}

// --- events into the table, actions out of it ---

void Supervisor::handle(Event event) {
  events_.push_back(std::move(event));
  if (!working_) process_queues();
}

void Supervisor::take(Step step) {
  state_ = std::move(step.state);
  for (auto& action : step.actions) actions_.push_back(std::move(action));
}

void Supervisor::process_queues() {
  working_ = true;
  while (!actions_.empty() || !events_.empty()) {
    // Effects of an action are handled before the next action: a failed start saves the other starts.
    if (!events_.empty()) {
      const auto event = std::move(events_.front());
      events_.pop_front();
      note_touched(event);
      take(step(rules_, std::move(state_), event));
    } else {
      const auto action = std::move(actions_.front());
      actions_.pop_front();
      std::visit([this](const auto& what) { perform(what); }, action);
    }
  }
  working_ = false;
}

/// Changes at the same moment are one change of the roster.
void Supervisor::note_touched(const Event& event) {
  const bool first = touched_.empty();
  std::visit(
      [&](const auto& what) {
        if constexpr (requires { what.processes; })
          touched_.insert(touched_.end(), what.processes.begin(), what.processes.end());
        else if constexpr (requires { touched_.push_back(what.process); })
          touched_.push_back(what.process);
      },
      event);
  if (first && !touched_.empty()) later({}, [this] { publish(); });
}

/// Tells the processes that use the addresses that they have changed.
void Supervisor::publish() {
  const auto touched = std::exchange(touched_, {});
  for (const auto& change : roster_.update(state_, touched)) {
    const auto& role = options_.plan.roles[change.role].name;
    record("addresses", {{"role", role},
                         {"generation", change.generation},
                         {"addresses", change.addresses},
                         {"added", change.added},
                         {"removed", change.removed}});
    const auto file = fmt::format("addrs/{}", role);
    const auto lines = fmt::format("{}\n", fmt::join(change.addresses, "\n"));
    for (const auto& [name, text] :
         {std::pair(file, change.addresses.empty() ? "" : lines),
          std::pair(file + ".generation", fmt::format("{}\n", change.generation))}) {
      const auto written = sys::write_file_atomically(options_.logs.parent_path() / name, text);
      if (!written) on(since_start(), process_event::Trouble{written.error().first_message()});
      if (written && options_.distribute) options_.distribute(name);
    }
    for (ProcessIndex process = 0; process < rules_.processes.size(); ++process) {
      const auto& whom = options_.plan.role_of(options_.plan.processes[rules_.processes[process].process]);
      if (!whom.on_change || std::ranges::find(whom.on_change->of, role) == whom.on_change->of.end())
        continue;
      const auto& phase = state_.processes[process].phase;
      if (!std::holds_alternative<Running>(phase) && !std::holds_alternative<Serving>(phase)) continue;
      backend_->perform(
          action::Notify{process, role, change.generation, change.addresses, change.added, change.removed});
    }
  }
}

void Supervisor::perform(const action::Start& start) {
  if (!std::holds_alternative<Starting>(state_.processes[start.process].phase)) return;
  outcome_.processes[start.process].restarts = state_.processes[start.process].restarts;
  outcome_.processes[start.process].lost.clear();
  backend_->perform(start);
}

void Supervisor::perform(const action::SignalGroup& send) {
  record("process-signalled",
         {{"process", name_of(send.process)}, {"signal", sys::signal_name(send.signal)}});
  outcome_.processes[send.process].stopped = true;
  backend_->perform(send);
}

void Supervisor::perform(const action::SignalProcess& send) {
  record("signal-forwarded", {{"process", name_of(send.process)}, {"signal", sys::signal_name(send.signal)}});
  backend_->perform(send);
}

void Supervisor::perform(const action::ArmGrace& arm) {
  // For this start of the process: it may be restarted and stopped again in the meantime.
  later(arm.grace, [this, p = arm.process, restarts = state_.processes[arm.process].restarts] {
    if (state_.processes[p].restarts == restarts) handle(event::GraceOver{p});
  });
}

void Supervisor::perform(const action::ArmBackoff& arm) {
  const auto& rules = rules_.processes[arm.process];
  const auto record_it = [&](ProcessIndex process) {
    record("process-restart", {{"process", name_of(process)}, {"in_ms", arm.backoff.count()}});
  };
  const auto replica = rules.replica ? rules_.replicas[*rules.replica] : std::vector{arm.process};
  for (const auto process : replica) record_it(process);
  const bool wished =
      std::ranges::any_of(replica, [&](auto process) { return state_.processes[process].again; });
  const auto count = state_.processes[arm.process].counted + 1;
  const auto which =
      rules.restart.max > 1 && !wished ? fmt::format(" (restart {} of {})", count, rules.restart.max) : "";
  const auto why = why_again(replica);
  const auto who = rules.replica ? replica_name(arm.process) : why.empty() ? name_of(arm.process) : "it";
  const auto all = rules.replica ? fmt::format(", all {} of its processes", replica.size()) : "";
  if (!wished) say(fmt::format("{}{} restarts in {}{}{}", why, who, in_seconds(arm.backoff), all, which));
  later(arm.backoff, [this, p = arm.process, restarts = state_.processes[arm.process].restarts] {
    if (state_.processes[p].restarts == restarts) handle(event::BackoffOver{p});
  });
}

void Supervisor::perform(const action::ForgetRestart& forget) {
  later(forget.after, [this, p = forget.process] { handle(event::RestartForgotten{p}); });
}

void Supervisor::perform(const action::Tolerate& tolerate) {
  Outcome so_far;
  so_far.cause = tolerate.cause;
  so_far.processes = outcome_.processes;
  so_far.decided = since_start();
  so_far.not_ready = outcome_.not_ready;
  const auto first = tolerate.processes.front();
  so_far.first = std::visit(
      [&](const auto& cause) -> std::optional<std::size_t> {
        if constexpr (requires { cause.process; }) return cause.process;
        return first;
      },
      tolerate.cause);
  const auto why = sentence(so_far);
  const auto& rules = rules_.processes[first];
  const auto name = rules.replica ? replica_name(first) : name_of(first);
  for (const auto process : tolerate.processes) {
    outcome_.processes[process].lost = why;
    lost_at_.emplace(process, since_start());
    record("process-lost", {{"process", name_of(process)}, {"why", why}, {"left", tolerate.left}});
  }
  const auto sentence =
      fmt::format("{}; the run continues without {}, with {} of '{}'", why, name, tolerate.left, rules.role);
  outcome_.troubles.push_back(sentence);
  say(sentence);
}

void Supervisor::perform(const action::Recover& recover) {
  backend_->recover(recover.processes);
}

void Supervisor::perform(const action::Release& release) {
  record("node-left", {{"host", outcome_.processes[release.processes.front()].host}});
  backend_->release(release.processes);
}

/// A process that was not asked to stop before is killed because of its reported failure.
void Supervisor::perform(const action::KillTree& kill) {
  auto& report = outcome_.processes[kill.process];
  const bool was_asked = std::exchange(report.stopped, true);
  record("process-killed",
         {{"process", report.name},
          {"why", was_asked ? "its grace period expired" : "it no longer serves requests"}});
  if (was_asked) outlived_their_grace_.push_back(report.name);
  backend_->perform(kill);
}

void Supervisor::perform(const action::KillAll& kill) {
  record("all-killed");
  for (auto& process : outcome_.processes) process.stopped = process.stopped || !process.ended;
  backend_->perform(kill);
}

void Supervisor::perform(const action::Decide& decide) {
  outcome_.stop_asked = held_ && held_->stops;
  held_.reset();
  outcome_.cause = decide.cause;
  outcome_.decided = since_start();
  outcome_.first = std::visit(
      [](const auto& cause) -> std::optional<std::size_t> {
        if constexpr (requires { cause.process; }) {
          return cause.process;
        } else {
          return std::nullopt;
        }
      },
      decide.cause);
  for (std::size_t i = 0; i < outcome_.processes.size(); ++i)
    outcome_.processes[i].ended_before = outcome_.processes[i].ended.has_value() && outcome_.first != i;
  if (const auto* never = std::get_if<NeverReady>(&decide.cause))
    outcome_.check = check_text(planned_role(never->process).ready);
  const auto what = sentence(outcome_);
  record("run-ending", {{"outcome", supervise::name_of(decide.cause)}, {"what", what}});
  if (!std::holds_alternative<Finished>(decide.cause)) say(what + "; stopping the others");
  if (watching_) watching_->stop();
  investigation_->stop();
  backend_->ending();
  later(kPatience, [this] { report_pending(); });
}

void Supervisor::report_pending() {
  const auto* ending = std::get_if<Ending>(&state_.phase);
  if (ending == nullptr) return;
  std::vector<std::string> names;
  Duration grace{};
  for (ProcessIndex process = 0; process < state_.processes.size(); ++process) {
    if (!std::holds_alternative<Stopping>(state_.processes[process].phase)) continue;
    names.push_back(name_of(process));
    grace = std::max(grace, rules_.processes[process].stop.grace);
  }
  if (names.empty()) return;
  say(fmt::format("waiting up to {} for {}; press Ctrl-C {} to kill", format_duration(grace), in_short(names),
                  ending->interrupts > 0 ? "again" : "twice"));
}

void Supervisor::perform(const action::Finish&) {
  // By now all processes have left what they recorded of their exceptions.
  if (const auto raised = first_to_raise(outcome_)) outcome_.first = raised;
  std::optional<ProcessIndex> first;
  if (outcome_.first) first = static_cast<ProcessIndex>(*outcome_.first);
  backend_->finish(first, [this](BackendEnd end) {
    conclude(std::move(end));
    finished_ = true;
    loop_.stop();
  });
}

// --- the end ---

void Supervisor::conclude(BackendEnd end) {
  outcome_.left_behind = std::move(end.left_behind);
  outcome_.survivors = std::move(end.survivors);
  outcome_.last_lines = std::move(end.last_lines);
  outcome_.lost_bytes = end.lost_bytes;
  outcome_.oom_kills = end.oom_kills;
  note_logs(end.log_when_decided);
  if (!outcome_.left_behind.empty()) record("leftovers-killed", {{"killed", outcome_.left_behind}});
  if (!outcome_.survivors.empty()) record("not-killable", {{"processes", outcome_.survivors}});
  if (!outlived_their_grace_.empty()) {
    say(fmt::format("killed after the grace period: {}", in_short(outlived_their_grace_)));
  }
  if (watching_) {
    note_unfinished();
    outcome_.watch = watching_->summary();
    note_slowest();
  }
  note_checkpoint();
  explain_end();
  outcome_.ended_at = utc_now();
  outcome_.took = since_start();
  if (outcome_.first) outcome_.next = next_after(*outcome_.first);
  if (options_.messages != nullptr) options_.messages->finish(kForTheTerminal);
  if (options_.output != nullptr) {
    options_.output->finish(kForTheTerminal);
    outcome_.skipped = options_.output->skipped();
  }
  record("attempt-ended", {{"outcome", supervise::name_of(outcome_.cause)},
                           {"exit_code", exit_code(outcome_)},
                           {"what", sentence(outcome_)}});
}

/// Log output after these sizes is a consequence of the failure.
void Supervisor::note_logs(std::map<std::string, std::uint64_t> sizes) {
  if (const auto lost = lost_child(outcome_); lost && lost->says_nothing()) {
    for (const auto& [name, size] : lost->child->logs) sizes[name] = size;
  }
  for (auto& process : outcome_.processes) {
    const auto found = sizes.find(process.name);
    if (found != sizes.end()) process.log_when_decided = found->second;
  }
}

void Supervisor::explain_end() {
  const bool is_own = std::holds_alternative<ProcessFailed>(outcome_.cause) ||
                      std::holds_alternative<NeverReady>(outcome_.cause);
  if (!is_own || !outcome_.first) return;
  const auto known = explanations_.find(static_cast<ProcessIndex>(*outcome_.first));
  if (known != explanations_.end()) outcome_.explanation = known->second;
}

void Supervisor::note_slowest() {
  const auto seconds = watching_->progress().own_seconds;
  std::vector<watch::ProcessSteps> processes;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const auto& rules = rules_.processes[i];
    if (!rules.borrowed)  // it joins and leaves
      processes.push_back(
          {rules.role, outcome_.processes[i].host, watch::median(seconds[i]), seconds[i].size()});
  }
  outcome_.slowest = watch::slowest_node(processes);
  if (const auto& slowest = outcome_.slowest)
    record("slowest-node",
           {{"host", slowest->host}, {"seconds", slowest->seconds}, {"others", slowest->others}});
}

/// Notes processes that exited successfully on their own before their last step.
void Supervisor::note_unfinished() {
  const auto reached = watching_->progress().reached;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    auto& process = outcome_.processes[i];
    if (!reached[i] || reached[i]->step >= reached[i]->total) continue;
    if (process.stopped || !process.status || !process.status->ok()) continue;
    process.ended_early =
        fmt::format("exited with code 0 at step {} of {}", reached[i]->step, reached[i]->total);
    outcome_.troubles.push_back(fmt::format("{} {}", process.name, process.ended_early));
    record("trouble", {{"what", outcome_.troubles.back()}});
  }
}

std::optional<std::size_t> Supervisor::next_after(std::size_t first) const {
  const auto& processes = outcome_.processes;
  std::optional<std::size_t> next;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (i == first || processes[i].stopped || !processes[i].ended || !processes[first].ended) continue;
    if (*processes[i].ended < *processes[first].ended) continue;
    if (!next || *processes[i].ended < *processes[*next].ended) next = i;
  }
  return next;
}

// --- small things ---

/// The loop may outlive this object.
void Supervisor::later(Duration wait, std::function<void()> then) {
  loop_.after(wait, [then = std::move(then), here = std::weak_ptr(here_)] {
    if (!here.expired()) then();
  });
}

Duration Supervisor::since_start() const {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start_);
}

/// "engine.2.1 was killed by SIGKILL; " for the first of a replica that exited without being asked to; else
/// empty.
std::string Supervisor::why_again(const std::vector<ProcessIndex>& replica) const {
  const ProcessReport* first = nullptr;
  for (const auto member : replica) {
    const auto& one = outcome_.processes[member];
    if (one.stopped || !one.status || !one.ended) continue;
    if (first == nullptr || *one.ended < *first->ended) first = &one;
  }
  if (first == nullptr) return "";
  // Only of this start; a child killed by a signal explains an exit with 0.
  const auto lost = std::ranges::find_if(first->children, [&](const ChildReport& child) {
    return child.status && child.status->by_signal() && (!first->started || child.at >= *first->started);
  });
  const auto after = lost == first->children.end()
                         ? ""
                         : fmt::format(" after {} {}", lost->child.str(), lost->status->str());
  return fmt::format("{} {}{}; ", first->name, first->status->str(), after);
}

/// "engine.2"
std::string Supervisor::replica_name(ProcessIndex process) const {
  const auto& of = options_.plan.processes[rules_.processes[process].process];
  const auto& role = options_.plan.role_of(of);
  return fmt::format("{}.{}", role.name, plan::in_replica(role, of).index);
}

const std::string& Supervisor::name_of(ProcessIndex process) const {
  return outcome_.processes[process].name;
}

void Supervisor::record(std::string_view event, const Json& fields) {
  options_.events.write(event, fields);
}

void Supervisor::say(std::string_view text) {
  if (options_.messages != nullptr) options_.messages->write(fmt::format("nlaunch: {}\n", text), 1);
}

}  // namespace nlaunch::supervise
