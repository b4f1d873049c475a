#include "supervise/state_machine.h"

#include <algorithm>
#include <csignal>
#include <functional>
#include <span>
#include <utility>

#include "supervise/stop_signal.h"

namespace nlaunch::supervise {
namespace {

template <class... Alternatives>
bool is_any(const ProcessPhase& phase) {
  return (std::holds_alternative<Alternatives>(phase) || ...);
}

bool is_alive(const ProcessPhase& phase) {
  return is_any<Starting, Running, Serving, Stopping, Killed>(phase);
}

/// std::ranges::any_of, beginning at the index `found` and wrapping around; `found` becomes that of a fitting
/// element.
template <class Elements, class Fits>
bool any_from(std::size_t& found, const Elements& all, const Fits& fits) {
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(std::min(found, all.size()));
  auto at = std::find_if(first, all.end(), std::ref(fits));
  if (at == all.end() && (at = std::find_if(all.begin(), first, std::ref(fits))) == first) return false;
  found = static_cast<std::size_t>(at - all.begin());
  return true;
}

/// It has exited and will not be restarted.
bool is_over(const ProcessPhase& phase) {
  const auto* cleaning = std::get_if<CleaningUp>(&phase);
  return std::holds_alternative<Ended>(phase) || (cleaning != nullptr && !cleaning->restart);
}

bool is_lost(const ProcessState& process) {
  return process.missing != ProcessState::Missing::no;
}

SignalRule rule_of(const Rules& rules, int signal) {
  const auto found = rules.signals.find(signal);
  if (found != rules.signals.end()) return found->second;
  const bool stops = signal == SIGTERM || signal == SIGHUP;
  return {stops ? SignalRule::Action::stop : SignalRule::Action::ignore, {}};
}

/// One transition of the state machine: the state before, the event, the state after and the actions.
class Transition {
 public:
  Transition(const Rules& rules, State state) : rules_(rules), state_(std::move(state)) {}

  Step take() && { return {std::move(state_), std::move(actions_)}; }

  void begin() {
    for (const auto& pool : rules_.borrowed) {
      for (const auto& node : pool.nodes) {
        for (const auto process : node) state_.processes[process].missing = ProcessState::Missing::away;
        if (!node.empty()) act(action::Recover{node});
      }
    }
    start_stage(0);
    advance();
    if (rules_.processes.empty()) decide(Finished{});
  }

  void on(const event::Started& event) {
    auto& phase = life_of(event.process);
    const auto* starting = std::get_if<Starting>(&phase);
    if (starting == nullptr) return;
    const bool unwanted = starting->stop;
    phase = Running{};
    if (unwanted) return stop(event.process);
    switch (rules_.processes[event.process].ready) {
      case ProcessRules::Ready::checked:
      case ProcessRules::Ready::exited:
        return act(action::AwaitReady{event.process});
      case ProcessRules::Ready::started:
        serve(event.process);
    }
    advance();
  }

  void on(const event::SpawnFailed& event) {
    if (!is_any<Starting>(life_of(event.process))) return;
    life_of(event.process) = Ended{};
    if (is_lost(state_.processes[event.process])) {
      start_where_back(event.process);
      release_drained();
      return advance();
    }
    give_up(event.process, StartFailed{event.process, event.reason});
  }

  void on(const event::Ready& event) {
    if (!is_any<Running>(life_of(event.process))) return;
    serve(event.process);
    advance();
  }

  void on(const event::ReadyTimeout& event) {
    if (!is_any<Running>(life_of(event.process))) return;
    const bool going = std::holds_alternative<Going>(state_.phase);
    if (is_task(event.process) && going && may_restart(event.process)) return stop(event.process);
    const bool tolerated = can_do_without({event.process});
    give_up(event.process, NeverReady{event.process, false});
    if (tolerated) stop(event.process);
  }

