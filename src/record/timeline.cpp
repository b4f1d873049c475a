#include "record/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/text.h"
#include "supervise/events.h"
#include "watch/steps.h"

namespace nlaunch::record {
namespace {

constexpr std::array<std::string_view, kPhases> kTitles{
    "queue", "preflight", "loading", "first step", "productive", "stalled", "lost", "restart", "shutdown"};
constexpr std::array<std::string_view, kCauses> kCauseTitles{"first start", "failure",  "lost node",
                                                             "stall",       "walltime", "stopped",
                                                             "killed",      "request",  "end of the run"};
constexpr double kSecondsOfHour = 3600;
constexpr double kSlow = 2;          ///< times the median
constexpr std::size_t kMarks = 500;  ///< a run with more is not told better by more

std::optional<double> time_of(const Json& event) {
  return supervise::parse_utc(text_at(event, "time"));
}

/// What the plan says of a role.
struct RoleFacts {
  bool trains = false;     ///< its steps are the run's
  bool has_ready = false;  ///< it is up when a check says so, and not at its start
};

std::map<std::string, RoleFacts> roles_of(const Json& plan) {
  std::map<std::string, RoleFacts> out;
  const auto& roles = at(plan, "roles");
  if (!roles.is_array()) return out;
  for (const auto& role : roles) {
    const auto& ends_run = at(role, "ends_run");
    const auto& ready = at(role, "ready");
    const bool checks = ready.is_object() && std::ranges::any_of(ready.items(), [](const auto& item) {
                          return item.key() != "timeout_ms" && item.key() != "exited";
                        });
    out[text_at(role, "name")] = {
        text_at(role, "kind") == "learner" || (ends_run.is_boolean() && ends_run.get<bool>()), checks};
  }
  return out;
}

std::uint32_t gpus_of(const Json& plan) {
  const auto& slots = at(at(plan, "node"), "cpu_slots");
  if (slots.is_boolean() && slots.get<bool>()) return 0;
  std::set<std::pair<double, double>> used;  // several processes may share one
  const auto& processes = at(plan, "processes");
  if (processes.is_array()) {
    for (const auto& process : processes) {
      const auto& gpus = at(process, "gpus");
      if (!gpus.is_array()) continue;
      for (const auto& gpu : gpus)
        if (gpu.is_number()) used.emplace(number_at(process, "node"), gpu.get<double>());
    }
  }
  const auto& idle = at(plan, "idle_gpus");
  return static_cast<std::uint32_t>(used.size() + (idle.is_array() ? idle.size() : 0));
}

/// "engine" of "engine.0.1"
std::string role_of(const std::string& process) {
  return process.substr(0, process.find('.'));
}

/// "engine.0.1": only the first process of a replica is asked whether it is ready.
bool is_follower(const std::string& process) {
  const auto parts = text::split(process, '.');
  return parts.size() > 2 && parts.back() != "0";
}

/// Of a run whose outcome is decided: the names of supervise::name_of(Cause).
Cause::Kind kind_of_end(std::string_view outcome) {
  using Kind = Cause::Kind;
  constexpr std::pair<std::string_view, Kind> kKinds[] = {
      {"finished", Kind::finished}, {"node-lost", Kind::lost_node}, {"stalled", Kind::stall},
      {"walltime", Kind::walltime}, {"interrupted", Kind::stopped}, {"terminated", Kind::stopped},
      {"killed", Kind::killed}};
  const auto* const found = std::ranges::find(kKinds, outcome, &std::pair<std::string_view, Kind>::first);
  return found == std::end(kKinds) ? Kind::failure : found->second;
}

/// A stall that passed did not: training went on with the next step.
bool ended_training(const Cause& cause) {
  return cause.kind != Cause::Kind::stall || cause.attempt.has_value();
}

/// Of the finding that explains most.
std::string why_of(const Json& diagnosis) {
  const auto& findings = at(diagnosis, "findings");
  return findings.is_array() && !findings.empty() ? text_at(findings.front(), "why") : "";
}

/// A count that a program printed; nothing for what is none.
std::optional<std::uint64_t> count_in(const Json& event, std::string_view key) {
  const auto& number = at(event, key);
  if (number.is_number_unsigned()) return number.get<std::uint64_t>();
  if (!number.is_number_integer() || number.get<std::int64_t>() < 0) return std::nullopt;
  return static_cast<std::uint64_t>(number.get<std::int64_t>());
}

}  // namespace

/// What has been told so far.
class TimelineBuilder::State {
 public:
  State(const Json& plan, const Json& job) : roles_(roles_of(plan)) {
    reports_steps_ = !text_at(at(plan, "watch"), "progress").empty();
    saves_ = at(plan, "checkpoint").is_object();
    out_.gpus = gpus_of(plan);
    out_.causes.push_back({.kind = Cause::Kind::first_start});
    if (const auto submitted = supervise::parse_utc(text_at(job, "submitted"))) {
      began_ = true;
      out_.began = *submitted;
      phase_ = Phase::queue;
    }
  }

