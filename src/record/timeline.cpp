#include "record/timeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "supervise/events.h"
#include "watch/steps.h"

namespace nlaunch::record {
namespace {

constexpr std::array<std::string_view, kPhases> kTitles{
    "queue", "preflight", "loading", "first step", "productive", "stalled", "lost", "restart", "shutdown"};
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
  std::set<std::pair<Json, Json>> used;
  const auto& processes = at(plan, "processes");
  if (processes.is_array()) {
    for (const auto& process : processes) {
      const auto& gpus = at(process, "gpus");
      if (!gpus.is_array()) continue;
      for (const auto& gpu : gpus) used.emplace(at(process, "node"), gpu);
    }
  }
  const auto& idle = at(plan, "idle_gpus");
  return static_cast<std::uint32_t>(used.size() + (idle.is_array() ? idle.size() : 0));
}

/// "engine" of "engine.0.1"
std::string role_of(const std::string& process) {
  return process.substr(0, process.find('.'));
}

}  // namespace

/// What has been told so far.
class TimelineBuilder::State {
 public:
  State(const Json& plan, const Json& job) : roles_(roles_of(plan)) {
    reports_steps_ = !text_at(at(plan, "watch"), "progress").empty();
    out_.gpus = gpus_of(plan);
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
    last_ = std::max(last_, *time - out_.began);
    tell(event, attempt_of_step);
  }

