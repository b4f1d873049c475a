#include "supervise/local_backend.h"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>

#include "base/json.h"
#include "base/text.h"
#include "plan/container.h"
#include "plan/fixed_ports.h"
#include "supervise/error_file.h"
#include "supervise/outcome.h"
#include "supervise/signals.h"
#include "sys/files.h"
#include "sys/spawn.h"

namespace nlaunch::supervise {
namespace {

constexpr Duration kLookAtProgress = std::chrono::milliseconds(250);
constexpr Duration kLookAtFiles = std::chrono::seconds(2);
/// A killed process that holds a GPU may need seconds until the driver has released it.
constexpr Duration kKillLimit = std::chrono::seconds(20);
/// For a program or a server to accept changed addresses.
constexpr Duration kToBeTold = std::chrono::seconds(10);
/// For the report that a process has the current weights.
constexpr Duration kForEver = std::chrono::hours(24 * 365);
constexpr std::size_t kLastLines = 20;
constexpr std::size_t kLongestLastLine = 500;

/// A URL of a check that cannot be parsed; else empty.
std::string problem_with(const plan::BoundProcess& bound) {
  if (const auto problem = supervise::problem_with(bound.ready); !problem.empty())
    return "readiness check: " + problem;
  const auto url = [](std::string_view what, const std::string& text) {
    const auto parsed = sys::parse_http_url(text);
    return text.empty() || parsed ? std::string() : fmt::format("{}: {}", what, parsed.error());
  };
  std::vector<std::string> problems;
  if (bound.alive) {
    problems.push_back(url("liveness check", bound.alive->http));
    if (const auto& tcp = bound.alive->tcp; !tcp.empty() && !sys::parse_endpoint(tcp))
      problems.push_back(fmt::format("liveness check: {}", sys::parse_endpoint(tcp).error()));
  }
  if (bound.throughput) problems.push_back(url("throughput", bound.throughput->metrics));
  if (bound.fresh) problems.push_back(url("fresh", bound.fresh->http));
  if (bound.on_change) problems.push_back(url("on_change", bound.on_change->post));
  std::erase(problems, "");
  return problems.empty() ? "" : problems.front();
}

std::vector<pid_t> run_pids() {
  std::vector<pid_t> pids;
  for (const auto& id : sys::own_descendants()) pids.push_back(id.pid);
  return pids;
}

}  // namespace

/// The state of one process on this node.
struct LocalBackend::Live {
  const plan::BoundProcess* bound = nullptr;
  std::string role{};
  std::size_t output = 0;     ///< index into the Output
  sys::Subtree subtree{};     ///< leader 0: not running
  pid_t pid = 0;              ///< of its last start; 0: never started
  bool needs_replay = false;  ///< see replay_events
  bool ended = false;         ///< its wait status is known
  bool killed = false;        ///< by nlaunch, with its descendants
  sys::WaitStatus status{};
  Duration started_at{};
  Duration ended_at{};
  std::vector<std::string> killed_parts{};        ///< since it was started; see Ends
  std::optional<process_event::Raised> raised{};  ///< what ended it; told before its end
  FileStamp file{};                               ///< its readiness file, before it was started
  FileStamp heartbeat{};                          ///< its heartbeat file, when last seen
  std::shared_ptr<LineWatch> line{};              ///< for its readiness, since it was started
  std::unique_ptr<Readiness> readiness{};
  std::unique_ptr<NotReadySearch> search{};        ///< once it was not ready in time
  std::unique_ptr<Liveness> liveness{};            ///< once it is ready
  std::unique_ptr<ThroughputReader> throughput{};  ///< once it is ready
  std::shared_ptr<LineWatch>
      fresh_line{};  ///< for the line that shows that it has the weights, since it was started
  std::unique_ptr<Readiness> fresh{};  ///< while it is stale

  /// The process is about to exit: what its checks find no longer matters.
  void end_checks() {
    readiness.reset();
    search.reset();
    liveness.reset();
    throughput.reset();
  }

  /// Resolves a path relative to its working directory.
  [[nodiscard]] std::string absolute(const std::string& path) const {
    return path.empty() || path.starts_with('/') ? path : fmt::format("{}/{}", bound->workdir, path);
  }