  void take(const Json& event, unsigned attempt_of_step) {
    const auto time = time_of(event);
    if (!time) return;
    if (!std::exchange(began_, true)) out_.began = *time;
    before_ = last_;
    // A clock that was set back makes nothing happen before what is known.
    last_ = std::max(last_, *time - out_.began);
    tell(event, attempt_of_step);
  }

  /// Of a run that is over: the step of its newest complete checkpoint.
  void set_saved(std::optional<std::uint64_t> step) { saved_ = step ? step : saved_; }

  /// To be called once.
  Timeline finish(double now, bool alive) {
    if (!over_ && alive && began_) last_ = std::max(last_, now - out_.began);
    if (!over_ && !alive && began_) note_killed(last_);
    out_.over = over_;
    // What comes after "end" is the wait of a job that never came.
    if (!over_ && last_ > since_) out_.phases.push_back({phase_, {since_, last_}});
    out_.seconds = over_ ? since_ : last_;
    close_all(alive ? "" : "lost");
    const bool failed = over_ ? failed_ : !alive;
    if (failed && saves_) lose_after(saved_.value_or(0));
    carve_lost();
    if (out_.steps.empty() && ((over_ && !failed_) || !reports_steps_)) {
      // Nobody counts its steps: what the learners did is taken for training.
      for (auto& span : out_.phases)
        if (span.phase == Phase::first_step) span.phase = Phase::productive;
    }
    mark_slow();
    return std::move(out_);
  }

 private:
  void enter(Phase phase, double at) {
    at = std::max(at, since_);
    if (phase == phase_) return;
    if (at > since_) out_.phases.push_back({phase_, {since_, at}});
    phase_ = phase;
    since_ = at;
  }
  void enter(Phase phase) { enter(phase, last_); }

  /// Training ends here, or cannot begin. The step in progress is lost.
  void disrupt(Cause::Kind kind, std::string what) {
    if (phase_ == Phase::productive && kind != Cause::Kind::finished) unfinished_.push_back({kept_, last_});
    out_.causes.push_back({.kind = kind, .at = last_, .what = std::move(what), .job = job_});
  }

  /// Nobody has said how the job ended; the next one, if any, began at `until`.
  void note_killed(double until) {
    constexpr double kSlack = 60;  // a scheduler checks time limits now and then
    if (phase_ == Phase::queue) return;
    const bool at_walltime = walltime_end_ && *walltime_end_ <= last_ + kSlack;
    if (at_walltime) last_ = std::clamp(*walltime_end_, last_, std::max(last_, until));
    if (phase_ == Phase::shutdown || phase_ == Phase::restart) return;  // its cause is known
    disrupt(at_walltime ? Cause::Kind::walltime : Cause::Kind::killed,
            job_.empty() ? "nlaunch was killed" : fmt::format("job {} was killed", job_));
  }

  void mark(std::string what) {
    if (what.empty()) return;
    if (out_.marks.size() == kMarks) out_.marks.erase(out_.marks.begin());
    out_.marks.push_back({last_, std::move(what)});
  }

