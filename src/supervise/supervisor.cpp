#include "supervise/supervisor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <deque>
#include <memory>
#include <utility>

#include "base/text.h"
#include "supervise/cleaner.h"
#include "supervise/output.h"
#include "supervise/readiness.h"
#include "sys/loop.h"
#include "sys/spawn.h"

namespace nlaunch::supervise {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
constexpr Duration kLookAtFiles = std::chrono::seconds(2);
/// A killed process that holds a GPU may need seconds until the driver has let it go.
constexpr Duration kKillLimit = std::chrono::seconds(20);
constexpr std::size_t kLastLines = 20;
constexpr std::size_t kLongestLastLine = 500;

/// What the supervisor knows of one process beyond the table.
struct Live {
  const plan::BoundProcess* bound = nullptr;
  const plan::Role* role = nullptr;
  sys::Subtree subtree;  ///< leader 0: is not running
  std::unique_ptr<Readiness> readiness;
};

class Supervisor {
 public:
  explicit Supervisor(const Attempt& attempt)
      : attempt_(attempt), rules_(rules_of(attempt.plan, attempt.node)), cleaner_(loop_) {
    for (const auto& rules : rules_.processes) {
      const auto& bound = attempt.node.processes[rules.bound];
      live_.push_back({&bound, attempt.plan.find_role(rules.role), {}, nullptr});
    }
    outcome_.processes.resize(live_.size());
    outcome_.started_at = utc_now();
  }

  Outcome run() {
    open_output();
    listen();
    record("attempt-started", {{"attempt", attempt_.number},
                               {"host", attempt_.node.host},
                               {"guardian", attempt_.guardian.guardian()},
                               {"supervisor", ::getpid()}});
    take(begin(rules_));
    work_off();
    if (!finished_) loop_.run();
    sweep();
    conclude();
    return std::move(outcome_);
  }

 private:
  // --- what is set up once ---

  void open_output() {
    const auto logs = attempt_folder(attempt_.run_folder, attempt_.number) / "logs";
    if (const auto made = sys::make_private_folder(logs); !made)
      trouble(made.error().items().front().message);
    if (!attempt_.terminal.quiet) terminal_ = std::make_unique<Terminal>(attempt_.terminal.fd);
    std::vector<std::string> names;
    for (const auto& live : live_) names.push_back(live.bound->name);
    Output::Options options{logs, attempt_.node.masker, terminal_.get(), attempt_.terminal.color,
                            [this](const std::string& sentence) { trouble(sentence); }};
    output_ = std::make_unique<Output>(loop_, std::move(options), names);
    for (std::size_t i = 0; i < names.size(); ++i) {
      outcome_.processes[i].name = names[i];
      outcome_.processes[i].log = output_->log_path(i).string();
    }
  }

  void listen() {
    for (const int signal : kSignals) {
      loop_.on_signal(signal, [this, signal] {
        record("signal", {{"signal", sys::signal_name(signal)}});
        handle(event::Signal{signal});
      });
    }
    if (const int guardian = attempt_.guardian.fd(); guardian >= 0) {
      loop_.watch(guardian, [this, guardian] {
        loop_.unwatch(guardian);
        record("guardian-lost");
        handle(event::GuardianLost{});
      });
    }
    look_at_files();
    if (attempt_.hooks.tick) tick();
  }

  void look_at_files() {
    loop_.after(kLookAtFiles, [this] {
      output_->check();
      attempt_.events.check();
      look_at_files();
    });
  }

  void tick() {
    loop_.after(attempt_.hooks.period, [this] {
      if (const auto verdict = attempt_.hooks.tick(live_pids())) {
        handle(event::Abort{verdict->reason, verdict->exit_code});
      }
      tick();
    });
  }

  // --- events into the table, actions out of it ---

  void handle(Event event) {
    events_.push_back(std::move(event));
    if (!working_) work_off();
  }

  void take(Step step) {
    state_ = std::move(step.state);
    for (auto& action : step.actions) actions_.push_back(std::move(action));
  }

  void work_off() {
    working_ = true;
    while (!actions_.empty() || !events_.empty()) {
      // What an action brought about comes before the next action: a failed start spares the others.
      if (!events_.empty()) {
        const auto event = std::move(events_.front());
        events_.pop_front();
        take(step(rules_, std::move(state_), event));
      } else {
        const auto action = std::move(actions_.front());
        actions_.pop_front();
        std::visit([this](const auto& what) { perform(what); }, action);
      }
    }
    working_ = false;
  }