  [[nodiscard]] plan::Ready ready() const {
    auto ready = bound->ready;
    ready.file = absolute(ready.file);
    return ready;
  }

  /// For `command`, started in the same way as the process.
  [[nodiscard]] sys::SpawnRequest request(const std::vector<std::string>& command,
                                          plan::Variables more = {}) const {
    sys::SpawnRequest request;
    request.tracer = ::getpid();  // may trace it when it hangs
    // Its children allow the same if they have libnlaunch-scope.so.
    if (!bound->preload.empty()) more.emplace_back("NLAUNCH_TRACER", std::to_string(request.tracer));
    auto start = plan::start_of(*bound, command, more);
    request.argv = std::move(start.argv);
    request.env = std::move(start.env);
    request.cwd = bound->workdir;
    request.cpus = bound->cpus;
    return request;
  }
};

LocalBackend::LocalBackend(sys::Loop& loop, const Rules& rules, Options options, Tell tell)
    : loop_(loop), options_(std::move(options)), tell_(std::move(tell)), cleaner_(loop) {
  if (const auto made = sys::make_private_folder(options_.logs); !made) {
    this->tell(process_event::Trouble{made.error().first_message()});
  }
  std::vector<std::string> names;
  for (ProcessIndex process = 0; process < rules.processes.size(); ++process) {
    const auto bound = std::ranges::find(options_.node.processes, rules.processes[process].process,
                                         &plan::BoundProcess::process);
    if (bound == options_.node.processes.end()) continue;
    live_[process] = {.bound = &*bound, .role = rules.processes[process].role, .output = names.size()};
    names.push_back(bound->name);
  }
  Output::Options output{
      options_.logs,
      options_.node.masker,
      options_.terminal,
      options_.color,
      options_.name_width,
      [this](const std::string& sentence) { this->tell(process_event::Trouble{sentence}); },
      [this](std::size_t index, std::string_view bytes) { readers_[index].feed(bytes); }};
  output_ = std::make_unique<Output>(loop_, std::move(output), names);
  pattern_.emplace(options_.watch ? options_.watch->progress : "");
  if (!options_.saved.empty()) saved_ = std::make_unique<RE2>(options_.saved);
  for (const auto& [process, live] : live_) {
    const bool counts = options_.watch && live.bound->heartbeat.empty();
    readers_.emplace_back(*pattern_, counts, rules.processes[process].saves ? saved_.get() : nullptr);
  }
  look_at_files();
  look_at_progress();
  watch_children();
  if (options_.hooks.tick) tick();
  if (options_.hooks.beside)
    beside_ = std::make_unique<sys::ExecCheck>(loop_, *options_.hooks.beside, [](const auto&) {});
}

LocalBackend::~LocalBackend() = default;

template <class What>
void LocalBackend::tell(What what) {
  tell_({since_start(), std::move(what)});
}

void LocalBackend::look_at_files() {
  loop_.after(kLookAtFiles, [this] {
    output_->check();
    shared_memory_.note(sys::own_descendants);
    keep_error_folder();
    look_at_files();
  });
}

void LocalBackend::watch_children() {
  const auto roots = [this] {
    std::map<ProcessIndex, pid_t> leaders;
    for (const auto& [process, live] : live_) {
      if (live.subtree.leader > 0 && !live.ended) leaders.emplace(process, live.subtree.leader);
    }
    return leaders;
  };
  children_ = std::make_unique<ChildWatch>(
      loop_, roots, [this](ProcessIndex root, const Child& child, std::optional<sys::WaitStatus> status) {
        // How it ended is lost on older kernels: the end of one that has a name is worth knowing all the
        // same.
        const bool well = status ? status->ok() : !sys::is_telling_title(child.title);
        const bool matters = (!well || is_part_of_server(child.title)) && !live_.at(root).killed;
        if (!matters) return;
        if (is_part_of_server(child.title) && status && status->by_signal() && !was_asked_to_end(*status))
          live_.at(root).killed_parts.push_back(
              fmt::format("{} {} {} into the run", child.str(), status->str(), in_seconds(since_start())));
        tell(process_event::ChildEnded{root, child.pid, child.title, status, log_sizes()});
      });
}

void LocalBackend::tick() {
  loop_.after(options_.hooks.period, [this] {
    if (const auto verdict = options_.hooks.tick(live_pids())) {
      tell(process_event::Abort{verdict->reason, verdict->exit_code});
    }
    tick();
  });
}

void LocalBackend::look_at_progress() {
  loop_.after(kLookAtProgress, [this] {
    for (auto& [process, live] : live_) {
      tell_progress(process, live);
      if (live.bound->heartbeat.empty() || live.subtree.leader == 0) continue;
      const auto beat = stamp_of(live.absolute(live.bound->heartbeat));
      if (beat != live.heartbeat) tell(process_event::Progress{process});
      live.heartbeat = beat;
    }
    look_at_progress();
  });
}

/// What its output has said since the last time.
void LocalBackend::tell_progress(ProcessIndex process, const Live& live) {
  auto& reader = readers_[live.output];
  if (const auto said = reader.take()) {
    tell(process_event::Progress{process, said->step ? static_cast<std::int64_t>(*said->step) : -1,
                                 said->seconds.value_or(-1),
                                 said->total ? static_cast<std::int64_t>(*said->total) : -1});
  }
  for (const auto& path : reader.take_saved()) tell(process_event::Saved{process, live.absolute(path)});
  for (const auto& link : reader.take_links()) {
    const bool known = std::ranges::find(links_, link.url, &process_event::Linked::url) != links_.end();
    if (known || links_.size() == kMostLinks) continue;
    links_.push_back({process, link.kind, link.url});
    tell(links_.back());
  }
  for (const auto remark : reader.take_remarks()) {
    tell(process_event::Trouble{std::string(remarks()[remark].sentence)});
  }
}

void LocalBackend::perform(const NodeAction& action) {
  std::visit([this](const auto& what) { on(what); }, action);
}

void LocalBackend::replay_events() {
  for (auto& [process, live] : live_) live.needs_replay = live.pid > 0;
  for (const auto& link : links_) tell(link);
}

void LocalBackend::on(const action::Start& start) {
  auto& live = live_.at(start.process);
  if (std::exchange(live.needs_replay, false)) {
    tell(process_event::Started{start.process, live.pid});
    if (live.ended && live.raised) tell(*live.raised);
    if (live.ended) tell(process_event::Ended{start.process, live.status});
    return;
  }
  const auto pid = spawn(live);
  if (!pid) {
    return tell(
        process_event::NotStarted{start.process, options_.node.masker.mask(pid.error().first_message())});
  }
  loop_.on_child(*pid, [this, p = start.process](sys::WaitStatus status) { ended(p, status); });
  if (options_.hooks.on_started) options_.hooks.on_started(live.bound->process, *pid);
  tell(process_event::Started{start.process, *pid});
}

Result<pid_t> LocalBackend::spawn(Live& live) {
  if (const auto problem = problem_with(*live.bound); !problem.empty()) {
    return failure("supervise.ready", "{}", problem);
  }
  const auto pipe = output_->open(live.output);
  if (!pipe) return std::unexpected(pipe.error());
  watch_for_line(live);
  auto request = live.request(live.bound->argv);
  request.out = request.err = pipe->get();
  constexpr unsigned kPidBits = 32;
  request.mark = (static_cast<std::uint64_t>(::getpid()) << kPidBits) | ++starts_;
  live.file = stamp_of(live.ready().file);
  live.heartbeat = stamp_of(live.absolute(live.bound->heartbeat));
  forget_error(live);
  live.raised.reset();
  live.started_at = since_start();
  auto pid = sys::spawn(request);
  if (pid) {
    live.subtree = {*pid, *request.mark};
    live.pid = *pid;
    live.ended = live.killed = false;
    live.killed_parts.clear();
  }
  return pid;
}

/// What a process left of the exception that ended it, as text: no secret is in it.
std::filesystem::path LocalBackend::record_of(const Live& live) const {
  return options_.logs.parent_path() / "errors" / (live.bound->name + ".log");
}

/// Of an earlier start of the process.
void LocalBackend::forget_error(const Live& live) const {
  if (live.bound->error_file.empty()) return;
  std::error_code ignored;
  std::filesystem::remove(live.bound->error_file, ignored);
  std::filesystem::remove(record_of(live), ignored);
  keep_error_folder();
}

/// A service that cleans /tmp removes a directory that stays empty for days, and PyTorch would then report
/// that it cannot write there, in place of the exception.
void LocalBackend::keep_error_folder() const {
  for (const auto& [process, live] : live_) {
    if (live.bound->error_file.empty()) continue;
    // Without it the exception is in the log alone.
    (void)sys::make_private_folder(std::filesystem::path(live.bound->error_file).parent_path());
    return;
  }
}

/// The file itself is removed: it can contain secrets. A process that exited with 0 got over what it
/// recorded.
void LocalBackend::tell_error(ProcessIndex process, Live& live) {
  if (live.bound->error_file.empty()) return;
  const auto error = read_error(live.bound->error_file, options_.node.masker);
  std::error_code ignored;
  std::filesystem::remove(live.bound->error_file, ignored);
  if (!error || live.status.ok()) return;
  const auto record = record_of(live);
  // A full disk has been reported where it mattered.
  if (sys::make_private_folder(record.parent_path()))
    (void)sys::write_file_atomically(record, error->traceback);
  const auto now = std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch());
  const auto ago = now - error->at;
  const bool plausible = ago >= Duration() && ago <= since_start() - live.started_at + error->within;
  live.raised = process_event::Raised{process, error->type, error->message, plausible ? ago : Duration(),
                                      plausible ? error->within : Duration()};
  tell(*live.raised);
}

