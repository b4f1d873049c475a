#include "session/live_run.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "launch/run_dir/run_folder.h"
#include "session/run_view.h"
#include "supervise/events.h"
#include "supervise/run_attempt.h"

namespace nlaunch::session {
namespace {

namespace fs = std::filesystem;
using record::Json;

constexpr std::uint64_t kMost = 1U << 20U;  ///< bytes of a log that are read at a time
constexpr std::uint64_t kTail = 4096;       ///< bytes of a log in which its last line is looked for

std::string read_at(int fd, std::uint64_t from, std::uint64_t bytes) {
  std::string out(bytes, '\0');
  std::uint64_t got = 0;
  while (got < bytes) {
    const auto count = ::pread(fd, out.data() + got, bytes - got, static_cast<off_t>(from + got));
    if (count <= 0) break;
    got += static_cast<std::uint64_t>(count);
  }
  out.resize(got);
  return out;
}

std::uint64_t size_of(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

const plan::Role* first_trained(const plan::Plan& plan) {
  const auto role = std::ranges::find(plan.roles, RoleKind::learner, &plan::Role::kind);
  return role == plan.roles.end() ? nullptr : &*role;
}

std::string progress_of(const plan::Plan& plan) {
  return plan.watch ? plan.watch->progress : "";
}

void set_state(report::TopProcess& process, const record::ProcessRow& row, bool has_ready) {
  using State = record::ProcessSpan::State;
  process.node = row.host;
  if (row.spans.empty()) return;
  const auto& last = row.spans.back();
  process.alive = last.end.empty();
  if (!process.alive) {
    process.state = last.end;
    process.failed = !record::exited_well(last.end);
    return;
  }
  process.state = last.state == State::starting ? "starting"
                  : last.state == State::stale  ? "stale"
                  : has_ready                   ? "ready"
                                                : "running";
}

}  // namespace

std::string tail_of(const fs::path& file) {
  const auto fd = sys::open_regular_file(file, sys::Links::refused);
  if (!fd) return "";
  const auto size = size_of(fd->get());
  const auto from = size > kTail ? size - kTail : 0;
  auto text = read_at(fd->get(), from, size - from);
  if (from > 0) text.erase(0, std::min(text.size(), text.find_first_of("\r\n") + 1));
  return text;
}

std::string GrowingFile::read(bool newest) {
  if (!fd_) {
    auto opened = sys::open_regular_file(path_, sys::Links::refused);
    if (!opened) return "";
    fd_ = std::move(*opened);
  }
  const auto size = size_of(fd_.get());
  if (size <= read_) return "";
  if (newest && size - read_ > kMost) read_ = size - kMost;
  auto text = read_at(fd_.get(), read_, size - read_);
  read_ += text.size();
  return text;
}

std::string GrowingFile::more() {
  return read(false);
}

std::string GrowingFile::newest() {
  return read(true);
}

std::vector<Json> GrowingLines::more() {
  half_ += file_.more();
  const auto end = half_.rfind('\n');
  if (end == std::string::npos) return {};
  std::vector<Json> out;
  for (const auto& line : text::split(half_.substr(0, end), '\n'))
    if (auto object = parse_ordered_json(line); object.is_object()) out.push_back(std::move(object));
  half_.erase(0, end + 1);
  return out;
}

Result<LiveRun> LiveRun::open(const std::string& runs_dir, const std::string& run) {
  const auto folder = find_run(runs_dir, run);
  if (!folder) return std::unexpected(folder.error());
  auto plan = launch::plan_of_run(*folder);
  if (!plan) return std::unexpected(plan.error());
  return LiveRun(*folder, std::move(*plan), record::read_json(*folder / "plan.json"));
}

LiveRun::LiveRun(fs::path folder, plan::Plan plan, const Json& plan_json)
    : folder_(std::move(folder)),
      plan_(std::move(plan)),
      builder_(plan_json, record::read_json(folder_ / "job.json")),
      events_(folder_ / "events.jsonl"),
      progress_(progress_of(plan_)) {
  for (std::size_t i = 0; i < plan_.processes.size(); ++i) index_[plan_.name_of(plan_.processes[i])] = i;
  if (plan_.watch) metrics_ = std::make_unique<bench::MetricReader>(plan_.watch->metrics);
}

void LiveRun::note(const Json& event) {
  const auto what = record::text_at(event, "event");
  if (what == "run" || what == "taken-over") {
    run_ = event;
    outcome_.clear();
    walltime_end_ = supervise::parse_utc(record::text_at(event, "walltime_end"));
  } else if (what == "attempt-started") {
    const auto& number = record::at(event, "attempt");
    const auto attempt = number.is_number_unsigned() ? number.get<std::uint64_t>() : 0;
    if (attempt > UINT32_MAX || (attempt == attempt_ && !steps_.empty())) return;
    attempt_ = static_cast<unsigned>(attempt);
    log_.reset();
    bus_ids_.clear();
    if (const auto file = in_attempt("", "steps.jsonl")) steps_.try_emplace(attempt_, *file);
  } else if (what == "end") {
    outcome_ = record::text_at(event, "outcome");
  } else if (what == "goes-on") {
    outcome_ = fmt::format("waiting for job {} to continue", record::text_at(event, "job"));
  }
}

void LiveRun::read_events() {
  const auto events = events_.more();
  for (const auto& event : events) note(event);
  std::map<unsigned, std::vector<Json>> steps;
  for (auto& [number, file] : steps_) steps[number] = file.more();
  std::vector<record::TimelineBuilder::AttemptSteps> by_attempt;
  for (const auto& [number, more] : steps) by_attempt.push_back({number, more});
  builder_.take(events, by_attempt);
}

void LiveRun::read_metrics() {
  if (!metrics_ || plan_.watch->metrics.empty() || steps_.empty()) return;
  const auto* role = first_trained(plan_);
  if (role == nullptr) return;
  if (const auto log = log_of(role->name + ".0"); log && !log_) log_.emplace(*log);
  if (!log_) return;
  metrics_->feed(log_->newest());
}

report::TopView LiveRun::refresh() {
  constexpr std::size_t kRecent = 256;
  read_events();
  read_metrics();
  report::TopView out{.name = plan_.name, .run = id(), .site = plan_.site, .state = {}, .attempt = attempt_};
  out.alive = outcome_.empty() && run_.is_object() && is_led(run_);
  if (!outcome_.empty())
    out.state = outcome_;
  else if (!run_.is_object())
    out.state = "not started";
  else
    out.state = out.alive ? "running" : kDied;
  out.timeline = builder_.timeline(unix_now(), out.alive);
  out.step_times = out.timeline.step_times();
  const auto& steps = out.timeline.steps;
  for (auto step = steps.end() - static_cast<std::ptrdiff_t>(std::min(kRecent, steps.size()));
       step != steps.end(); ++step)
    if (step->seconds > 0) out.step_seconds.push_back(step->seconds);
  if (metrics_) out.metrics = metrics_->values();
  if (walltime_end_ && out.alive) out.walltime_left = *walltime_end_ - unix_now();
  out.processes = processes(out.timeline);
  for (auto& process : out.processes) {
    if (out.alive || !process.alive) continue;
    process.alive = false;
    process.state = "gone";
  }
  out.stages = stages(out.processes);
  return out;
}

std::vector<report::TopProcess> LiveRun::processes(const record::Timeline& timeline) const {
  std::vector<report::TopProcess> out;
  for (const auto& process : plan_.processes) {
    std::string gpus;
    for (const auto gpu : process.gpus) gpus += fmt::format("{}{}", gpus.empty() ? "" : ",", gpu);
    const bool spawned = !plan_.role_of(process).spawned_by.empty();
    out.push_back({.name = plan_.name_of(process),
                   .gpus = std::move(gpus),
                   .state = spawned ? "spawned by " + text::join(plan_.role_of(process).spawned_by, ", ")
                                    : "not started"});
  }
  for (const auto& row : timeline.processes) {
    const auto found = index_.find(row.name);
    if (found == index_.end()) continue;
    const auto& ready = plan_.role_of(plan_.processes[found->second]).ready;
    set_state(out[found->second], row, ready.given() && !ready.exited);
  }
  return out;
}

std::vector<report::TopStage> LiveRun::stages(const std::vector<report::TopProcess>& processes) const {
  std::vector<report::TopStage> out;
  std::vector<std::size_t> stage_of(plan_.roles.size(), plan_.stages.size());
  for (const auto& stage : plan_.stages) {
    auto& shown = out.emplace_back();
    for (const auto role : stage) {
      shown.roles += (shown.roles.empty() ? "" : ", ") + plan_.roles[role].name;
      stage_of[role] = out.size() - 1;
    }
  }
  for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
    const auto stage = stage_of[plan_.processes[i].role];
    if (stage >= out.size() || !plan_.role_of(plan_.processes[i]).spawned_by.empty()) continue;
    const auto& process = processes[i];
    const bool up = process.alive && process.state != "starting";
    ++out[stage].of;
    out[stage].ready += up || process.state == "exited with code 0" ? 1 : 0;
  }
  return out;
}

/// A path below the attempt. Nothing where one of its directories is a link: somebody may have put it there
/// to show another's files.
std::optional<fs::path> LiveRun::in_attempt(std::string_view directory, const std::string& name) const {
  auto path = supervise::attempt_folder(folder_, attempt_);
  if (!sys::is_folder_itself(path)) return std::nullopt;
  if (!directory.empty()) path /= directory;
  return sys::is_folder_itself(path) ? std::optional(path / name) : std::nullopt;
}

std::optional<fs::path> LiveRun::log_of(const std::string& process) const {
  return in_attempt("logs", process + ".log");
}

void LiveRun::look_at(report::TopProcess& process) {
  const auto found = index_.find(process.name);
  if (found == index_.end()) return;
  const auto& planned = plan_.processes[found->second];
  const auto& role = plan_.role_of(planned);
  const bool trains = role.kind == RoleKind::learner || role.ends_run;
  const auto log = log_of(process.name);
  std::string lines = log ? tail_of(*log) : "";
  std::ranges::replace(lines, '\r', '\n');
  for (const auto& line : text::split(lines, '\n')) {
    const auto shown = text::trim(line);
    if (shown.empty()) continue;
    process.last_line = text::without_escapes(shown);
    if (!trains) continue;
    if (const auto reported = progress_.match(line); reported && reported->step)
      process.step = reported->step;
  }
  if (process.alive && !planned.gpus.empty() && !plan_.node.cpu_slots) add_gpus(process, planned);
}

const LiveRun::BusIds& LiveRun::bus_ids(const std::string& host) {
  const auto [found, is_new] = bus_ids_.try_emplace(host);
  if (!is_new && !found->second.empty()) return found->second;
  const auto file = in_attempt("", fmt::format("bound.{}.json", host));
  const auto bound = file ? record::read_json(*file) : Json();
  const auto& gpus = record::at(bound, "gpus");
  if (gpus.is_array())
    for (const auto& gpu : gpus) found->second.push_back(record::text_at(gpu, "bus_id"));
  return found->second;
}

/// From the newest sample of its node.
void LiveRun::add_gpus(report::TopProcess& process, const plan::Process& planned) {
  const auto samples = in_attempt("gpu-use", "");
  if (!samples) return;
  auto host = process.node;
  if (host.empty()) {
    // A run on one machine has one such file.
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(*samples, error)) host = entry.path().stem();
  }
  if (host.empty()) return;
  const auto& ids = bus_ids(host);
  const auto lines = text::split(tail_of(*samples / (host + ".jsonl")), '\n');
  Json sample;
  for (auto line = lines.rbegin(); line != lines.rend() && !sample.is_object(); ++line)
    sample = line->empty() ? Json() : parse_ordered_json(*line);
  const auto& gpus = record::at(sample, "gpus");
  if (!gpus.is_array()) return;
  const auto add = [](std::optional<double>& to, const Json& gpu, std::string_view key) {
    if (record::at(gpu, key).is_number()) to = to.value_or(0) + record::number_at(gpu, key);
  };
  std::size_t busy = 0;
  for (const auto number : plan::gpus_in_reach(plan_, planned)) {
    if (number >= ids.size()) continue;
    for (const auto& gpu : gpus) {
      if (record::text_at(gpu, "bus_id") != ids[number]) continue;
      add(process.busy, gpu, "busy");
      add(process.power, gpu, "power");
      add(process.memory_used, gpu, "memory_used");
      add(process.memory_total, gpu, "memory_total");
      ++busy;
    }
  }
  if (process.busy && busy > 0) *process.busy /= static_cast<double>(busy);
}

}  // namespace nlaunch::session