  void on(const event::Ended& event) {
    auto& phase = life_of(event.process);
    if (!is_alive(phase)) return;
    const bool going = std::holds_alternative<Going>(state_.phase);
    const bool lost = is_lost(state_.processes[event.process]);
    const bool again = going && !lost && state_.processes[event.process].again;
    const bool failed = !lost && !again && is_failure(event.process, event.status);
    const bool unready = !lost && !again && is_any<Running>(phase) && is_awaited(event.process);
    // It exceeded its time limit, however it reacted to the stop signal.
    const bool cut_off = going && is_any<Stopping, Killed>(phase) && is_task(event.process);
    if (failed || unready) count_alike(event, unready, !is_any<Stopping, Killed>(phase));
    const bool wanted = (failed || unready || cut_off) && may_restart(event.process);
    const bool loops = wanted && is_crash_loop(event.process);
    const bool restart = going && !lost && (again || (wanted && !loops) || starts_again(event.process));
    phase = CleaningUp{restart};
    act(action::CleanUp{event.process, going && rules_.processes[event.process].leave});
    if (restart) stop_replica(event.process);
    if (failed && !restart)
      return give_up(event.process, ProcessFailed{event.process, event.status,
                                                  loops ? state_.processes[event.process].alike : 0});
    if ((unready || cut_off) && !restart) return give_up(event.process, NeverReady{event.process, !cut_off});
    if (run_is_over()) return decide(Finished{});
    advance();
    continue_ending();
  }

  /// A process that is not ready yet exits on its own or by its timeout, and reports why.
  void on(const event::PartLost& event) {
    const auto& rules = rules_.processes[event.process];
    if (!is_any<Serving>(life_of(event.process)) || rules.ends_run || rules.exit_ok) return;
    replace(event.process, PartLost{event.process, event.reason});
  }

  void on(const event::Unresponsive& event) {
    if (!is_any<Serving>(life_of(event.process))) return;
    replace(event.process, Unresponsive{event.process, event.reason});
  }

  void on(const event::Fresh& event) {
    if (auto* serving = std::get_if<Serving>(&life_of(event.process))) serving->stale = false;
  }

  void on(const event::RestartWanted& event) {
    if (!std::holds_alternative<Going>(state_.phase)) return;
    for (const auto process : event.processes) {
      if (is_lost(state_.processes[process])) continue;
      auto* starting = std::get_if<Starting>(&life_of(process));
      if (starting == nullptr && !is_any<Running, Serving>(life_of(process))) continue;
      state_.processes[process].again = true;
      starting != nullptr ? void(starting->stop = true) : stop(process);
    }
  }

  void on(const event::Park& event) {
    if (!std::holds_alternative<Going>(state_.phase)) return;
    for (const auto process : event.processes) {
      if (is_over(life_of(process)) && !is_lost(state_.processes[process]))
        continue;  // it has finished its work
      state_.processes[process].parked = true;
      leave(process, ProcessState::Missing::may_start);
    }
    advance();
  }

  void on(const event::Unpark& event) {
    for (const auto process : event.processes) state_.processes[process].parked = false;
    for (const auto process : event.processes) start_where_back(process);
  }

  void on(const event::Drain& event) {
    if (!std::holds_alternative<Going>(state_.phase)) return;
    for (const auto process : event.processes) {
      const auto replica = replica_of(process);
      const std::vector<ProcessIndex> members(replica.begin(), replica.end());
      for (const auto member : members) leave(member, ProcessState::Missing::may_start);
    }
    for (const auto process : event.processes) {
      auto& missing = state_.processes[process].missing;
      if (missing == ProcessState::Missing::may_start) missing = ProcessState::Missing::draining;
    }
    state_.drains.push_back(event.processes);
    release_drained();
    advance();
  }

  void on(const event::RestartForgotten& event) {
    auto& counted = state_.processes[event.process].counted;
    counted -= std::min(counted, 1U);
  }

  void on(const event::CleanedUp& event) {
    auto& process = state_.processes[event.process];
    const auto* cleaning = std::get_if<CleaningUp>(&process.phase);
    if (cleaning == nullptr) return;
    if (cleaning->restart) {
      process.phase = Gathering{};
      return start_replica_again(event.process);
    }
    process.phase = Ended{};
    start_where_back(event.process);
    release_drained();
    continue_ending();
  }

  void on(const event::GraceOver& event) {
    if (is_any<Stopping>(life_of(event.process))) kill(event.process);
  }

  void on(const event::BackoffOver& event) {
    for (const auto process : replica_of(event.process)) {
      if (!is_any<BackingOff>(life_of(process))) continue;
      ++state_.processes[process].restarts;
      if (std::exchange(state_.processes[process].again, false)) {
        start(process);
        continue;
      }
      ++state_.processes[process].counted;
      if (const auto& within = rules_.processes[process].restart.within)
        act(action::ForgetRestart{process, *within});
      start(process);
    }
  }