/// From the start of the process: the leader asks for the line later, on another node by a message delay.
void LocalBackend::watch_for_line(Live& live) {
  live.line = live.fresh_line = nullptr;
  if (!live.bound->ready.log.empty()) live.line = std::make_shared<LineWatch>(live.bound->ready.log);
  if (live.bound->fresh && !live.bound->fresh->log.empty())
    live.fresh_line = std::make_shared<LineWatch>(live.bound->fresh->log);
  if (!live.line && !live.fresh_line) return;
  output_->watch_lines(live.output, [line = live.line, fresh = live.fresh_line](std::string_view text) {
    const bool ready = !line || line->look_at(text);
    return (!fresh || fresh->look_at(text)) && ready;
  });
}

void LocalBackend::ended(ProcessIndex process, sys::WaitStatus status) {
  if (children_) children_->report_exited(process);
  auto& live = live_.at(process);
  live.ended = true;
  live.status = status;
  live.ended_at = since_start();
  live.end_checks();
  live.fresh.reset();
  tell_error(process, live);
  tell(process_event::Ended{process, status});
}

void LocalBackend::on(const action::AwaitReady& await) {
  auto& live = live_.at(await.process);
  const auto process = await.process;
  if (live.ended || live.subtree.leader == 0) return;  // its exit is reported anyway
  Readiness::Then then{
      .ready = [this, process] { tell(process_event::Ready{process}); },
      .timed_out = [this, process] { look_around(process); },
      .line = live.line,
      .note =
          [this, role = live.role](const std::string& sentence) {
            // The same for all processes of the role: it is said once.
            tell(process_event::Trouble{options_.node.masker.mask(fmt::format("{} is {}", role, sentence))});
          },
      .own = run_pids,
      .elsewhere = plan::is_started_elsewhere(live.bound->argv)};
  live.readiness = std::make_unique<Readiness>(loop_, live.ready(), live.file,
                                               live.request(live.bound->ready.exec), std::move(then));
}

