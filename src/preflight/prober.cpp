#include "preflight/prober.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "base/text.h"
#include "preflight/events.h"
#include "sys/files.h"
#include "sys/loop.h"
#include "sys/proc.h"

namespace nlaunch::preflight {
namespace {

using namespace std::chrono_literals;

/// After a rank has failed, the others may say what they saw of it.
constexpr Duration kLastWords = 1s;
constexpr Duration kForTheKill = 5s;
constexpr Duration kAskWhetherCancelled = 100ms;

struct Probe {
  pid_t pid = -1;  ///< -1: not running
  sys::UniqueFd in;
  sys::UniqueFd out;
  std::string pending;  ///< an unfinished line
};

class Prober {
 public:
  explicit Prober(const ProbeWork& work) : work_(work), probes_(work.probes.size()) {
    outcome_.reports.resize(work.probes.size());
  }

  ProbeOutcome run() {
    for (std::size_t i = 0; i < probes_.size(); ++i) {
      if (auto started = start(i); !started) {
        outcome_.reports[i].end = "could not be started: " + started.error().items().front().message;
      }
    }
    heard();
    watch_for_cancel();
    loop_.post([this] { consider(); });
    loop_.run();
    return std::move(outcome_);
  }

 private:
  Result<void> start(std::size_t index);
  void read(std::size_t index);
  void take_lines(std::size_t index);
  void ended(std::size_t index, sys::WaitStatus status);
  void consider();
  void go();
  void heard();
  void watch_for_cancel();
  void finish();
  void give_up();
  [[nodiscard]] bool running() const {
    return std::ranges::any_of(probes_, [](const Probe& probe) { return probe.pid > 0; });
  }
  [[nodiscard]] bool any_failed() const {
    return std::ranges::any_of(outcome_.reports, [](const RankReport& report) {
      return !report.errors.empty() || !report.end.empty();
    });
  }

  const ProbeWork& work_;
  sys::Loop loop_;
  std::vector<Probe> probes_;
  ProbeOutcome outcome_;
  std::optional<sys::Loop::TimerId> silence_;
  bool last_words_ = false;
  bool finishing_ = false;
};

/// The last line that a probe wrote to standard error.
std::string last_line(const std::string& path) {
  constexpr std::uint64_t kLimit = 16U << 20U;
  const auto said = sys::read_regular_file(path, kLimit);
  if (!said) return "";
  const auto trimmed = text::trim(*said);
  const auto at = trimmed.rfind('\n');
  return text::printable(at == std::string_view::npos ? trimmed : trimmed.substr(at + 1));
}

Result<void> Prober::start(std::size_t index) {
  auto in = sys::make_pipe();
  if (!in) return std::unexpected(in.error());
  auto out = sys::make_pipe();
  if (!out) return std::unexpected(out.error());
  const auto& wanted = work_.probes[index];
  const sys::UniqueFd err(::open(wanted.err.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  sys::SpawnRequest request;
  request.argv = wanted.argv;
  request.env = wanted.env;
  request.cwd = wanted.cwd;
  request.cpus = wanted.cpus;
  request.in = in->read.get();
  request.out = out->write.get();
  request.err = err.get();
  const auto pid = sys::spawn(request);
  if (!pid) return std::unexpected(pid.error());
  auto& probe = probes_[index];
  probe.pid = *pid;
  probe.in = std::move(in->write);
  probe.out = std::move(out->read);
  ::fcntl(probe.out.get(), F_SETFL, O_NONBLOCK);
  loop_.watch(probe.out.get(), [this, index] { read(index); });
  loop_.on_child(*pid, [this, index](sys::WaitStatus status) { ended(index, status); });
  return {};
}

void Prober::read(std::size_t index) {
  auto& probe = probes_[index];
  std::array<char, 65536> block;
  for (;;) {
    const auto got = ::read(probe.out.get(), block.data(), block.size());
    if (got > 0) {
      probe.pending.append(block.data(), static_cast<std::size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) {
      loop_.unwatch(probe.out.get());
      probe.out.reset();
    }
    break;
  }
  take_lines(index);
  consider();
}

void Prober::take_lines(std::size_t index) {
  auto& pending = probes_[index].pending;
  for (auto end = pending.find('\n'); end != std::string::npos; end = pending.find('\n')) {
    if (read_event(std::string_view(pending).substr(0, end), outcome_.reports[index])) heard();
    pending.erase(0, end + 1);
  }
}

void Prober::ended(std::size_t index, sys::WaitStatus status) {
  auto& probe = probes_[index];
  probe.pid = -1;
  if (probe.out) read(index);
  auto& report = outcome_.reports[index];
  if (!finishing_ && !report.done && report.errors.empty()) {
    const auto words = last_line(work_.probes[index].err);
    report.end = status.str() + (words.empty() ? "" : "; its last words: " + words);
  }
  consider();
}

/// Decides what is next, from all that has been heard.
void Prober::consider() {
  if (!running()) return loop_.stop();
  if (finishing_) return;
  if (any_failed() && !last_words_) {
    last_words_ = true;
    loop_.after(outcome_.went ? kLastWords : Duration(0), [this] { finish(); });
  }
  const bool known = std::ranges::all_of(
      outcome_.reports, [](const RankReport& report) { return report.identity.has_value(); });
  if (known && !outcome_.went && !last_words_) go();
}

void Prober::go() {
  if (work_.fit(outcome_.reports)) {
    outcome_.went = true;
    heard();
    for (auto& probe : probes_) {
      if (probe.pid > 0) sys::write_all(probe.in.get(), "go\n");
    }
  } else {
    finish();
  }
}

void Prober::heard() {
  if (silence_) loop_.cancel(*silence_);
  silence_ = loop_.after(outcome_.went ? work_.to_work : work_.to_identify, [this] {
    silence_.reset();
    finish();
  });
}

void Prober::watch_for_cancel() {
  if (!work_.cancelled) return;
  loop_.after(kAskWhetherCancelled, [this] {
    if (!finishing_ && work_.cancelled()) {
      outcome_.cancelled = true;
      finish();
    }
    watch_for_cancel();
  });
}

void Prober::finish() {
  if (finishing_) return;
  finishing_ = true;
  for (const auto& probe : probes_) {
    if (probe.pid > 0) ::kill(-probe.pid, SIGKILL);
  }
  loop_.after(kForTheKill, [this] { give_up(); });
}

void Prober::give_up() {
  for (std::size_t i = 0; i < probes_.size(); ++i) {
    if (probes_[i].pid < 0) continue;
    const auto info = sys::process_info(probes_[i].pid);
    outcome_.reports[i].stuck = fmt::format("pid {}, state {}", probes_[i].pid,
                                            info ? std::string(1, info->state) : std::string("unknown"));
    loop_.forget_child(probes_[i].pid);
  }
  loop_.stop();
}

}  // namespace

ProbeOutcome run_probes(const ProbeWork& work) {
  return Prober(work).run();
}

}  // namespace nlaunch::preflight
