#include "watch/watcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace nlaunch::watch {
namespace {

/// Processes print the same step at slightly different times.
constexpr std::uint64_t kApart = 2;
constexpr double kToCatchUp = 10;  ///< seconds
/// Steps of the others before a process that has reported none is reported.
constexpr std::uint64_t kMissedAfter = 5;
/// Step durations kept per process.
constexpr std::size_t kKeptOfEach = 32;
/// Different totals tracked per process.
constexpr std::size_t kMostBars = 16;

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

std::string seconds_text(double seconds) {
  return seconds < 10 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.0f} s", seconds);
}

std::string text_of(const Stalled& stalled) {
  if (!stalled.began) {
    return fmt::format("no progress in the {} since the start", seconds_text(seconds_of(stalled.silent)));
  }
  const auto after = stalled.step ? fmt::format(", after step {}", *stalled.step) : std::string();
  return fmt::format("no progress for {}{}", seconds_text(seconds_of(stalled.silent)), after);
}

std::string text_of(const SlowStep& slow) {
  if (slow.ended) {
    return fmt::format("steps have slowed down: {} up to step {}, {} before", seconds_text(slow.seconds),
                       slow.step, seconds_text(slow.median));
  }
  return fmt::format("step {} has been running for {}: the median is {}", slow.step,
                     seconds_text(slow.seconds), seconds_text(slow.median));
}

}  // namespace

Watcher::Watcher(const plan::Watch& watch, std::vector<bool> watched) : watch_(watch), steps_(watch.slow) {
  const bool all = std::ranges::find(watched, true) == watched.end();
  for (const bool one : watched) processes_.push_back({.watched = all || one});
}

void Watcher::started(std::size_t index, Duration at) {
  auto& process = processes_[index];
  process = {.watched = process.watched, .running = true, .last = process.last};
  if (!process.watched) return;
  // After a restart it loads its model again.
  start_ = at;
  progress_.reset();
  stall_told_ = false;
}

void Watcher::ended(std::size_t index) {
  processes_[index].running = false;
}

bool Watcher::progress(std::size_t index, Duration at, std::optional<std::uint64_t> step,
                       std::optional<double> seconds, std::optional<std::uint64_t> total) {
  auto& process = processes_[index];
  if (!process.watched) return false;
  if (step && total) note_total(process, at, {*step, *total});
  if (step && process.step == step) return false;  // the same step, reported again
  progress_ = std::max(progress_.value_or(at), at);
  stall_told_ = false;
  if (!step) return false;
  // A progress bar per epoch, or a run that resumes from a checkpoint: it continues from a lower step.
  const bool again = process.last && *step < *process.last;
  process.step = process.last = step;
  process.step_at = at;
  if (seconds) process.seconds.push_back(*seconds);
  if (process.seconds.size() > kKeptOfEach) process.seconds.pop_front();
  return again ? steps_.again(at, *step) : steps_.done(at, *step, seconds);
}

void Watcher::note_total(Process& process, Duration at, const Reached& reached) {
  const auto same = [&](const Bar& bar) { return bar.reached.total == reached.total; };
  auto bar = std::ranges::find_if(process.bars, same);
  if (bar == process.bars.end()) {
    if (process.bars.size() == kMostBars) return;
    bar = process.bars.insert(bar, {reached, at, at});
  }
  bar->reached = reached;
  bar->last = at;
}

std::vector<Finding> Watcher::look(Duration now) {
  std::vector<Finding> found;
  if (const auto one = stalled(now)) {
    found.emplace_back(*one);
    return found;
  }
  if (const auto slow = steps_.look(now)) found.emplace_back(*slow);
  find_stragglers(now, found);
  return found;
}

std::optional<Stalled> Watcher::stalled(Duration now) {
  const bool going = std::ranges::any_of(
      processes_, [](const Process& process) { return process.watched && process.running; });
  if (!going || !start_ || stall_told_) return std::nullopt;
  const auto silent = now - progress_.value_or(*start_);
  if (silent < (progress_ ? watch_.stall : watch_.start)) return std::nullopt;
  stall_told_ = true;
  return Stalled{progress_.has_value(), silent, steps_.last()};
}

void Watcher::find_stragglers(Duration now, std::vector<Finding>& found) {
  std::vector<double> steps;
  std::size_t watched = 0;
  for (const auto& process : processes_) {
    watched += process.watched && process.running ? 1 : 0;
    if (!process.watched || !process.running || !process.step) continue;
    steps.push_back(static_cast<double>(*process.step));
  }
  // If only rank 0 reports, there is nothing to compare it with.
  if (steps.size() < 2 || 2 * steps.size() <= watched) return;
  const auto others = static_cast<std::uint64_t>(median(steps));
  const auto patience = std::max(kToCatchUp, 2 * median({steps_.seconds().begin(), steps_.seconds().end()}));
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    auto& process = processes_[i];
    if (!process.watched || !process.running) continue;
    const bool mute = !process.step && steps_.count() >= kMissedAfter;
    const bool behind =
        process.step && *process.step + kApart <= others && seconds_of(now - process.step_at) > patience;
    if (!mute && !behind) process.told = false;
    if ((!mute && !behind) || std::exchange(process.told, true)) continue;
    if (mute) found.emplace_back(Mute{i});
    if (behind) found.emplace_back(Behind{i, *process.step, others});
  }
}

Progress Watcher::summary() const {
  Progress progress{
      steps_.last(), steps_.count(), {steps_.seconds().begin(), steps_.seconds().end()}, {}, {}, {}};
  for (const auto& process : processes_) {
    progress.by_process.push_back(process.step);
    progress.own_seconds.emplace_back(process.seconds.begin(), process.seconds.end());
    // Training starts before its evaluations and takes longer than what comes before it.
    Duration longest{};
    for (const auto& bar : process.bars) longest = std::max(longest, bar.last - bar.first);
    const auto training = std::ranges::find_if(
        process.bars, [&](const Bar& bar) { return 2 * (bar.last - bar.first) >= longest; });
    progress.reached.push_back(training == process.bars.end() ? std::nullopt
                                                              : std::optional(training->reached));
  }
  return progress;
}

std::string text_of(const Finding& finding, const std::vector<std::string>& names) {
  return std::visit(Overloaded{[](const Stalled& stalled) { return text_of(stalled); },
                               [](const SlowStep& slow) { return text_of(slow); },
                               [&](const Behind& behind) {
                                 return fmt::format("{} is behind: at step {}, the others at {}",
                                                    names[behind.process], behind.step, behind.others);
                               },
                               [&](const Mute& mute) {
                                 return fmt::format("{} has reported no steps, but the others have",
                                                    names[mute.process]);
                               }},
                    finding);
}

}  // namespace nlaunch::watch