  void tell(const Json& event, unsigned attempt_of_step) {
    const auto what = text_at(event, "event");
    if (what == "step") return step(event, attempt_of_step);
    if (at(event, "process").is_string()) return process(what, event);
    if (what == "run") {
      begin_job(event);
    } else if (what == "taken-over") {
      // Its agents tell again what they have: nothing has paused.
      replay_ = true;
      over_ = false;
      mark("another nlaunch took the run over");
    } else if (what == "attempt") {
      begin_attempt(event);
    } else if (what == "attempt-started") {
      if (replay_) return;
      enter(Phase::loading);
      restarted_ = true;
    } else if (what == "watch") {
      note_watch(text_at(event, "kind"), text_at(event, "what"));
    } else if (what == "node-lost") {
      lose_node(text_at(event, "host"), text_at(event, "why"));
    } else if (what == "run-ending") {
      begin_shutdown(text_at(event, "outcome"), text_at(event, "what"));
    } else if (what == "attempt-ended") {
      end_attempt(text_at(event, "what"));
    } else if (what == "end") {
      end();
    } else if (what == "goes-on") {
      over_ = false;  // its next job is submitted
    } else {
      tell_small(what, event);
    }
  }

  void tell_small(const std::string& what, const Json& event) {
    if (what == "evidence") {
      mark(text_at(event, "verdict"));
      if (phase_ == Phase::stalled) out_.causes.back().why = text_at(event, "verdict");
    }
    if (what == "node-back") mark(text_at(event, "host") + " joined");
    if (what == "signal") mark(text_at(event, "signal"));
    if (what != "request") return;
    const auto& granted = at(event, "granted");
    if (granted.is_boolean() && granted.get<bool>()) requested_ = true;
    mark(text_at(event, "kind") + " " + text_at(event, "what"));
  }

  /// One that begins without the end of the job before was killed with its node, and waited in the queue.
  void begin_job(const Json& event) {
    if (!over_ && phase_ != Phase::queue && (!rows_.empty() || !out_.phases.empty())) {
      const auto now = std::exchange(last_, before_);
      note_killed(now);
      close_all("lost");
      enter(Phase::queue);
      last_ = now;
    }
    over_ = false;
    replay_ = false;
    job_ = text_at(event, "job");
    walltime_end_ = supervise::parse_utc(text_at(event, "walltime_end"));
    if (walltime_end_) *walltime_end_ -= out_.began;
    enter(Phase::preflight);
  }

  void begin_attempt(const Json& event) {
    if (phase_ == Phase::restart) out_.causes.back().restart = ++restarts_;
    const auto number = count_in(event, "number").value_or(0);
    attempt_ = static_cast<unsigned>(std::min<std::uint64_t>(number, UINT32_MAX));
    replay_ = requested_ = false;
    ended_.reset();
    close_all("");
    enter(Phase::preflight);
  }

  void note_watch(const std::string& kind, const std::string& what) {
    mark(what);
    if (kind != "stalled" || (phase_ != Phase::first_step && phase_ != Phase::productive)) return;
    enter(Phase::stalled, progress_);
    out_.causes.push_back({.kind = Cause::Kind::stall,
                           .at = std::max(since_, out_.causes.back().at),
                           .what = what,
                           .job = job_});
  }

  void begin_shutdown(const std::string& outcome, const std::string& what) {
    mark(what);
    failed_ = outcome != "finished";
    if (phase_ == Phase::shutdown) return;
    const auto kind = kind_of_end(outcome);
    if (kind != Cause::Kind::stall || phase_ != Phase::stalled) disrupt(kind, what);
    out_.causes.back().attempt = attempt_;
    enter(Phase::shutdown);
  }

  /// `what`: by now, what all processes left has been read.
  void end_attempt(std::string what) {
    auto& cause = out_.causes.back();
    if (cause.attempt == attempt_ && cause.kind != Cause::Kind::stall && !what.empty())
      cause.what = std::move(what);
    enter(Phase::restart);
  }

  void end() {
    close_all("");
    if (phase_ == Phase::restart) phase_ = Phase::shutdown;  // nlaunch read the logs and wrote the summary
    enter(Phase::queue);                                     // of the next job of the run, if there is one
    over_ = true;
  }

  void lose_node(const std::string& host, const std::string& why) {
    mark(host + ": " + why);
    for (const auto& [name, index] : rows_)
      if (out_.processes[index].host == host) close(name, "lost with its node");
  }