  void on(const event::Signal& event) {
    if (event.signal == SIGQUIT) return kill_all(StoppedBySignal{event.signal});
    if (event.signal == SIGINT || event.signal == stop_signal()) return interrupt(event.signal);
    if (const auto cause = cause_of(rules_, event.signal)) return decide(*cause);
    const auto rule = rule_of(rules_, event.signal);
    if (rule.action == SignalRule::Action::forward) forward(event.signal, rule.roles);
  }

  void on(const event::GuardianLost&) { kill_all(GuardianGone{}); }

  /// Its processes are gone; nobody can be asked to clean up after them.
  void on(const event::NodeLost& event) {
    std::vector<ProcessIndex> gone;
    std::vector<ProcessIndex> awaited;  // its place had been filled, but they had not started yet
    bool known = false;                 // some were lost already, and the run continues without them
    bool early = std::holds_alternative<Going>(state_.phase);
    for (const auto process : event.processes) {
      auto& state = state_.processes[process];
      if (is_lost(state)) {
        known = true;
        using enum ProcessState::Missing;
        if (state.missing == may_start || state.missing == draining) awaited.push_back(process);
      } else if (!is_over(state.phase)) {
        gone.push_back(process);
        early = early && is_early(process);
      }
      if (!is_any<Waiting>(state.phase)) state.phase = Ended{};
    }
    std::erase_if(state_.drains, [&](const std::vector<ProcessIndex>& drained) {
      return std::ranges::any_of(drained, [&](ProcessIndex process) {
        return std::ranges::find(event.processes, process) != event.processes.end();
      });
    });
    const Cause cause = NodeLost{event.host, event.why};
    if (gone.empty() ? !known : !early && !can_do_without(gone)) return decide(cause);
    for (const auto process : gone) lose(process, cause, ProcessState::Missing::may_start);
    gone.insert(gone.end(), awaited.begin(), awaited.end());
    for (const auto process : gone) state_.processes[process].missing = ProcessState::Missing::away;
    if (!gone.empty() && std::holds_alternative<Going>(state_.phase)) act(action::Recover{gone});
    advance();
    continue_ending();
  }

  void on(const event::NodeBack& event) {
    if (!std::holds_alternative<Going>(state_.phase)) return;
    for (const auto process : event.processes) {
      auto& missing = state_.processes[process].missing;
      if (missing == ProcessState::Missing::away) missing = ProcessState::Missing::may_start;
    }
    for (const auto process : event.processes) start_where_back(process);
  }

  void on(const event::Abort& event) { decide(Aborted{event.reason, event.exit_code, event.process}); }

  /// Whether enough replicas of their roles are left without theirs.
  [[nodiscard]] bool can_do_without(const std::vector<ProcessIndex>& processes) {
    if (!std::holds_alternative<Going>(state_.phase)) return false;
    std::vector<bool> without(rules_.processes.size());
    for (const auto process : processes)
      for (const auto member : replica_of(process)) without[member] = true;
    return std::ranges::all_of(processes, [&](ProcessIndex process) {
      const auto& rules = rules_.processes[process];
      return rules.tolerate && left_of(rules.role, without) >= *rules.tolerate;
    });
  }

 private:
  /// The process itself, or all of its replica; valid until the next call.
  [[nodiscard]] std::span<const ProcessIndex> replica_of(ProcessIndex process) {
    if (const auto& replica = rules_.processes[process].replica) return rules_.replicas[*replica];
    alone_ = process;
    return {&alone_, 1};
  }

  /// Another process of its replica has failed, and all of them restart.
  [[nodiscard]] bool starts_again(ProcessIndex process) {
    return std::ranges::any_of(replica_of(process), [&](ProcessIndex other) {
      const auto& phase = state_.processes[other].phase;
      const auto* cleaning = std::get_if<CleaningUp>(&phase);
      return other != process && (is_any<Gathering>(phase) || (cleaning != nullptr && cleaning->restart));
    });
  }

  /// Stops the others of its replica, which cannot continue without it.
  void stop_replica(ProcessIndex process) {
    for (const auto other : replica_of(process)) {
      auto& phase = life_of(other);
      if (other == process) continue;
      if (is_any<Running, Serving>(phase)) stop(other);
      if (auto* starting = std::get_if<Starting>(&phase)) starting->stop = true;
      if (is_any<Ended>(phase)) phase = Gathering{};
      if (auto* cleaning = std::get_if<CleaningUp>(&phase)) cleaning->restart = true;
    }
  }

