#include "supervise/watching.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/exit_code.h"

namespace nlaunch::supervise {
namespace {

constexpr Duration kLook = std::chrono::seconds(1);
/// What the collection on each node may take (evidence/collection.h), and a moment for its answer.
constexpr Duration kForEvidence = std::chrono::seconds(33);

std::vector<bool> watched_of(const Rules& rules) {
  std::vector<bool> watched;
  for (const auto& process : rules.processes) watched.push_back(process.ends_run);
  return watched;
}

std::size_t nodes_of(const plan::Plan& plan, const Rules& rules) {
  std::set<std::uint32_t> nodes;
  for (const auto& process : rules.processes) nodes.insert(plan.processes[process.process].node);
  return nodes.size();
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

Watching::Watching(sys::Loop& loop, Options options)
    : loop_(loop), options_(std::move(options)), watcher_(*options_.plan.watch, watched_of(options_.rules)) {
  look();
}

Watching::~Watching() {
  stop();
}

void Watching::stop() {
  if (timer_) loop_.cancel(*timer_);
  if (deadline_) loop_.cancel(*deadline_);
  timer_.reset();
  deadline_.reset();
  awaited_ = 0;
}

void Watching::hear(const notice::Started& started) {
  watcher_.started(started.process, now());
}

void Watching::hear(const notice::Ended& ended) {
  watcher_.ended(ended.process);
}

void Watching::hear(const notice::Progress& progress) {
  std::optional<std::uint64_t> step;
  std::optional<double> seconds;
  if (progress.step >= 0) step = static_cast<std::uint64_t>(progress.step);
  if (progress.seconds >= 0) seconds = progress.seconds;
  watcher_.progress(progress.process, now(), step, seconds);
}

void Watching::hear(const notice::Collected& collected) {
  if (awaited_ == 0) return;
  if (!collected.trouble.empty()) options_.say("evidence: " + collected.trouble);
  if (--awaited_ == 0) judge();
}

void Watching::look() {
  timer_ = loop_.after(kLook, [this] {
    look();
    if (awaited_ > 0) return;  // what is collected now tells more
    for (const auto& finding : watcher_.look(now())) found(finding);
  });
}

void Watching::found(const watch::Finding& finding) {
  const auto text = watch::text_of(finding, options_.names);
  const Json fields{{"kind", kind_of(finding)}, {"at_ms", now().count()}, {"what", text}};
  findings_.push_back(fields);
  options_.record("watch", fields);
  if (std::holds_alternative<watch::Stalled>(finding)) return found_stall(text);
  options_.say(text);
}

void Watching::found_stall(const std::string& text) {
  if (options_.plan.watch->on_stall == OnStall::warn) return options_.say(text);
  options_.say(text + "; collecting evidence of all processes");
  stall_ = text;
  folder_ = (options_.evidence / utc_stamp()).string();
  awaited_ = nodes_of(options_.plan, options_.rules);
  deadline_ = loop_.after(kForEvidence, [this] {
    deadline_.reset();
    judge();
  });
  options_.collect({folder_});
}

void Watching::judge() {
  if (deadline_) loop_.cancel(*deadline_);
  deadline_.reset();
  awaited_ = 0;
  Judgement judgement;
  if (options_.judge) judgement = options_.judge(folder_, watcher_.summary());
  auto& finding = findings_.back();
  finding["evidence"] = folder_;
  finding["verdict"] = judgement.json;
  options_.record("evidence", {{"folder", folder_}, {"verdict", judgement.sentence}});
  if (!judgement.sentence.empty()) options_.say(judgement.sentence);
  for (const auto& line : judgement.lines) options_.say("  " + line);
  options_.say("evidence: " + folder_);
  if (options_.plan.watch->on_stall == OnStall::dump) return;
  const auto reason = judgement.sentence.empty() ? stall_ : fmt::format("{}: {}", stall_, judgement.sentence);
  options_.abort({reason, exit_code::stalled, judgement.fault});
}

Json Watching::summary() const {
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
  return out;
}

Duration Watching::now() const {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start_);
}

}  // namespace nlaunch::supervise