  void step(const Json& event, unsigned attempt) {
    const auto told = count_in(event, "step");
    if (!told) return;
    TrainingStep done{.at = last_, .step = *told, .number = *told, .attempt = attempt};
    const auto* before = out_.steps.empty() ? nullptr : &out_.steps.back();
    const bool restarted = std::exchange(restarted_, false);
    replay_ = false;
    if (before != nullptr && *told <= before->step && (!restarted || base_ > 0)) base_ = before->number;
    done.number += std::min(base_, UINT64_MAX - done.number);
    done.first = restarted || before == nullptr;
    const auto reported = number_at(event, "seconds");
    if (reported > 0) {
      done.seconds = reported;
    } else if (!done.first && done.number > before->number) {
      done.seconds = (last_ - before->at) / static_cast<double>(done.number - before->number);
    }
    if (phase_ == Phase::shutdown && !unfinished_.empty() && unfinished_.back().end >= since_)
      unfinished_.pop_back();  // the program finished it all the same
    if (phase_ != Phase::shutdown && phase_ != Phase::productive)
      enter(Phase::productive, phase_ == Phase::first_step ? last_ - std::max(0.0, reported) : last_);
    if (before != nullptr && done.number <= before->number)
      lose_after(done.number - std::min<std::uint64_t>(done.number, 1));
    progress_ = kept_ = last_;
    out_.steps.push_back(done);
  }

  /// They were done again, or are gone with the run.
  void lose_after(std::uint64_t number) {
    for (auto step = out_.steps.rbegin(); step != out_.steps.rend() && step->number > number; ++step)
      step->lost = true;
  }

  void process(const std::string& what, const Json& event) {
    const auto name = text_at(event, "process");
    const auto& role = roles_[role_of(name)];
    if (what == "link") {
      supervise::add_link(out_.links, {text_at(event, "kind"), text_at(event, "url"), name});
    } else if (what == "process-raised") {
      mark(name + " raised " + text_at(event, "exception"));
    } else if (what == "checkpoint") {
      if (const auto step = count_in(event, "step")) saved_ = step;
      kept_ = last_;
    } else if (what == "process-unresponsive") {
      mark(name + ": " + text_at(event, "why"));
    } else if (what == "process-restart") {
      replay_ = false;
      const bool requested = std::exchange(requested_, false);
      if (role.trains && phase_ != Phase::shutdown) restart_learner(name, requested);
    } else if (what == "process-started") {
      started(name, role, event);
    } else if (what == "process-ready" || what == "process-fresh") {
      close(name, "");
      open(name, ProcessSpan::State::up);
    } else if (what == "process-stale") {
      close(name, "");
      open(name, ProcessSpan::State::stale);
    } else if (what == "process-ended") {
      const auto how = text_at(event, "how");
      if (role.trains && (!ended_ || (exited_well(ended_->how) && !exited_well(how)))) ended_ = {name, how};
      close(name, how);
    } else if (what == "process-lost") {
      close(name, "lost");
      mark(name + " is lost: " + text_at(event, "why"));
    }
  }

  /// In the same attempt. The others of its role may restart with it.
  void restart_learner(const std::string& name, bool requested) {
    const auto ended = std::exchange(ended_, std::nullopt);
    if (requested) {
      disrupt(Cause::Kind::request, name + " restarted on request");
    } else if (phase_ != Phase::loading || (ended && !exited_well(ended->how))) {
      disrupt(Cause::Kind::failure,
              ended ? fmt::format("{} {}; it restarted", ended->name, ended->how) : name + " restarted");
    }
    enter(Phase::loading);
  }

  void started(const std::string& name, const RoleFacts& role, const Json& event) {
    auto& row = row_of(name);
    if (const auto host = text_at(event, "host"); !host.empty()) row.host = host;
    if (replay_ && !row.spans.empty() && row.spans.back().time.end < 0) return;
    close(name, "");
    const bool checked = role.has_ready && !is_follower(name);
    open(name, checked ? ProcessSpan::State::starting : ProcessSpan::State::up);
    if (!role.trains || phase_ != Phase::loading) return;
    restarted_ = true;
    enter(Phase::first_step);
    progress_ = last_;
  }

  ProcessRow& row_of(const std::string& name) {
    const auto [found, is_new] = rows_.try_emplace(name, out_.processes.size());
    if (is_new) out_.processes.push_back({.name = name, .host = {}, .spans = {}});
    return out_.processes[found->second];
  }

  void open(const std::string& name, ProcessSpan::State state) {
    row_of(name).spans.push_back({state, {last_, -1}});
  }

  /// `end`: how it exited; empty: it goes on in another state.
  void close(const std::string& name, const std::string& end) {
    auto& spans = row_of(name).spans;
    if (spans.empty() || spans.back().time.end >= 0) return;
    spans.back().time.end = last_;
    spans.back().end = end;
    if (end.empty() && spans.back().time.seconds() <= 0) spans.pop_back();
  }