namespace {

/// A process and its descendants.
std::vector<pid_t> tree_of(pid_t leader) {
  std::vector<pid_t> pids{leader};
  for (const auto& below : sys::descendants(leader)) pids.push_back(below.pid);
  return pids;
}

/// The port that a check connects to on this machine.
std::optional<std::uint16_t> port_checked_here(const plan::Ready& ready) {
  const auto url = sys::parse_http_url(ready.http);
  const auto endpoint = url ? url->endpoint : sys::parse_endpoint(ready.tcp).value_or(sys::Endpoint());
  return is_this_machine(endpoint.host) ? text::whole_number<std::uint16_t>(endpoint.port) : std::nullopt;
}

}  // namespace

/// The process is reported as not ready a moment later, once it is known what else answers.
void LocalBackend::look_around(ProcessIndex process) {
  auto& live = live_.at(process);
  auto done = [this, process,
               waited = options_.node.masker.mask(live.readiness->status())](NotReadySeen seen) {
    tell(process_event::NotReady{process, waited, std::move(seen)});
  };
  const auto tree = tree_of(live.subtree.leader);
  live.search =
      std::make_unique<NotReadySearch>(loop_, live.ready(), tree, seen_so_far(live, tree), std::move(done));
}

NotReadySeen LocalBackend::seen_so_far(const Live& live, const std::vector<pid_t>& tree) const {
  const auto& masker = options_.node.masker;
  NotReadySeen seen{.check = masker.mask(live.readiness->target()),
                    .last = masker.mask(live.readiness->result()),
                    .loading = loading_line(last_lines_of(live))};
  const auto peer = live.readiness->peer();
  if (!peer || plan::is_started_elsewhere(live.bound->argv)) return seen;
  const auto holder = sys::port_holder(sys::listening_sockets(), peer->address, peer->port, tree);
  if (!holder || std::ranges::find(tree, holder->pid) != tree.end()) return seen;
  const auto [name, remedy] = described(*holder);
  seen.stranger = name;
  seen.remedy = remedy;
  return seen;
}