  void perform(const action::Start& start) {
    if (!std::holds_alternative<Starting>(state_.processes[start.process].life)) return;
    auto& report = outcome_.processes[start.process];
    report.restarts = state_.processes[start.process].restarts;
    const auto pid = spawn(start.process);
    if (!pid) {
      const auto reason = attempt_.node.masker.mask(pid.error().items().front().message);
      record("process-not-started", {{"process", report.name}, {"reason", reason}});
      return handle(event::SpawnFailed{start.process, reason});
    }
    report.pid = *pid;
    report.started = since_start();
    report.ready = report.ended = std::nullopt;
    report.status = std::nullopt;
    record("process-started", {{"process", report.name}, {"pid", *pid}, {"restarts", report.restarts}});
    loop_.on_child(*pid, [this, p = start.process](sys::WaitStatus status) { ended(p, status); });
    if (attempt_.hooks.on_started) attempt_.hooks.on_started(live_[start.process].bound->process, *pid);
    if (!rules_.processes[start.process].waits_ready) report.ready = report.started;
    handle(event::Started{start.process});
  }

  Result<pid_t> spawn(ProcessIndex process) {
    auto& live = live_[process];
    if (const auto problem = problem_with(live.bound->ready); !problem.empty()) {
      return failure("supervise.ready", "readiness check: {}", problem);
    }
    const auto pipe = output_->open(process);
    if (!pipe) return std::unexpected(pipe.error());
    sys::SpawnRequest request;
    request.argv = live.bound->argv;
    for (const auto& [name, value] : live.bound->env)
      request.env.push_back(fmt::format("{}={}", name, value));
    request.cwd = live.bound->workdir;
    request.out = request.err = pipe->get();
    request.cpus = live.bound->cpus;
    constexpr unsigned kPidBits = 32;
    request.mark = (static_cast<std::uint64_t>(::getpid()) << kPidBits) | ++starts_;
    auto pid = sys::spawn(request);
    if (pid) live.subtree = {*pid, *request.mark};
    return pid;
  }

  void ended(ProcessIndex process, sys::WaitStatus status) {
    auto& report = outcome_.processes[process];
    report.ended = since_start();
    report.status = status;
    live_[process].readiness.reset();
    record("process-ended", {{"process", report.name}, {"pid", report.pid}, {"how", status.str()}});
    handle(event::Ended{process, status});
  }

  void perform(const action::AwaitReady& await) {
    auto& live = live_[await.process];
    auto ready = live.bound->ready;
    if (!ready.file.empty() && !ready.file.starts_with('/')) {
      ready.file = fmt::format("{}/{}", live.bound->workdir, ready.file);
    }
    const auto process = await.process;
    Readiness::Then then{
        .ready = [this, process] { became_ready(process); },
        .timed_out =
            [this, process] {
              outcome_.not_ready = attempt_.node.masker.mask(live_[process].readiness->status());
              handle(event::ReadyTimeout{process});
            },
        .watch_lines = [this, process](auto line) { output_->watch_lines(process, std::move(line)); }};
    live.readiness = std::make_unique<Readiness>(loop_, ready, std::move(then));
  }

  void became_ready(ProcessIndex process) {
    auto& report = outcome_.processes[process];
    report.ready = since_start();
    record("process-ready",
           {{"process", report.name}, {"after_ms", (*report.ready - *report.started).count()}});
    handle(event::Ready{process});
  }

  void perform(const action::SignalGroup& send) {
    const auto leader = live_[send.process].subtree.leader;
    record("process-signalled",
           {{"process", name_of(send.process)}, {"signal", sys::signal_name(send.signal)}});
    ::kill(-leader, send.signal);
    live_[send.process].readiness.reset();
  }

  void perform(const action::SignalProcess& send) {
    record("signal-forwarded",
           {{"process", name_of(send.process)}, {"signal", sys::signal_name(send.signal)}});
    ::kill(live_[send.process].subtree.leader, send.signal);
  }

  void perform(const action::ArmGrace& arm) {
    loop_.after(arm.grace, [this, p = arm.process] { handle(event::GraceOver{p}); });
  }

  void perform(const action::ArmBackoff& arm) {
    record("process-restart", {{"process", name_of(arm.process)}, {"in_ms", arm.backoff.count()}});
    loop_.after(arm.backoff, [this, p = arm.process] { handle(event::BackoffOver{p}); });
  }

  void perform(const action::KillTree& kill) {
    record("process-killed", {{"process", name_of(kill.process)}, {"why", "its grace was over"}});
    Cleaner::kill(live_[kill.process].subtree);
    give_up_later(kill.process);
  }

  void perform(const action::KillAll&) {
    record("all-killed");
    sys::kill_descendants({});
    for (ProcessIndex process = 0; process < live_.size(); ++process) {
      if (live_[process].subtree.leader > 0) give_up_later(process);
    }
  }

  /// A process in uninterruptible sleep does not even end by SIGKILL; the run must.
  void give_up_later(ProcessIndex process) {
    loop_.after(kKillLimit, [this, process] {
      if (!std::holds_alternative<Killed>(state_.processes[process].life)) return;
      record("process-not-killable", {{"process", name_of(process)}});
      loop_.forget_child(live_[process].subtree.leader);
      handle(event::Ended{process, sys::WaitStatus(SIGKILL)});
    });
  }

  void perform(const action::CleanUp& clean) {
    auto& live = live_[clean.process];
    if (live.role->leave && std::holds_alternative<Going>(state_.phase)) {
      live.subtree.leader = 0;
      return handle(event::CleanedUp{clean.process});
    }
    cleaner_.clean(live.subtree, [this, p = clean.process](const auto& result) { cleaned_up(p, result); });
  }