  void close_all(const std::string& end) {
    for (const auto& [name, index] : rows_) close(name, end);
  }

  /// The time of steps that did not count, in its order and without gaps or overlaps.
  [[nodiscard]] std::vector<Interval> lost_time() const {
    auto all = unfinished_;
    for (std::size_t i = 0; i < out_.steps.size(); ++i) {
      const auto& step = out_.steps[i];
      if (step.lost)
        all.push_back({step.first || i == 0 ? step.at - step.seconds : out_.steps[i - 1].at, step.at});
    }
    std::ranges::sort(all, {}, &Interval::begin);
    std::vector<Interval> lost;
    for (const auto& one : all) {
      if (!lost.empty() && lost.back().end >= one.begin)
        lost.back().end = std::max(lost.back().end, one.end);
      else
        lost.push_back(one);
    }
    return lost;
  }

  /// Takes it out of the productive time.
  void carve_lost() {
    const auto lost = lost_time();
    std::vector<PhaseSpan> out;
    const auto add = [&](Phase phase, double begin, double end) {
      if (end <= begin) return;
      // Two stalls with a step between them have two causes.
      const bool more = !out.empty() && out.back().phase == phase && phase != Phase::stalled;
      if (more && out.back().time.end >= begin)
        out.back().time.end = end;
      else
        out.push_back({phase, {begin, end}});
    };
    auto next = lost.begin();
    for (const auto& span : out_.phases) {
      double at = span.time.begin;
      while (span.phase == Phase::productive && next != lost.end() && next->begin < span.time.end) {
        const double begin = std::max(at, next->begin);
        const double end = std::min(next->end, span.time.end);
        add(span.phase, at, begin);
        add(Phase::lost, begin, end);
        at = std::max(at, end);
        if (next->end > span.time.end) break;
        ++next;
      }
      add(span.phase, at, span.time.end);
    }
    out_.phases = std::move(out);
  }

  void mark_slow() {
    std::vector<double> known;
    for (const auto& step : out_.steps)
      if (!step.first && step.seconds > 0) known.push_back(step.seconds);
    const auto median = watch::median(std::move(known));
    for (auto& step : out_.steps) step.slow = !step.first && median > 0 && step.seconds > kSlow * median;
  }