/// The process of this run that `pid` is, or descends from; null: none.
const LocalBackend::Live* LocalBackend::live_of(pid_t pid) const {
  while (pid > 1) {
    for (const auto& [process, live] : live_)
      if (live.subtree.leader == pid) return &live;
    const auto info = sys::process_info(pid);
    pid = info ? info->parent : 0;
  }
  return nullptr;
}

/// "engine.1 of this run", without a remedy; "server.py (pid 4711, user alice)", with one.
LocalBackend::Holder LocalBackend::described(sys::PortHolder holder) const {
  if (const auto* live = live_of(holder.pid)) return {fmt::format("{} of this run", live->bound->name), ""};
  if (holder.is_own()) holder.user_name = own_user_;
  return {holder.str(), holder.how_to_free()};
}

/// The port that the output of a failed process says is in use: of those that it names, else of those that
/// the process was given, the first that somebody else holds.
std::optional<PortTaken> LocalBackend::port_taken(const Live& live) const {
  constexpr std::size_t kLines = 200;
  constexpr std::size_t kMostPorts = 16;
  if (live.killed || live.status.ok()) return std::nullopt;
  auto ports = ports_in_use(output_->last_lines(live.output, kLines));
  if (!ports) return std::nullopt;
  const auto& own = live.bound->ports;
  ports->insert(ports->end(), own.begin(), own.end());
  for (const auto port : plan::ports_in(live.bound->argv)) ports->push_back(port);
  if (const auto checked = port_checked_here(live.ready())) ports->push_back(*checked);
  ports->resize(std::min(ports->size(), kMostPorts));
  const auto listening = sys::listening_sockets();
  const auto run = run_pids();
  for (const auto port : *ports) {
    const auto holder = sys::port_holder(listening, "", port, run);
    if (!holder) continue;
    const auto index = std::ranges::find(own, port) - own.begin();
    const auto [name, remedy] = described(*holder);
    return PortTaken{.port = port,
                     .index = index == std::ssize(own) ? -1 : static_cast<std::int32_t>(index),
                     .holder = name,
                     .remedy = remedy};
  }
  return std::nullopt;
}

void LocalBackend::on(const action::Watch& watch) {
  auto& live = live_.at(watch.process);
  if (live.ended || live.subtree.leader == 0) return;
  const auto tell_it = [this, process = watch.process](const std::string& reason) {
    tell(process_event::Unresponsive{process, options_.node.masker.mask(reason)});
  };
  const auto& bound = *live.bound;
  if (bound.alive)
    live.liveness = std::make_unique<Liveness>(loop_, *bound.alive, live.request(bound.alive->exec), tell_it);
  if (bound.throughput)
    live.throughput = std::make_unique<ThroughputReader>(loop_, *bound.throughput, tell_it);
}

void LocalBackend::on(const action::AwaitFresh& await) {
  auto& live = live_.at(await.process);
  if (live.ended || live.subtree.leader == 0 || !live.bound->fresh) return;
  plan::Ready ready;
  ready.http = live.bound->fresh->http;
  ready.log = live.bound->fresh->log;
  ready.timeout = kForEver;
  Readiness::Then then{.ready = [this, process = await.process] { tell(process_event::Fresh{process}); },
                       .timed_out = [] {},
                       .line = live.fresh_line};
  live.fresh = std::make_unique<Readiness>(loop_, ready, FileStamp(), live.request({}), std::move(then));
}