  void start_replica_again(ProcessIndex process) {
    const auto replica = replica_of(process);
    const auto gathered = [&](ProcessIndex other) { return is_any<Gathering>(life_of(other)); };
    if (!std::ranges::all_of(replica, gathered)) return;
    for (const auto other : replica) life_of(other) = BackingOff{};
    const auto first = replica.front();
    const auto wished =
        std::ranges::any_of(replica, [&](ProcessIndex other) { return state_.processes[other].again; });
    act(action::ArmBackoff{
        first, wished ? Duration()
                      : rules_.processes[first].restart.backoff_after(state_.processes[first].counted)});
  }

  /// Kills it to restart it, or continues without it, or ends the run.
  void replace(ProcessIndex process, Cause cause) {
    const bool going = std::holds_alternative<Going>(state_.phase);
    if (going && may_restart(process))
      return kill(process);  // its exit counts as a failure and triggers the restart
    const bool tolerated = can_do_without({process});
    give_up(process, std::move(cause));
    if (tolerated) kill(process);
  }

  /// Continues with what is left of its role, or ends the run.
  void give_up(ProcessIndex process, Cause cause) {
    if (!can_do_without({process})) return decide(std::move(cause));
    lose(process, cause, ProcessState::Missing::given_up);
    const bool nothing_is_left = std::ranges::all_of(state_.processes, is_lost);
    if (run_is_over()) return decide(nothing_is_left ? std::move(cause) : Cause(Finished{}));
    advance();
  }

  /// Number of replicas of a role that are neither lost nor finished, without those given.
  [[nodiscard]] std::size_t left_of(const std::string& role, const std::vector<bool>& without) const {
    std::size_t left = 0;
    for (ProcessIndex process = 0; process < rules_.processes.size(); ++process) {
      const auto& rules = rules_.processes[process];
      const bool is_first = !rules.replica || rules_.replicas[*rules.replica].front() == process;
      const auto& state = state_.processes[process];
      if (rules.role == role && is_first && !without[process] && !is_lost(state) && !is_over(state.phase))
        ++left;
    }
    return left;
  }

  /// Marks all of its replica as `missing`.
  void lose(ProcessIndex process, const Cause& cause, ProcessState::Missing missing) {
    if (is_lost(state_.processes[process])) return;
    const auto replica = replica_of(process);
    const std::vector<ProcessIndex> members(replica.begin(), replica.end());
    for (const auto other : members) {
      state_.processes[other].missing = missing;
      state_.processes[other].again = false;
      auto& phase = life_of(other);
      if (auto* starting = std::get_if<Starting>(&phase)) starting->stop = true;
      if (is_any<Gathering, BackingOff>(phase)) phase = Ended{};
      if (is_any<CleaningUp>(phase)) phase = CleaningUp{};
      if (other != process && is_any<Running, Serving>(phase)) stop(other);
    }
    const std::vector<bool> all(rules_.processes.size());
    act(action::Tolerate{members, cause, left_of(rules_.processes[process].role, all)});
  }

  /// On request, the run continues without it for now; a process that exited on its own stays as it is.
  void leave(ProcessIndex process, ProcessState::Missing missing) {
    auto& phase = life_of(process);
    if (is_lost(state_.processes[process]) || is_over(phase)) return;
    state_.processes[process].missing = missing;
    state_.processes[process].again = false;
    if (auto* starting = std::get_if<Starting>(&phase)) starting->stop = true;
    if (is_any<Gathering, BackingOff>(phase)) phase = Ended{};
    if (is_any<CleaningUp>(phase)) phase = CleaningUp{};
    if (is_any<Running, Serving>(phase)) stop(process);
  }

  /// Releases drained nodes on which nothing is alive.
  void release_drained() {
    if (!std::holds_alternative<Going>(state_.phase)) return;
    std::erase_if(state_.drains, [&](const std::vector<ProcessIndex>& drained) {
      const bool ended = std::ranges::all_of(
          drained, [&](ProcessIndex process) { return is_any<Ended, Waiting>(life_of(process)); });
      if (!ended) return false;
      for (const auto process : drained) {
        auto& missing = state_.processes[process].missing;
        if (missing == ProcessState::Missing::draining) missing = ProcessState::Missing::away;
      }
      act(action::Release{drained});
      return true;
    });
  }

