#include "session/live_run.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "launch/bind/node_addresses.h"
#include "launch/run_dir/run_folder.h"
#include "session/run_view.h"
#include "supervise/events.h"
#include "supervise/run_attempt.h"
#include "sys/http_server.h"

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

/// The newest sample of a node's GPUs; null: there is none.
Json newest_sample(const fs::path& file) {
  const auto lines = text::split(tail_of(file), '\n');
  for (auto line = lines.rbegin(); line != lines.rend(); ++line)
    if (auto sample = parse_ordered_json(*line); sample.is_object()) return sample;
  return nullptr;
}

/// The node whose samples are those of a process; empty: there are none. A run on one machine has one such
/// file.
std::string sampled_host(const fs::path& samples, std::string node) {
  if (node.empty())
    for (const auto& name : sys::names_in(samples)) node = fs::path(name).stem();
  return node.contains('/') ? "" : node;
}

const Json* find_gpu(const Json& sample, std::string_view bus_id) {
  const auto& gpus = record::at(sample, "gpus");
  if (!gpus.is_array() || bus_id.empty()) return nullptr;
  for (const auto& gpu : gpus)
    if (record::text_at(gpu, "bus_id") == bus_id) return &gpu;
  return nullptr;
}

std::optional<double> figure_of(const Json& gpu, std::string_view key) {
  const auto& figure = record::at(gpu, key);
  return figure.is_number() ? std::optional(figure.get<double>()) : std::nullopt;
}

/// Writes the ports that the processes of a node got into the plan. `index`: of its processes, by name.
void take_bound_ports(const Json& bound, const std::map<std::string, std::size_t>& index, plan::Plan& plan) {
  const auto& processes = record::at(bound, "processes");
  if (!processes.is_array()) return;
  for (const auto& process : processes) {
    const auto found = index.find(record::text_at(process, "name"));
    const auto& ports = record::at(process, "ports");
    if (found == index.end() || !ports.is_array()) continue;
    auto& own = plan.processes[found->second].ports;
    for (std::size_t i = 0; i < std::min(own.size(), ports.size()); ++i)
      if (ports[i].is_number_unsigned()) own[i] = ports[i].get<std::uint16_t>();
  }
}

const plan::Role* first_trained(const plan::Plan& plan) {
  const auto role = std::ranges::find(plan.roles, RoleKind::learner, &plan::Role::kind);
  return role == plan.roles.end() ? nullptr : &*role;
}

std::string progress_of(const plan::Plan& plan) {
  return plan.watch ? plan.watch->progress : "";
}

