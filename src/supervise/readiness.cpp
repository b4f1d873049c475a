#include "supervise/readiness.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/text.h"
#include "sys/exec_check.h"
#include "sys/tcp_sockets.h"

namespace nlaunch::supervise {
namespace {

/// Time limit of one check.
constexpr Duration kOneLook = std::chrono::seconds(5);
/// Between two checks. The pause grows with the wait, because each check is a line in a server's log.
constexpr Duration kShortestPause = std::chrono::milliseconds(100);
constexpr Duration kLongestPause = std::chrono::seconds(2);
constexpr int kShareOfWait = 20;
/// A program costs more than a connection, and may take as long as it likes.
constexpr Duration kPauseOfPrograms = std::chrono::milliseconds(500);
/// Of the program named in the status; it may be a whole script.
constexpr std::size_t kLongestTarget = 80;

std::string target_of(const plan::Ready& ready) {
  if (!ready.http.empty()) return ready.http;
  if (!ready.tcp.empty()) return ready.tcp;
  if (!ready.file.empty()) return fmt::format("file '{}'", ready.file);
  if (!ready.log.empty()) return fmt::format("a line of its output that matches '{}'", ready.log);
  if (!ready.exec.empty()) return text::printable(text::join(ready.exec, " ").substr(0, kLongestTarget));
  return ready.exited ? "its exit" : "its delay";
}

}  // namespace

FileStamp stamp_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return std::tuple(info.st_dev, info.st_ino, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
}

bool LineWatch::look_at(std::string_view line) {
  if (seen_ || !RE2::PartialMatch({line.data(), line.size()}, pattern_)) return seen_;
  seen_ = true;
  if (const auto then = std::exchange(then_, nullptr)) then();
  return true;
}

struct Readiness::State : std::enable_shared_from_this<State> {
  State(sys::Loop& where, plan::Ready what, FileStamp stamp, sys::SpawnRequest request, Then then_call)
      : loop(where),
        ready(std::move(what)),
        before(stamp),
        program(std::move(request)),
        then(std::move(then_call)) {}

  void start() {
    if (ready.exited) {
      last = fmt::format("it took longer than its timeout of {}", format_duration(ready.timeout));
      if (ready.timeout > Duration{})
        deadline = loop.after(ready.timeout, [this] { finish(then.timed_out); });
      return;
    }
    if (ready.delay) {
      next = loop.after(*ready.delay, [this] { finish(then.ready); });
      return;
    }
    deadline = loop.after(ready.timeout, [this] { finish(then.timed_out); });
    if (!ready.log.empty()) {
      watch_log();
    } else {
      if (!ready.exec.empty()) last = "it has not exited yet";
      look();
    }
  }

  void watch_log() {
    last = "no such line yet";
    // Not from within the call that starts the wait.
    if (then.line->seen()) {
      next = loop.after({}, [this] { finish(then.ready); });
      return;
    }
    then.line->when_seen([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->finish(self->then.ready);
    });
  }

  void look() {
    const auto answer = [this](const sys::CheckResult& result) { judge(result); };
    if (!ready.http.empty()) {
      check = sys::NetCheck::http(loop, *sys::parse_http_url(ready.http), kOneLook, answer);
    } else if (!ready.tcp.empty()) {
      check = sys::NetCheck::tcp(loop, *sys::parse_endpoint(ready.tcp), kOneLook, answer);
    } else if (!ready.exec.empty()) {
      asked = std::make_unique<sys::ExecCheck>(loop, program, answer);
    } else {
      const auto now = stamp_of(ready.file);
      if (!now) return judge("does not exist");
      judge(now == before ? sys::CheckResult("has not changed since the process started") : std::nullopt);
    }
  }

