#include "session/exporter.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "launch/install.h"
#include "launch/machine.h"
#include "plan/metrics.h"
#include "report/run_prometheus.h"
#include "session/live_run.h"
#include "supervise/stop_signal.h"
#include "sys/http_server.h"
#include "sys/proc.h"
#include "sys/spawn.h"

namespace nlaunch::session {
namespace {

namespace fs = std::filesystem;
using ExportClock = std::chrono::steady_clock;

constexpr const char* kMetricsPath = "/metrics";
constexpr std::string_view kRunIsOver = "over";
constexpr std::chrono::seconds kForTheLastFigures{5};
/// How often the run is read, and before it has begun.
constexpr Duration kReadEvery = std::chrono::seconds(5);
constexpr Duration kUntilItBegins = std::chrono::milliseconds(200);
constexpr std::chrono::seconds kWriteEvery{15};
/// Up to so many processes, the step of each is looked for in its log.
constexpr std::size_t kReadLogsOf = 256;

/// Where others reach a socket that may listen on all addresses.
sys::Endpoint reachable(sys::Endpoint endpoint) {
  if (endpoint.host == "0.0.0.0" || endpoint.host == "::") endpoint.host = launch::this_host().host;
  return endpoint;
}

/// Beside the directories of all runs: a path of `file_sd_configs` can have one "*", in its last part.
fs::path targets_file(const fs::path& run_folder) {
  const auto of_name = run_folder.parent_path();
  return of_name.parent_path() /
         fmt::format("file_sd.{}.{}.json", of_name.filename().string(), run_folder.filename().string());
}

/// A scheduler signals all processes of a job, but its signals are meant for the run. This process exits when
/// the channel ends.
void ignore_signals_for_the_run() {
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, supervise::stop_signal()})
    ::signal(signal, SIG_IGN);
}