  /// To be called once.
  Timeline finish(double now, bool alive) {
    if (!over_ && alive && began_) last_ = std::max(last_, now - out_.began);
    finish();
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

  void mark(std::string what) {
    if (out_.marks.size() < kMarks && !what.empty()) out_.marks.push_back({last_, std::move(what)});
  }

  void tell(const Json& event, unsigned attempt_of_step) {
    const auto what = text_at(event, "event");
    if (what == "step") return step(event, attempt_of_step);
    if (at(event, "process").is_string()) process(what, event);
    if (what == "run" || what == "taken-over") {
      over_ = false;
      // A leader that takes a run over finds it as it was.
      if (what == "run") enter(Phase::preflight);
      if (what == "taken-over") mark("another nlaunch took the run over");
    } else if (what == "attempt") {
      enter(Phase::preflight);
    } else if (what == "attempt-started") {
      enter(Phase::loading);
      step_at_.reset();
      fresh_ = true;
    } else if (what == "watch") {
      if (text_at(event, "kind") == "stalled" && phase_ != Phase::loading) enter(Phase::stalled, progress_);
      mark(text_at(event, "what"));
    } else if (what == "evidence") {
      mark(text_at(event, "verdict"));
    } else if (what == "node-lost") {
      mark(text_at(event, "host") + ": " + text_at(event, "why"));
    } else if (what == "node-back") {
      mark(text_at(event, "host") + " joined");
    } else if (what == "signal") {
      mark(text_at(event, "signal"));
    } else if (what == "request") {
      mark(text_at(event, "kind") + " " + text_at(event, "what"));
    } else if (what == "run-ending") {
      mark(text_at(event, "what"));
      failed_ = text_at(event, "outcome") != "finished";
      enter(Phase::shutdown);
    } else if (what == "attempt-ended") {
      enter(Phase::restart);
    } else if (what == "end") {
      close_all("");
      enter(Phase::queue);  // of the next job of the run, if there is one
      over_ = true;
    }
  }

  void step(const Json& event, unsigned attempt) {
    TrainingStep done{.at = last_,
                      .step = static_cast<std::uint64_t>(std::max(0.0, number_at(event, "step"))),
                      .attempt = attempt};
    const auto reported = number_at(event, "seconds");
    const bool follows = step_at_ && !out_.steps.empty() && done.step > out_.steps.back().step;
    if (reported > 0) {
      done.seconds = reported;
    } else if (follows) {
      done.seconds = (last_ - *step_at_) / static_cast<double>(done.step - out_.steps.back().step);
    }
    if (phase_ != Phase::shutdown && phase_ != Phase::productive)
      enter(Phase::productive, phase_ == Phase::first_step ? last_ - std::max(0.0, reported) : last_);
    // What is done again was lost.
    for (auto before = out_.steps.rbegin(); before != out_.steps.rend() && before->step >= done.step;
         ++before)
      lose(*before);
    step_at_ = last_;
    progress_ = last_;
    first_of_attempt_[out_.steps.size()] = std::exchange(fresh_, false);
    out_.steps.push_back(done);
  }

  static void lose(TrainingStep& step) { step.lost = true; }

  void process(const std::string& what, const Json& event) {
    const auto name = text_at(event, "process");
    const auto role = role_of(name);
    if (what == "checkpoint") {
      if (at(event, "step").is_number()) saved_ = static_cast<std::uint64_t>(number_at(event, "step"));
      return mark("checkpoint " + text_at(event, "path"));
    }
    if (what == "process-unresponsive") return mark(name + ": " + text_at(event, "why"));
    if (what == "process-restart" && roles_[role].trains && phase_ != Phase::shutdown) enter(Phase::loading);
    if (what == "process-started") {
      auto& row = row_of(name);
      if (const auto host = text_at(event, "host"); !host.empty()) row.host = host;
      close(name, "");
      open(name, roles_[role].has_ready ? ProcessSpan::State::starting : ProcessSpan::State::up);
      if (roles_[role].trains && phase_ == Phase::loading) {
        enter(Phase::first_step);
        progress_ = last_;
      }
    } else if (what == "process-ready" || what == "process-fresh") {
      close(name, "");
      open(name, ProcessSpan::State::up);
    } else if (what == "process-stale") {
      close(name, "");
      open(name, ProcessSpan::State::stale);
    } else if (what == "process-ended") {
      close(name, text_at(event, "how"));
    } else if (what == "process-lost") {
      close(name, "lost: " + text_at(event, "why"));
    }
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

  void finish() {
    out_.over = over_;
    // What comes after "end" is the wait of a job that never came.
    if (!over_) {
      if (last_ > since_) out_.phases.push_back({phase_, {since_, last_}});
      out_.seconds = last_;
    } else {
      out_.seconds = since_;
    }
    close_all("");
    if (over_ && failed_ && saved_) {
      for (auto step = out_.steps.rbegin(); step != out_.steps.rend() && step->step > *saved_; ++step)
        lose(*step);
    }
    carve_lost();
    if (out_.steps.empty() && (over_ || !reports_steps_)) {
      // Nobody counts its steps: what the learners did is taken for training.
      for (auto& span : out_.phases)
        if (span.phase == Phase::first_step) span.phase = Phase::productive;
    }
    std::vector<double> known;
    for (std::size_t i = 0; i < out_.steps.size(); ++i) {
      if (first_of_attempt_[i] && out_.steps[i].seconds <= 0) continue;
      known.push_back(out_.steps[i].seconds);
    }
    const auto median = watch::median(std::move(known));
    for (auto& step : out_.steps) step.slow = median > 0 && step.seconds > kSlow * median;
  }

  /// Productive time that ended in a step which did not count.
  void carve_lost() {
    std::vector<Interval> lost;
    for (std::size_t i = 0; i < out_.steps.size(); ++i) {
      if (!out_.steps[i].lost) continue;
      const bool first = first_of_attempt_[i];
      const double begin = first || i == 0 ? out_.steps[i].at - out_.steps[i].seconds : out_.steps[i - 1].at;
      if (!lost.empty() && lost.back().end >= begin)
        lost.back().end = out_.steps[i].at;
      else
        lost.push_back({begin, out_.steps[i].at});
    }
    std::vector<PhaseSpan> out;
    const auto add = [&](Phase phase, double begin, double end) {
      if (end <= begin) return;
      if (!out.empty() && out.back().phase == phase && out.back().time.end >= begin)
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

  std::map<std::string, RoleFacts> roles_;
  bool reports_steps_ = false;
  bool began_ = false;
  Timeline out_;
  std::map<std::string, std::size_t> rows_;
  std::map<std::size_t, bool> first_of_attempt_;  ///< by index of the step
  Phase phase_ = Phase::preflight;
  double since_ = 0;
  double last_ = 0;
  double progress_ = 0;            ///< the last step, or the start of the learners
  std::optional<double> step_at_;  ///< of this attempt
  std::optional<std::uint64_t> saved_;
  bool fresh_ = true;
  bool over_ = false;
  bool failed_ = false;
};

TimelineBuilder::TimelineBuilder(const Json& plan, const Json& job)
    : state_(std::make_unique<State>(plan, job)) {}
TimelineBuilder::~TimelineBuilder() = default;

void TimelineBuilder::take(const Json& event, unsigned attempt) {
  state_->take(event, attempt);
}

Timeline TimelineBuilder::timeline(double now, bool alive) const {
  return State(*state_).finish(now, alive);
}

std::string_view title_of(Phase phase) {
  return kTitles[static_cast<std::size_t>(phase)];
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
  constexpr double kSecondsOfHour = 3600;
  return phase == Phase::queue ? 0 : in(phase)*gpus / kSecondsOfHour;
}

StepTimes Timeline::step_times() const {
  std::vector<double> known;
  StepTimes out;
  for (const auto& step : steps) {
    if (step.seconds > 0) known.push_back(step.seconds);
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
  struct Told {
    double at;
    const Json* event;
    unsigned attempt;
  };
  std::vector<Told> told;
  for (const auto& event : run.events)
    if (const auto at = time_of(event)) told.push_back({*at, &event, 0});
  for (const auto& attempt : run.attempts)
    for (const auto& step : attempt.steps)
      if (const auto at = time_of(step)) told.push_back({*at, &step, attempt.number});
  std::ranges::stable_sort(told, {}, &Told::at);
  TimelineBuilder builder(run.plan, run.job);
  for (const auto& one : told) builder.take(*one.event, one.attempt);
  return builder.timeline(now, alive);
}

}  // namespace nlaunch::record