  /// Why the server that answered is not the expected one. If that cannot be determined, it is reported and
  /// the answer is accepted.
  sys::CheckResult doubt() {
    if (!peer || !then.own) return std::nullopt;
    const auto owner = sys::port_owner(peer->address, peer->port, then.own());
    if (owner.of == sys::PortOwner::Of::own) return std::nullopt;
    if (owner.of == sys::PortOwner::Of::unknown || then.elsewhere) {
      say(fmt::format("not verified: nlaunch cannot see from here which process listens on port {}",
                      peer->port));
      return std::nullopt;
    }
    const auto who = owner.name.empty() ? "a process of another user" : text::printable(owner.name);
    say(fmt::format("not ready: port {} is held by {}, which this run did not start", peer->port, who));
    return fmt::format("answered by {}, which this run did not start", who);
  }

  /// Each sentence once.
  void say(const std::string& sentence) {
    if (then.note && said.insert(sentence).second) then.note(sentence);
  }

  void judge(sys::CheckResult result) {
    if (over) return;
    asked.reset();
    peer = check ? check->own_peer() : std::nullopt;
    const int status = ready.http.empty() ? 0 : check->status();
    // A server that is still loading refuses connections or answers 5xx. Waiting does not change 3xx and 4xx.
    const bool stays = status >= 300 && status < 500;
    auto why_not = !result || stays ? doubt() : std::nullopt;
    if (!why_not && stays) {
      say(fmt::format("not ready: GET {} {}; nlaunch waits for 2xx: check the path in its `ready`",
                      text::printable(sys::parse_http_url(ready.http)->target), *result));
    }
    if (!why_not) why_not = std::move(result);
    if (!why_not) return finish(then.ready);
    last = *why_not;
    next = loop.after(ready.exec.empty() ? pause() : kPauseOfPrograms, [this] { look(); });
  }

  [[nodiscard]] Duration pause() const {
    const auto waited = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - began);
    return std::clamp<Duration>(waited / kShareOfWait, kShortestPause, kLongestPause);
  }

  void finish(const std::function<void()>& call) {
    if (std::exchange(over, true)) return;
    const auto keep = shared_from_this();
    const auto how = call;
    abandon();
    how();
  }

  void abandon() {
    loop.cancel(deadline);
    loop.cancel(next);
  }

  sys::Loop& loop;
  plan::Ready ready;
  FileStamp before;
  sys::SpawnRequest program;
  Then then;
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  std::set<std::string> said;
  sys::Loop::TimerId deadline = 0;
  sys::Loop::TimerId next = 0;
  std::unique_ptr<sys::NetCheck> check;
  std::unique_ptr<sys::ExecCheck> asked;
  std::optional<sys::NetCheck::Peer> peer;  ///< of the last check that has a result
  bool over = false;
  std::string last = "no answer yet";
};

Readiness::Readiness(sys::Loop& loop, const plan::Ready& ready, FileStamp before, sys::SpawnRequest like,
                     Then then)
    : state_(std::make_shared<State>(loop, ready, before, std::move(like), std::move(then))) {
  state_->start();
}

Readiness::~Readiness() {
  state_->abandon();
  state_->check.reset();
  state_->asked.reset();
}

std::string Readiness::status() const {
  return fmt::format("{}: {}", target(), result());
}

std::string Readiness::target() const {
  return target_of(state_->ready);
}

std::string Readiness::result() const {
  const auto says = state_->asked ? state_->asked->last_line() : "";
  return says.empty() ? state_->last : says;
}

std::optional<sys::NetCheck::Peer> Readiness::peer() const {
  const auto now = state_->check ? state_->check->own_peer() : std::nullopt;
  return now ? now : state_->peer;
}

std::string problem_with(const plan::Ready& ready) {
  if (!ready.http.empty()) {
    if (const auto url = sys::parse_http_url(ready.http); !url) return url.error();
  }
  if (!ready.tcp.empty()) {
    if (const auto endpoint = sys::parse_endpoint(ready.tcp); !endpoint) return endpoint.error();
  }
  const RE2 pattern(ready.log, RE2::Quiet);
  if (!pattern.ok()) return fmt::format("'{}' is not a regular expression: {}", ready.log, pattern.error());
  return {};
}

}  // namespace nlaunch::supervise