  /// Restarts a replica once all of it have a node again and none of it is alive.
  void start_where_back(ProcessIndex process) {
    const auto replica = replica_of(process);
    const auto fits = [&](ProcessIndex other) {
      const auto& state = state_.processes[other];
      return state.missing == ProcessState::Missing::may_start && !state.parked &&
             is_any<Ended, Waiting>(state.phase);
    };
    if (!std::holds_alternative<Going>(state_.phase) || !std::ranges::all_of(replica, fits)) return;
    const std::vector<ProcessIndex> members(replica.begin(), replica.end());
    for (const auto other : members) {
      auto& state = state_.processes[other];
      state.missing = ProcessState::Missing::no;
      state.alike = 0;
      state.failure.reset();
      const bool is_first = is_any<Waiting>(state.phase);
      if (is_first && !is_in_turn(other)) continue;
      if (!is_first) ++state.restarts;
      start(other);
    }
  }

  [[nodiscard]] std::size_t stage_of(ProcessIndex process) const {
    const auto stage = std::ranges::find_if(
        rules_.stages, [&](const auto& processes) { return std::ranges::binary_search(processes, process); });
    return static_cast<std::size_t>(stage - rules_.stages.begin());
  }

  /// Whether its stage has been started.
  [[nodiscard]] bool is_in_turn(ProcessIndex process) const {
    return stage_of(process) <= std::get<Going>(state_.phase).stage;
  }

  /// Whether its borrowed node may leave: it does not serve yet, or a later stage still waits for such nodes.
  [[nodiscard]] bool is_early(ProcessIndex process) const {
    if (!rules_.processes[process].borrowed) return false;
    const auto stage = stage_of(process);
    const bool gathers = stage + 1 < rules_.stages.size() && stage >= std::get<Going>(state_.phase).stage;
    return gathers || !is_any<Serving>(state_.processes[process].phase);
  }

  void serve(ProcessIndex process) {
    const bool stale = begins_stale(rules_, state_, process);
    life_of(process) = Serving{stale};
    if (stale) act(action::AwaitFresh{process});
    if (rules_.processes[process].watched) act(action::Watch{process});
  }

  /// Counts consecutive early failures of the same kind. A process that nlaunch itself stopped says nothing
  /// about the program.
  void count_alike(const event::Ended& event, bool unready, bool by_itself) {
    auto& process = state_.processes[event.process];
    const bool at_once = by_itself && (event.soon || unready);
    const bool same = at_once && process.failure == event.status;
    process.alike = same ? process.alike + 1 : by_itself ? 1 : 0;
    process.failure = at_once ? std::optional(event.status) : std::nullopt;
  }

  /// Another restart would only show the same failure again.
  [[nodiscard]] bool is_crash_loop(ProcessIndex process) const {
    constexpr unsigned kTimes = 3;
    return state_.processes[process].alike >= kTimes;
  }

  template <class What>
  void act(What what) {
    actions_.emplace_back(std::in_place_type<What>, std::move(what));
  }
  ProcessPhase& life_of(ProcessIndex process) { return state_.processes[process].phase; }

  void start(ProcessIndex process) {
    life_of(process) = Starting{};
    act(action::Start{process});
  }

  void start_stage(std::size_t stage) {
    for (const auto process : rules_.stages[stage]) {
      if (!is_lost(state_.processes[process]))
        start(process);
      else if (!rules_.processes[process].borrowed)
        life_of(process) = Ended{};  // lost with its node before its stage started
    }
  }

  /// Starts the next stage when all of this one are ready or have exited as allowed.
  void advance() {
    auto* going = std::get_if<Going>(&state_.phase);
    if (going == nullptr) return;
    const auto unsatisfied = [&](ProcessIndex process) {
      return !rules_.processes[process].borrowed && !is_at_work(process) && !is_over(life_of(process));
    };
    while (going->stage + 1 < rules_.stages.size() &&
           !any_from(state_.found.unsatisfied, rules_.stages[going->stage], unsatisfied) &&
           enough_are_lent(going->stage)) {
      start_stage(++going->stage);
    }
  }