  void cleaned_up(ProcessIndex process, const Cleaner::Result& result) {
    auto& report = outcome_.processes[process];
    if (!result.killed.empty()) {
      record("leftovers-killed", {{"process", report.name}, {"killed", result.killed}});
      report.left_behind.insert(report.left_behind.end(), result.killed.begin(), result.killed.end());
    }
    output_->close(process);
    live_[process].subtree.leader = 0;
    handle(event::CleanedUp{process});
  }

  void perform(const action::Decide& decide) {
    outcome_.cause = decide.cause;
    outcome_.decided = since_start();
    outcome_.first = std::visit(
        [](const auto& cause) -> std::optional<std::size_t> {
          if constexpr (requires { cause.process; }) return cause.process;
          return std::nullopt;
        },
        decide.cause);
    const auto what = sentence(outcome_);
    record("run-ending", {{"outcome", supervise::name_of(decide.cause)}, {"what", what}});
    if (!std::holds_alternative<Finished>(decide.cause)) say(what + "; stopping the others");
    if (attempt_.hooks.before_stop) attempt_.hooks.before_stop(live_pids());
  }

  void perform(const action::Finish&) {
    finished_ = true;
    loop_.stop();
  }

  // --- the end ---

  void sweep() {
    const auto swept = sys::sweep({}, kKillLimit);
    for (const auto& process : swept.killed) outcome_.left_behind.push_back(describe(process));
    for (const auto& process : swept.survivors) outcome_.survivors.push_back(describe_survivor(process));
    if (!swept.killed.empty()) record("leftovers-killed", {{"killed", outcome_.left_behind}});
    if (!swept.survivors.empty()) record("not-killable", {{"processes", outcome_.survivors}});
    for (std::size_t i = 0; i < live_.size(); ++i) output_->close(i);
  }

  void conclude() {
    outcome_.ended_at = utc_now();
    outcome_.took = since_start();
    outcome_.lost_bytes = output_->lost_bytes();
    if (outcome_.first) {
      outcome_.next = next_after(*outcome_.first);
      outcome_.last_lines = output_->last_lines(*outcome_.first, kLastLines);
      for (auto& line : outcome_.last_lines) line = line.substr(0, kLongestLastLine);
    }
    if (terminal_) outcome_.skipped = terminal_->skipped();
    terminal_.reset();
    record("attempt-ended", {{"outcome", supervise::name_of(outcome_.cause)},
                             {"exit_code", exit_code(outcome_)},
                             {"what", sentence(outcome_)}});
  }

  [[nodiscard]] std::optional<std::size_t> next_after(std::size_t first) const {
    const auto& processes = outcome_.processes;
    std::optional<std::size_t> next;
    for (std::size_t i = 0; i < processes.size(); ++i) {
      if (i == first || !processes[i].ended || !processes[first].ended) continue;
      if (*processes[i].ended < *processes[first].ended) continue;
      if (!next || *processes[i].ended < *processes[*next].ended) next = i;
    }
    return next;
  }

  // --- small things ---

  [[nodiscard]] LivePids live_pids() const {
    LivePids pids;
    for (std::size_t i = 0; i < live_.size(); ++i) {
      const bool ended = outcome_.processes[i].ended.has_value();
      if (live_[i].subtree.leader > 0 && !ended)
        pids.emplace(live_[i].bound->process, live_[i].subtree.leader);
    }
    return pids;
  }

  [[nodiscard]] Duration since_start() const {
    return std::chrono::duration_cast<Duration>(Clock::now() - start_);
  }
  [[nodiscard]] const std::string& name_of(ProcessIndex process) const {
    return outcome_.processes[process].name;
  }

  void record(std::string_view event, const Json& fields = Json::object()) {
    attempt_.events.write(event, fields);
  }

  void say(std::string_view text) {
    if (terminal_) terminal_->write(fmt::format("nlaunch: {}\n", text), 1);
  }

  void trouble(const std::string& sentence) {
    outcome_.troubles.push_back(sentence);
    record("trouble", {{"what", sentence}});
    say(sentence);
  }

  const Attempt& attempt_;
  Rules rules_;
  State state_;
  std::deque<Event> events_;
  std::deque<Action> actions_;
  bool working_ = false;
  bool finished_ = false;
  Clock::time_point start_ = Clock::now();
  std::uint32_t starts_ = 0;

  sys::Loop loop_;
  Cleaner cleaner_;
  std::unique_ptr<Terminal> terminal_;
  std::unique_ptr<Output> output_;
  std::vector<Live> live_;
  Outcome outcome_;
};

}  // namespace

std::filesystem::path attempt_folder(const std::filesystem::path& run_folder, unsigned number) {
  return run_folder / fmt::format("attempt-{}", number);
}

Outcome run_attempt(const Attempt& attempt) {
  return Supervisor(attempt).run();
}

}  // namespace nlaunch::supervise
