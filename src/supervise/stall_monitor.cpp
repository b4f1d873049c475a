#include "supervise/stall_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/exit_code.h"

namespace nlaunch::supervise {
namespace {

constexpr Duration kLook = std::chrono::seconds(1);
/// A program with thousands of steps per second must not fill the disk with them.
constexpr Duration kStepsApart = std::chrono::milliseconds(100);

std::vector<bool> watched_of(const Rules& rules) {
  std::vector<bool> watched;
  for (const auto& process : rules.processes) watched.push_back(process.ends_run);
  return watched;
}

std::string_view kind_of(const watch::Finding& finding) {
  constexpr std::string_view kKinds[] = {"stalled", "slow", "behind", "mute"};
  return kKinds[finding.index()];
}

double share(std::vector<double> values, double part) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, at);
  return *at;
}

}  // namespace

StallMonitor::StallMonitor(sys::Loop& loop, Options options)
    : loop_(loop), options_(std::move(options)), watcher_(*options_.plan.watch, watched_of(options_.rules)) {
  look();
}

StallMonitor::~StallMonitor() {
  stop();
}

void StallMonitor::stop() {
  tell_step();
  if (timer_) loop_.cancel(*timer_);
  timer_.reset();
}

void StallMonitor::on(const process_event::Started& started) {
  watcher_.started(started.process, now());
}

void StallMonitor::on(const process_event::Ended& ended) {
  watcher_.ended(ended.process);
}

void StallMonitor::on(const process_event::Progress& progress) {
  std::optional<std::uint64_t> step;
  std::optional<double> seconds;
  if (progress.step >= 0) step = static_cast<std::uint64_t>(progress.step);
  if (progress.seconds >= 0) seconds = progress.seconds;
  std::optional<std::uint64_t> total;
  if (progress.total >= 0) total = static_cast<std::uint64_t>(progress.total);
  const auto at = now();
  if (!watcher_.progress(progress.process, at, step, seconds, total) || !options_.step) return;
  pending_step_ = {*step, seconds};
  if (!step_told_ || at - *step_told_ >= kStepsApart) tell_step();
}

/// The newest one, so that the last step of a run is always told.
void StallMonitor::tell_step() {
  if (!pending_step_) return;
  const auto [step, seconds] = *std::exchange(pending_step_, std::nullopt);
  step_told_ = now();
  options_.step(step, seconds);
}

void StallMonitor::look() {
  timer_ = loop_.after(kLook, [this] {
    look();
    tell_step();
    if (options_.investigation.goes_on()) return;  // the evidence being collected is more useful
    for (const auto& finding : watcher_.look(now())) found(finding);
  });
}

void StallMonitor::found(const watch::Finding& finding) {
  const auto text = watch::text_of(finding, options_.names);
  const Json fields{{"kind", kind_of(finding)}, {"at_ms", now().count()}, {"what", text}};
  findings_.push_back(fields);
  options_.record("watch", fields);
  if (std::holds_alternative<watch::Stalled>(finding)) return found_stall(text);
  options_.say(text);
}

void StallMonitor::found_stall(const std::string& text) {
  if (options_.plan.watch->on_stall == OnStall::warn) return options_.say(text);
  options_.say(text + "; collecting evidence from all processes");
  options_.investigation.begin([this, text](const std::string& folder, const Judgement& judgement) {
    judged(text, folder, judgement);
  });
}

void StallMonitor::judged(const std::string& stall, const std::string& folder, const Judgement& judgement) {
  auto& finding = findings_.back();
  finding["evidence"] = folder;
  finding["verdict"] = judgement.json;
  if (options_.plan.watch->on_stall == OnStall::dump) return;
  const auto reason = judgement.sentence.empty() ? stall : fmt::format("{}: {}", stall, judgement.sentence);
  options_.abort({reason, exit_code::stalled, judgement.fault});
}

Json StallMonitor::summary() const {
  const auto progress = watcher_.summary();
  Json out{{"last_step", progress.last_step ? Json(*progress.last_step) : Json(nullptr)},
           {"steps", progress.steps},
           {"findings", findings_}};
  if (!progress.seconds.empty()) {
    out["step_seconds"] = {{"median", watch::median(progress.seconds)},
                           {"p10", share(progress.seconds, 0.1)},
                           {"p90", share(progress.seconds, 0.9)},
                           {"max", std::ranges::max(progress.seconds)}};
  }
  auto& by_process = out["by_process"] = Json::object();
  for (std::size_t i = 0; i < progress.by_process.size(); ++i) {
    if (progress.by_process[i]) by_process[options_.names[i]] = *progress.by_process[i];
  }
  for (std::size_t i = 0; i < progress.reached.size(); ++i) {
    if (progress.reached[i]) out["totals"][options_.names[i]] = progress.reached[i]->total;
  }
  return out;
}

Duration StallMonitor::now() const {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start_);
}

}  // namespace nlaunch::supervise