  [[nodiscard]] bool is_at_work(ProcessIndex process) const {
    return is_any<Serving>(state_.processes[process].phase);
  }

  /// For each elastic pool with processes in this stage.
  [[nodiscard]] bool enough_are_lent(std::size_t stage) const {
    const auto& processes = rules_.stages[stage];
    const auto is_here = [&](ProcessIndex process) { return std::ranges::binary_search(processes, process); };
    const auto is_given_up = [&](ProcessIndex process) {
      const auto& one = state_.processes[process];
      return one.missing == ProcessState::Missing::given_up || one.parked;
    };
    return std::ranges::all_of(rules_.borrowed, [&](const BorrowedNodes& pool) {
      std::size_t wanted = 0;
      std::size_t there = 0;
      for (const auto& node : pool.nodes) {
        if (std::ranges::none_of(node, is_here) || std::ranges::any_of(node, is_given_up)) continue;
        ++wanted;
        const bool works =
            std::ranges::all_of(node, [&](ProcessIndex one) { return !is_here(one) || is_at_work(one); });
        there += works ? 1 : 0;
      }
      return there >= std::min(pool.min, wanted);
    });
  }

  [[nodiscard]] bool some_end_the_run() {
    return any_from(state_.found.ends_run, rules_.processes,
                    [](const ProcessRules& rules) { return rules.ends_run; });
  }

  [[nodiscard]] bool is_failure(ProcessIndex process, const sys::WaitStatus& status) {
    const auto& rules = rules_.processes[process];
    const bool may_end = rules.ends_run || rules.exit_ok || rules.ready == ProcessRules::Ready::exited;
    return !status.ok() || (!may_end && some_end_the_run());
  }

  /// Whether later stages wait for its readiness check. A learner that has finished its work need not have
  /// been ready.
  [[nodiscard]] bool is_awaited(ProcessIndex process) const {
    const auto& rules = rules_.processes[process];
    return rules.ready == ProcessRules::Ready::checked && !rules.ends_run;
  }

  /// Later stages, and the run, wait for its exit.
  [[nodiscard]] bool is_task(ProcessIndex process) const {
    return rules_.processes[process].ready == ProcessRules::Ready::exited;
  }

  [[nodiscard]] bool may_restart(ProcessIndex process) const {
    const auto& restart = rules_.processes[process].restart;
    return restart.on_failure && state_.processes[process].counted < restart.max;
  }

  /// Whether every process that ends the run, and every task, has exited; if no process ends the run, whether
  /// every process has.
  [[nodiscard]] bool run_is_over() {
    const bool some = some_end_the_run();
    return !any_from(state_.found.unfinished, state_.processes, [&](const ProcessState& process) {
      const auto index = static_cast<ProcessIndex>(&process - state_.processes.data());
      if (some && !rules_.processes[index].ends_run && !is_task(index)) return false;
      const bool never_came = is_lost(process) && is_any<Waiting>(process.phase);
      return !never_came && !is_over(process.phase);
    });
  }

  /// The first cause decides; later ones change nothing.
  void decide(Cause cause) {
    if (!std::holds_alternative<Going>(state_.phase)) return continue_ending();
    act(action::Decide{cause});
    state_.phase = Ending{std::move(cause), rules_.stages.size()};
    cancel_starts();
    continue_ending();
  }

  void cancel_starts() {
    for (auto& process : state_.processes) {
      if (is_any<Starting>(process.phase)) process.phase = Waiting{};
      if (is_any<Gathering, BackingOff>(process.phase)) process.phase = Ended{};
      if (is_any<CleaningUp>(process.phase)) process.phase = CleaningUp{};
    }
  }

  /// Stops the stages in reverse order and finishes when nothing is left.
  void continue_ending() {
    if (auto* ending = std::get_if<Ending>(&state_.phase)) {
      while (ending->stage > 0 && !some_alive(ending->stage)) stop_stage(--ending->stage);
    }
    const auto unsettled = [](const ProcessState& process) { return !is_any<Waiting, Ended>(process.phase); };
    if (any_from(state_.found.unsettled, state_.processes, unsettled)) return;
    if (auto* ending = std::get_if<Ending>(&state_.phase)) return finish(ending->cause);
    if (auto* killing = std::get_if<Killing>(&state_.phase)) return finish(killing->cause);
  }