void LocalBackend::on(const action::Notify& notify) {
  const auto& live = live_.at(notify.process);
  if (live.ended || live.subtree.leader == 0 || !live.bound->on_change) return;
  const auto& how = *live.bound->on_change;
  if (how.signal != 0) return signal_process(live.subtree.leader, live.bound->wrapper, how.signal);
  const auto number = ++told_;
  const auto done = [this, number, notify](const std::optional<std::string>& why) {
    if (why) notify_failed(notify, *why);
    loop_.post([this, number] {  // not from within its own call
      posts_.erase(number);
      tellers_.erase(number);
    });
  };
  if (!how.post.empty()) {
    const nlohmann::json body{{"role", notify.role},
                              {"generation", notify.generation},
                              {"addresses", notify.addresses},
                              {"added", notify.added},
                              {"removed", notify.removed}};
    posts_[number] =
        sys::NetCheck::post(loop_, *sys::parse_http_url(how.post), json_text(body), kToBeTold, done);
    return;
  }
  const plan::Variables variables{{"NLAUNCH_CHANGE_ROLE", notify.role},
                                  {"NLAUNCH_CHANGE_GENERATION", std::to_string(notify.generation)},
                                  {"NLAUNCH_CHANGE_ADDRESSES", text::join(notify.addresses, " ")},
                                  {"NLAUNCH_CHANGE_ADDED", text::join(notify.added, " ")},
                                  {"NLAUNCH_CHANGE_REMOVED", text::join(notify.removed, " ")}};
  tellers_[number] = std::make_unique<sys::ExecCheck>(loop_, live.request(how.exec, variables), done);
  loop_.after(kToBeTold, [this, number, notify] {
    if (tellers_.erase(number) > 0)  // which ends it
      notify_failed(notify, fmt::format("did not exit within {}", format_duration(kToBeTold)));
  });
}

void LocalBackend::notify_failed(const action::Notify& notify, const std::string& why) {
  const auto& live = live_.at(notify.process);
  const auto& how = *live.bound->on_change;
  const auto whom = how.post.empty() ? fmt::format("the on_change program of {}", live.bound->name)
                                     : fmt::format("{} (on_change of {})", how.post, live.bound->name);
  tell(process_event::Trouble{options_.node.masker.mask(
      fmt::format("{} did not accept the new addresses of '{}': {}", whom, notify.role, why))});
}

void LocalBackend::on(const action::SignalGroup& send) {
  auto& live = live_.at(send.process);
  if (live.subtree.leader > 0) {
    signal_group(live.subtree.leader, live.bound->wrapper, send.signal);
    // A stopped process would only receive the signal when it is continued.
    signal_group(live.subtree.leader, live.bound->wrapper, SIGCONT);
  }
  live.end_checks();
}

void LocalBackend::on(const action::SignalProcess& send) {
  const auto& live = live_.at(send.process);
  if (live.subtree.leader > 0 && !live.ended)
    signal_process(live.subtree.leader, live.bound->wrapper, send.signal);
}

void LocalBackend::on(const action::KillTree& kill) {
  auto& live = live_.at(kill.process);
  live.killed = true;
  live.end_checks();
  Cleaner::kill(live.subtree);
  give_up_later(kill.process);
}

void LocalBackend::on(const action::KillAll&) {
  sys::kill_descendants({});
  for (auto& [process, live] : live_) {
    live.end_checks();
    if (live.subtree.leader > 0) give_up_later(process);
  }
}

void LocalBackend::on(const action::Collect& collect) {
  std::optional<sys::SpawnRequest> program;
  if (options_.hooks.collect) program = options_.hooks.collect(live_pids(), ends(), collect.folder);
  if (!program) return tell(process_event::Collected{"nothing could be collected on this node"});
  collection_ = std::make_unique<sys::ExecCheck>(
      loop_, std::move(*program),
      [this](const std::optional<std::string>& why) { tell(process_event::Collected{why.value_or("")}); });
}