void set_state(report::TopProcess& process, const record::ProcessRow& row, bool has_ready, double now) {
  using State = record::ProcessSpan::State;
  process.node = row.host;
  if (row.spans.empty()) return;
  const auto& last = row.spans.back();
  process.in_state = now - last.time.begin;
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

std::chrono::steady_clock::time_point next_reading(std::chrono::steady_clock::time_point begin) {
  using Clock = std::chrono::steady_clock;
  constexpr int kShare = 50;
  return begin + std::max<Clock::duration>(std::chrono::seconds(1), kShare * (Clock::now() - begin));
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
  const auto version = version_of(*folder / "plan.json");
  auto plan = launch::plan_of_run(*folder);
  if (!plan) return std::unexpected(plan.error());
  LiveRun opened(*folder, std::move(*plan), record::read_json(*folder / "plan.json"));
  opened.version_ = version;
  return opened;
}

LiveRun::Version LiveRun::version_of(const fs::path& file) {
  struct stat info {};
  if (::lstat(file.c_str(), &info) != 0) return {};
  return {info.st_ino, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
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
    gpus_.clear();
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
  if (version_of(folder_ / "plan.json") != version_)
    if (auto again = open(folder_.parent_path(), folder_)) *this = std::move(*again);
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
    set_state(out[found->second], row, ready.given() && !ready.exited, timeline.seconds);
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
    const bool ready = up || process.state == "exited with code 0";
    auto& shown = out[stage];
    ++shown.of;
    shown.ready += ready ? 1 : 0;
    if (ready || !process.alive || shown.awaited) continue;
    shown.awaited = i;
    shown.timeout = watch::seconds_of(plan_.role_of(plan_.processes[i]).ready.timeout);
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

const LiveRun::Gpus& LiveRun::gpus_of(const std::string& host) {
  const auto [found, is_new] = gpus_.try_emplace(host);
  if (!is_new && !found->second.empty()) return found->second;
  const auto file = in_attempt("", fmt::format("bound.{}.json", host));
  const auto bound = file ? record::read_json(*file) : Json();
  const auto& gpus = record::at(bound, "gpus");
  if (gpus.is_array())
    for (const auto& gpu : gpus)
      found->second.push_back({record::text_at(gpu, "bus_id"), record::text_at(gpu, "uuid")});
  return found->second;
}

/// From the newest sample of its node.
void LiveRun::add_gpus(report::TopProcess& process, const plan::Process& planned) {
  const auto samples = in_attempt("gpu-use", "");
  const auto host = samples ? sampled_host(*samples, process.node) : "";
  if (host.empty()) return;
  const auto& known = gpus_of(host);
  const auto sample = newest_sample(*samples / (host + ".jsonl"));
  const auto add = [](std::optional<double>& to, const Json& gpu, std::string_view key) {
    if (const auto figure = figure_of(gpu, key)) to = to.value_or(0) + *figure;
  };
  std::size_t busy = 0;
  for (const auto number : plan::gpus_in_reach(plan_, planned)) {
    if (number >= known.size()) continue;
    const auto* gpu = find_gpu(sample, known[number].bus_id);
    if (gpu == nullptr) continue;
    add(process.busy, *gpu, "busy");
    add(process.power, *gpu, "power");
    add(process.memory_used, *gpu, "memory_used");
    add(process.memory_total, *gpu, "memory_total");
    ++busy;
  }
  if (process.busy && busy > 0) *process.busy /= static_cast<double>(busy);
}

std::vector<report::GpuSample> LiveRun::gpus(const report::TopView& view) {
  // The clocks of nodes differ; a sampler that has died leaves its last sample behind.
  constexpr double kStale = 300;
  const auto samples = in_attempt("gpu-use", "");
  if (!samples || plan_.node.cpu_slots) return {};
  std::map<std::string, std::map<std::size_t, std::vector<std::string>>> users;  // by host and number
  for (std::size_t i = 0; i < view.processes.size(); ++i) {
    const auto& process = view.processes[i];
    if (!process.alive) continue;
    const auto host = sampled_host(*samples, process.node);
    for (const auto number : plan::gpus_in_reach(plan_, plan_.processes[i]))
      if (!host.empty()) users[host][number].push_back(process.name);
  }
  std::vector<report::GpuSample> out;
  for (auto& [host, of_host] : users) {
    const auto& known = gpus_of(host);
    const auto sample = newest_sample(*samples / (host + ".jsonl"));
    if (std::abs(unix_now() - record::number_at(sample, "at")) > kStale) continue;
    for (auto& [number, processes] : of_host) {
      const auto* gpu = number < known.size() ? find_gpu(sample, known[number].bus_id) : nullptr;
      if (gpu == nullptr) continue;
      out.push_back({.host = host,
                     .number = number,
                     .uuid = known[number].uuid,
                     .bus_id = known[number].bus_id,
                     .processes = std::move(processes),
                     .busy = figure_of(*gpu, "busy"),
                     .power = figure_of(*gpu, "power"),
                     .memory_used = figure_of(*gpu, "memory_used"),
                     .memory_total = figure_of(*gpu, "memory_total")});
    }
  }
  return out;
}

/// How processes reach each other in the present attempt.
struct LiveRun::Addresses {
  plan::Plan plan;  ///< with the ports that its processes got; 0: not known
  launch::NodeAddresses nodes;
};

/// Nothing: they are not known yet.
std::optional<LiveRun::Addresses> LiveRun::addresses() const {
  constexpr std::uint64_t kLargest = 64U << 20U;
  Addresses out{plan_, launch::one_machine("")};
  if (plan_.all_nodes() > 1) {
    const auto file = in_attempt("", "nodes.json");
    if (!file) return std::nullopt;
    const auto text = sys::read_regular_file(*file, kLargest, sys::Links::refused);
    auto nodes =
        text ? launch::read_nodes(*text) : Result<launch::NodeAddresses>(std::unexpected(text.error()));
    if (!nodes || !launch::take_ports(out.plan, *nodes)) return std::nullopt;
    out.nodes = std::move(*nodes);
    return out;
  }
  const auto attempt = in_attempt("", "");
  if (!attempt) return std::nullopt;
  for (auto& process : out.plan.processes) std::ranges::fill(process.ports, std::uint16_t{0});
  for (const auto& name : sys::names_in(*attempt))
    if (name.starts_with("bound.") && name.ends_with(".json"))
      take_bound_ports(record::read_json(*attempt / name), index_, out.plan);
  return out;
}

std::vector<report::ScrapeTarget> LiveRun::targets(const report::TopView& view) const {
  std::vector<report::ScrapeTarget> out;
  std::optional<Addresses> bound;
  for (std::size_t i = 0; i < view.processes.size(); ++i) {
    const auto& process = view.processes[i];
    const auto& planned = plan_.processes[i];
    const auto& role = plan_.role_of(planned);
    const auto replica = plan::in_replica(role, planned);
    const auto port =
        static_cast<std::size_t>(std::ranges::find(role.ports, role.metrics) - role.ports.begin());
    const bool serves = !role.metrics.empty() && port < planned.ports.size() && replica.rank == 0;
    if (!serves || !process.alive || process.state == "starting") continue;
    if (!bound) bound = addresses();
    if (!bound) return {};
    const auto number = bound->plan.processes[i].ports[port];
    if (number == 0) continue;
    out.push_back(
        {.address = sys::text_of({launch::address_of(bound->nodes, planned), std::to_string(number)}),
         .process = process.name,
         .role = role.name,
         .replica = std::to_string(replica.index)});
  }
  return out;
}

}  // namespace nlaunch::session