  bool some_alive(std::size_t stage) {
    return stage < rules_.stages.size() && any_from(state_.found.alive, rules_.stages[stage],
                                                    [&](auto process) { return is_alive(life_of(process)); });
  }

  void stop_stage(std::size_t stage) {
    for (const auto process : rules_.stages[stage]) {
      if (is_any<Running, Serving>(life_of(process))) stop(process);
    }
  }

  void stop(ProcessIndex process) {
    const auto& rule = rules_.processes[process].stop;
    life_of(process) = Stopping{};
    act(action::SignalGroup{process, signal_to_stop(process)});
    act(action::ArmGrace{process, rule.grace});
  }

  [[nodiscard]] int signal_to_stop(ProcessIndex process) const {
    const auto& rules = rules_.processes[process];
    const auto* ending = std::get_if<Ending>(&state_.phase);
    const bool walltime = ending != nullptr && std::holds_alternative<WalltimeNear>(ending->cause);
    return walltime ? rules.walltime_signal.value_or(rules.stop.signal) : rules.stop.signal;
  }

  void kill(ProcessIndex process) {
    life_of(process) = Killed{};
    act(action::KillTree{process});
  }

  void interrupt(int signal) {
    decide(StoppedBySignal{signal});
    auto* ending = std::get_if<Ending>(&state_.phase);
    if (ending != nullptr && ++ending->interrupts > 1) kill_all(StoppedBySignal{signal});
  }

  void kill_all(Cause cause) {
    if (std::holds_alternative<Killing>(state_.phase) || std::holds_alternative<Done>(state_.phase)) return;
    if (const auto* ending = std::get_if<Ending>(&state_.phase)) {
      cause = ending->cause;
    } else {
      act(action::Decide{cause});
    }
    state_.phase = Killing{std::move(cause)};
    cancel_starts();
    for (auto& process : state_.processes) {
      if (is_any<Running, Serving, Stopping>(process.phase)) process.phase = Killed{};
    }
    act(action::KillAll{});
    continue_ending();
  }

  void finish(const Cause& cause) {
    act(action::Finish{cause});
    state_.phase = Done{Cause(cause)};
  }

  void forward(int signal, const std::vector<std::string>& roles) {
    for (ProcessIndex process = 0; process < rules_.processes.size(); ++process) {
      const bool meant =
          roles.empty() || std::ranges::find(roles, rules_.processes[process].role) != roles.end();
      if (meant && is_any<Running, Serving, Stopping>(life_of(process))) {
        act(action::SignalProcess{process, signal});
      }
    }
  }

  const Rules& rules_;
  State state_;
  std::vector<Action> actions_;
  ProcessIndex alone_ = 0;
};

}  // namespace

bool can_do_without(const Rules& rules, const State& state, const std::vector<ProcessIndex>& processes) {
  return Transition(rules, state).can_do_without(processes);
}

bool begins_stale(const Rules& rules, const State& state, ProcessIndex process) {
  const auto& own = rules.processes[process];
  if (!own.gets_fresh || state.processes[process].restarts > 0) return own.gets_fresh;
  if (!own.borrowed) return false;
  for (ProcessIndex other = 0; other < state.processes.size(); ++other)
    if (rules.processes[other].saves && is_any<Running, Serving>(state.processes[other].phase)) return true;
  return false;
}

bool is_listed(const State& state, ProcessIndex process) {
  const auto& one = state.processes[process];
  if (is_lost(one)) return false;
  return is_any<Serving>(one.phase) || (one.restarts == 0 && is_any<Waiting, Starting, Running>(one.phase));
}

std::optional<Cause> cause_of(const Rules& rules, int signal) {
  if (signal == SIGUSR2 && rules.walltime) return WalltimeNear{};
  const bool always = signal == SIGINT || signal == SIGQUIT || signal == stop_signal();
  if (!always && rule_of(rules, signal).action != SignalRule::Action::stop) return std::nullopt;
  return StoppedBySignal{signal};
}

Step begin(const Rules& rules) {
  State state;
  state.processes.resize(rules.processes.size());
  Transition transition(rules, std::move(state));
  transition.begin();
  return std::move(transition).take();
}

Step step(const Rules& rules, State state, const Event& event) {
  Transition transition(rules, std::move(state));
  std::visit([&](const auto& happened) { transition.on(happened); }, event);
  return std::move(transition).take();
}

}  // namespace nlaunch::supervise