/// A standard descriptor, in whose place /dev/null is from now on: no file that is opened later becomes
/// standard output.
sys::UniqueFd take_standard(int standard) {
  sys::UniqueFd own(::fcntl(standard, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  const sys::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null) ::dup2(null.get(), standard);
  return own;
}

class ExportService {
 public:
  ExportService(fs::path folder, fs::path file) : folder_(std::move(folder)), file_(std::move(file)) {}

  void run() {
    loop_.watch(STDIN_FILENO, [this] {
      loop_.unwatch(STDIN_FILENO);
      loop_.stop();
    });
    if (auto address = sys::own_endpoint(STDOUT_FILENO); !address.port.empty()) {
      own_ = sys::text_of(reachable(std::move(address)));
      server_.emplace(loop_, take_standard(STDOUT_FILENO), kMetricsPath,
                      [this](std::string_view accept) { return page(accept); });
    }
    tick();
    loop_.run();
    server_.reset();
    write_last();
  }

 private:
  void tick() {
    read();
    if (ExportClock::now() >= next_file_ || milestone() != written_) write_file();
    write_targets();
    const auto wait = std::chrono::ceil<Duration>(next_read_ - ExportClock::now());
    loop_.after(std::max(run_ ? kReadEvery : kUntilItBegins, wait), [this] { tick(); });
  }

  /// False: the run has not begun to record.
  bool open() {
    std::error_code error;
    if (run_ || !fs::exists(folder_ / "events.jsonl", error)) return run_.has_value();
    if (auto opened = LiveRun::open(folder_.parent_path(), folder_)) run_.emplace(std::move(*opened));
    return run_.has_value();
  }

  void read() {
    const auto begin = ExportClock::now();
    if (!open()) return;
    view_ = run_->refresh();
    if (view_.processes.size() <= kReadLogsOf)
      for (auto& process : view_.processes) run_->look_at(process);
    gpus_ = run_->gpus(view_);
    next_read_ = next_reading(begin);
  }

  sys::HttpPage page(std::string_view accept) {
    if (ExportClock::now() >= next_read_) read();
    const auto format = report::format_for(accept);
    auto text = run_ ? report::run_prometheus(view_, gpus_, format) : report::Exposition(format).take();
    return {std::string(report::content_type(format)), std::move(text)};
  }

  /// What a reader of the file waits for.
  struct Milestone {
    bool all_ready = false;
    bool has_gpus = false;
    bool operator==(const Milestone&) const = default;
  };
  [[nodiscard]] Milestone milestone() const {
    const auto ready = [](const report::TopStage& stage) { return stage.ready == stage.of; };
    return {!view_.stages.empty() && std::ranges::all_of(view_.stages, ready), !gpus_.empty()};
  }

  void write_file() {
    if (file_.empty() || !run_) return;
    next_file_ = ExportClock::now() + kWriteEvery;
    written_ = milestone();
    note(sys::write_named_file(file_, report::run_prometheus(view_, gpus_)), file_trouble_);
  }

  /// Writes the file at the first call and when the addresses change, and removes it if there are none.
  void write_targets() {
    if (!run_) return;
    auto targets = run_->targets(view_);
    if (!own_.empty()) targets.insert(targets.begin(), {.address = own_});
    auto text = targets.empty() ? "" : report::scrape_targets_json(view_.run, targets);
    if (text == targets_) return;
    constexpr mode_t kForAll = 0644;  // Prometheus may be another user
    const auto file = targets_file(folder_);
    std::error_code error;
    if (text.empty()) fs::remove(file, error);
    const auto wrote = text.empty() ? Result<void>() : sys::write_file_atomically(file, text, kForAll);
    note(wrote, targets_trouble_);
    if (wrote) targets_ = std::move(text);
  }

  /// Reads the end of a run whose leader has exited a moment later. If the run goes on, another leader has
  /// taken it over, and its exporter keeps the files.
  void write_last() {
    constexpr std::chrono::milliseconds kGlance{20};
    constexpr int kGlances = 50;
    for (int i = 0; i < kGlances; ++i) {
      read();
      if (!run_ || !view_.alive) break;
      std::this_thread::sleep_for(kGlance);
    }
    if (run_ && view_.alive) return;
    own_.clear();
    write_file();
    write_targets();
  }

  /// Reports the first failure of its kind.
  static void note(const Result<void>& wrote, bool& told) {
    if (wrote || std::exchange(told, true)) return;
    const auto what = wrote.error().first_message();
    ::send(STDIN_FILENO, what.data(), what.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  fs::path folder_;
  fs::path file_;
  sys::Loop loop_;
  std::optional<sys::HttpServer> server_;
  std::string own_;  ///< its address; empty: it does not listen
  std::optional<LiveRun> run_;
  report::TopView view_;
  std::vector<report::GpuSample> gpus_;
  ExportClock::time_point next_read_;
  ExportClock::time_point next_file_;
  Milestone written_;                   ///< in the file
  std::optional<std::string> targets_;  ///< in their file; nothing: an earlier exporter may have left one
  bool file_trouble_ = false;
  bool targets_trouble_ = false;
};

}  // namespace

Exporter::Exporter(const plan::Plan& plan, const fs::path& run_folder, const Caller& caller)
    : caller_(caller) {
  if (!plan.metrics) return;
  const auto& to = *plan.metrics;
  const auto listening = to.listen.empty() ? sys::UniqueFd() : listen(to.listen);
  std::vector<std::string> argv{launch::find_install().program, "exporter",
                                fs::absolute(run_folder).string()};
  if (!to.file.empty()) argv.insert(argv.end(), {"--file", plan::metrics_file_of(plan, run_folder).string()});
  if (listening || !to.file.empty()) start(std::move(argv), listening.get());
}

/// Nothing: it cannot listen there.
sys::UniqueFd Exporter::listen(const std::string& where) const {
  const auto endpoint = sys::parse_listen(where);
  auto got = endpoint ? sys::listen_on(*endpoint)
                      : std::expected<sys::UniqueFd, std::string>(std::unexpected(endpoint.error()));
  if (!got) {
    complain(fmt::format("cannot listen on {}: {}", where, got.error()));
    return {};
  }
  if (!caller_.console.quiet)
    caller_.console.say(fmt::format("nlaunch: metrics: http://{}{}\n",
                                    sys::text_of(reachable(sys::own_endpoint(got->get()))), kMetricsPath));
  return std::move(*got);
}

void Exporter::start(std::vector<std::string> argv, int listening) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
    return complain(fmt::format("cannot create a socket pair: {}", std::strerror(errno)));
  sys::UniqueFd ours(ends[0]);
  const sys::UniqueFd theirs(ends[1]);
  sys::SpawnRequest request;
  request.argv = std::move(argv);
  request.env = caller_.environment;
  request.in = theirs.get();
  request.out = listening;
  request.die_with_parent = false;  // it has something to write then
  const auto pid = sys::spawn(request);
  if (!pid) return complain(pid.error().first_message());
  pid_ = *pid;
  channel_ = std::move(ours);
}

Exporter::~Exporter() {
  end();
}

sys::ProcessIds Exporter::processes() const {
  const auto info = channel_ ? sys::process_info(pid_) : std::nullopt;
  if (!info) return {};
  return {{info->pid, info->start_ticks}};
}

void Exporter::complain(const std::string& what) const {
  caller_.console.say(fmt::format("nlaunch: metrics: {}; the run continues\n", what));
}

void Exporter::say_troubles() {
  std::array<char, 4096> message;
  while (channel_) {
    const auto got = ::recv(channel_.get(), message.data(), message.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0) {
      complain({message.data(), static_cast<std::size_t>(got)});
      continue;
    }
    channel_.reset();
    if (pid_ != 0) complain("the process that exports them has exited");
  }
}

void Exporter::end() {
  say_troubles();
  if (!channel_) return;
  const auto pid = std::exchange(pid_, 0);  // from now on it may exit
  ::send(channel_.get(), kRunIsOver.data(), kRunIsOver.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  await_end();
  if (!channel_) return;
  ::kill(pid, SIGKILL);
  channel_.reset();
  complain("the last figures could not be written in time");
}

void Exporter::await_end() {
  const auto until = ExportClock::now() + kForTheLastFigures;
  while (channel_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - ExportClock::now());
    if (left.count() <= 0) return;
    pollfd watched{channel_.get(), POLLIN, 0};
    ::poll(&watched, 1, static_cast<int>(left.count()));
    say_troubles();
  }
}

void export_metrics(const fs::path& run_folder, const fs::path& file) {
  ignore_signals_for_the_run();
  ExportService(run_folder, file).run();
}

}  // namespace nlaunch::session