/// A process in uninterruptible sleep does not exit even on SIGKILL; the run must.
void LocalBackend::give_up_later(ProcessIndex process) {
  loop_.after(kKillLimit, [this, process, leader = live_.at(process).subtree.leader] {
    auto& live = live_.at(process);
    if (live.ended || live.subtree.leader != leader) return;
    loop_.forget_child(leader);
    live.ended = true;
    tell(process_event::NotKillable{process});
  });
}

void LocalBackend::on(const action::CleanUp& clean) {
  auto& live = live_.at(clean.process);
  const bool is_clean = live.subtree.leader == 0;  // handled under the previous leader; see replay_events
  if (clean.leave || is_clean) {
    live.subtree.leader = 0;
    return tell(process_event::CleanedUp{clean.process, {}, last_lines_of_task(live)});
  }
  shared_memory_.note(sys::own_descendants);
  cleaner_.clean(live.subtree, [this, p = clean.process](const auto& result) { cleaned_up(p, result); });
}

void LocalBackend::cleaned_up(ProcessIndex process, const Cleaner::Result& result) {
  auto& live = live_.at(process);
  output_->close(live.output);
  readers_[live.output].finish();
  tell_progress(process, live);
  live.subtree.leader = 0;
  tell(process_event::CleanedUp{process, result.killed, last_lines_of_task(live), port_taken(live)});
}

std::vector<std::string> LocalBackend::last_lines_of(const Live& live) const {
  auto lines = output_->last_lines(live.output, kLastLines);
  for (auto& line : lines) line = line.substr(0, kLongestLastLine);
  return lines;
}

std::vector<std::string> LocalBackend::last_lines_of_task(const Live& live) const {
  return live.bound->ready.exited ? last_lines_of(live) : std::vector<std::string>{};
}

/// In bytes, by process.
std::map<std::string, std::uint64_t> LocalBackend::log_sizes() const {
  std::map<std::string, std::uint64_t> sizes;
  for (const auto& [process, live] : live_) {
    std::error_code error;
    const auto size = std::filesystem::file_size(output_->log_path(live.output), error);
    if (!error) sizes[live.bound->name] = size;
  }
  return sizes;
}

void LocalBackend::ending() {
  children_.reset();
  log_when_decided_ = log_sizes();
  shared_memory_.note(sys::own_descendants);
  if (options_.hooks.before_stop) options_.hooks.before_stop(live_pids());
}

/// They are not leftovers of the run.
void LocalBackend::end_own_programs() {
  collection_.reset();
  beside_.reset();
  tellers_.clear();
  posts_.clear();
}

void LocalBackend::finish(std::optional<ProcessIndex> of, std::function<void(BackendEnd)> done) {
  BackendEnd end;
  end_own_programs();
  const auto swept = sys::sweep({}, kKillLimit);
  shared_memory_.remove();
  for (const auto& process : swept.killed) end.left_behind.push_back(describe(process));
  for (const auto& process : swept.survivors) end.survivors.push_back(describe_survivor(process));
  for (const auto& [process, live] : live_) output_->close(live.output);
  end.lost_bytes = output_->lost_bytes();
  end.log_when_decided = log_when_decided_;
  const auto oom_kills = sys::oom_kills();
  if (oom_kills && oom_kills_before_) end.oom_kills = *oom_kills - std::min(*oom_kills, *oom_kills_before_);
  if (of && live_.contains(*of)) end.last_lines = last_lines_of(live_.at(*of));
  done(std::move(end));
}

Duration LocalBackend::since_start() const {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start_);
}

Ends LocalBackend::ends() const {
  Ends ends;
  for (const auto& [process, live] : live_) {
    if (live.ended)
      ends.processes.emplace(live.bound->process, EndedProcess{live.status, live.ended_at});
    else if (!live.killed_parts.empty())
      ends.killed_parts.emplace(live.bound->process, live.killed_parts);
  }
  return ends;
}

LivePids LocalBackend::live_pids() const {
  LivePids pids;
  for (const auto& [process, live] : live_) {
    if (live.subtree.leader > 0 && !live.ended) pids.emplace(live.bound->process, live.subtree.leader);
  }
  return pids;
}

}  // namespace nlaunch::supervise