  std::map<std::string, RoleFacts> roles_;
  bool reports_steps_ = false;
  bool saves_ = false;  ///< the experiment says where checkpoints are
  bool began_ = false;
  Timeline out_;
  std::map<std::string, std::size_t> rows_;
  Phase phase_ = Phase::preflight;
  double since_ = 0;
  double last_ = 0;
  double before_ = 0;                 ///< the event before this one
  double progress_ = 0;               ///< the last step, or the start of the learners
  double kept_ = 0;                   ///< the last step or checkpoint
  std::vector<Interval> unfinished_;  ///< of steps in progress when training ended
  std::string job_;
  std::optional<double> walltime_end_;  ///< of this job
  unsigned attempt_ = 0;
  unsigned restarts_ = 0;
  struct Ended {
    std::string name;
    std::string how;
  };
  std::optional<Ended> ended_;  ///< since the last start: the first process that trains and failed, or exited
  bool requested_ = false;      ///< a person asked for a change: it explains the next restart
  std::optional<std::uint64_t> saved_;
  std::uint64_t base_ = 0;  ///< of a count that began anew with an epoch
  bool restarted_ = true;   ///< no step since the learners started
  bool replay_ = false;     ///< a new leader is told what there is already
  bool over_ = false;
  bool failed_ = false;
};

TimelineBuilder::TimelineBuilder(const Json& plan, const Json& job)
    : state_(std::make_unique<State>(plan, job)) {}
TimelineBuilder::~TimelineBuilder() = default;
TimelineBuilder::TimelineBuilder(TimelineBuilder&&) noexcept = default;
TimelineBuilder& TimelineBuilder::operator=(TimelineBuilder&&) noexcept = default;

void TimelineBuilder::take(const Json& event, unsigned attempt) {
  state_->take(event, attempt);
}

void TimelineBuilder::set_saved(std::optional<std::uint64_t> step) {
  state_->set_saved(step);
}

Timeline TimelineBuilder::timeline(double now, bool alive) const {
  return State(*state_).finish(now, alive);
}

void TimelineBuilder::take(const std::vector<Json>& events, const std::vector<AttemptSteps>& steps) {
  auto event = events.begin();
  for (const auto& attempt : steps) {
    for (const auto& step : attempt.steps) {
      const auto at = time_of(step);
      for (; event != events.end() && time_of(*event) <= at; ++event) take(*event);
      take(step, attempt.number);
    }
  }
  for (; event != events.end(); ++event) take(*event);
}

bool exited_well(std::string_view end) {
  return end == "exited with code 0" || end == "was terminated by SIGTERM" || end == "was ended by SIGTERM";
}

std::string_view title_of(Phase phase) {
  return kTitles[static_cast<std::size_t>(phase)];
}

std::string_view title_of(Cause::Kind kind) {
  return kCauseTitles[static_cast<std::size_t>(kind)];
}

double Cost::total() const {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

double Cost::held() const {
  return total() - seconds[static_cast<std::size_t>(Phase::queue)];
}

std::vector<Cost> costs_of(const Timeline& timeline) {
  std::vector<Cost> all;
  for (const auto& cause : timeline.causes) all.push_back({.cause = cause});
  if (all.empty()) return all;
  const auto at = [](const Cost& cost) { return cost.cause.at; };
  for (const auto& [phase, time] : timeline.phases) {
    if (phase == Phase::productive) continue;
    auto cost = std::prev(std::ranges::upper_bound(all.begin() + 1, all.end(), time.begin, {}, at));
    if (phase == Phase::lost) {
      const auto next = std::ranges::lower_bound(all, time.end, {}, at);
      const auto ended =
          std::find_if(next, all.end(), [](const Cost& one) { return ended_training(one.cause); });
      cost = ended == all.end() ? std::prev(all.end()) : ended;
    }
    cost->seconds[static_cast<std::size_t>(phase)] += time.seconds();
  }
  std::erase_if(all, [](const Cost& cost) { return cost.total() <= 0; });
  std::ranges::stable_sort(all, std::greater<>(),
                           [](const Cost& cost) { return std::pair(cost.held(), cost.total()); });
  return all;
}

double Timeline::in(Phase phase, const Interval& of) const {
  double sum = 0;
  for (const auto& span : phases) {
    if (span.phase != phase) continue;
    sum += std::max(0.0, std::min(span.time.end, of.end) - std::max(span.time.begin, of.begin));
  }
  return sum;
}

std::optional<double> Timeline::ettr(const Interval& of) const {
  if (of.seconds() <= 0) return std::nullopt;
  return in(Phase::productive, of) / of.seconds();
}

double Timeline::gpu_hours(Phase phase) const {
  return phase == Phase::queue ? 0 : in(phase)*gpus / kSecondsOfHour;
}

double Timeline::gpu_hours(const Cost& cost) const {
  return cost.held() * gpus / kSecondsOfHour;
}

StepTimes Timeline::step_times() const {
  std::vector<double> known;
  StepTimes out;
  for (const auto& step : steps) {
    if (!step.first && step.seconds > 0) known.push_back(step.seconds);
    out.slow += step.slow ? 1 : 0;
  }
  if (known.empty()) return out;
  std::ranges::sort(known);
  constexpr double kMost = 0.9;
  out.count = known.size();
  out.median = watch::median(known);
  out.p90 = known[static_cast<std::size_t>(kMost * static_cast<double>(known.size() - 1))];
  out.longest = known.back();
  return out;
}

Timeline timeline_of(const RunFiles& run, double now, bool alive) {
  std::vector<TimelineBuilder::AttemptSteps> steps;
  for (const auto& attempt : run.attempts) steps.push_back({attempt.number, attempt.steps});
  TimelineBuilder builder(run.plan, run.job);
  builder.take(run.events, steps);
  builder.set_saved(count_in(at(run.summary, "checkpoint"), "step"));
  auto out = builder.timeline(now, alive);
  for (auto& cause : out.causes) {
    if (!cause.why.empty() || !cause.attempt) continue;
    const auto attempt = std::ranges::find(run.attempts, *cause.attempt, &Attempt::number);
    if (attempt != run.attempts.end()) cause.why = why_of(attempt->diagnosis);
  }
  return out;
}

}  // namespace nlaunch::record
