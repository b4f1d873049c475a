#pragma once
#include <re2/re2.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "base/units.h"
#include "plan/plan.h"
#include "sys/loop.h"
#include "sys/net_check.h"
#include "sys/spawn.h"

namespace nlaunch::supervise {

/// The state of a file at one moment, so that a later state can be told apart without comparing clocks;
/// empty: the file does not exist.
using FileStamp = std::optional<std::tuple<dev_t, ino_t, time_t, long>>;
FileStamp stamp_of(const std::string& path);

/// Whether a line of a process's output matches a pattern. The output is watched from the start of the
/// process, because the line can appear before anyone waits for it.
class LineWatch {
 public:
  /// `problem_with` must find no problem with the pattern.
  explicit LineWatch(const std::string& pattern) : pattern_(pattern, RE2::Quiet) {}

  /// Feeds one line. True once a line has matched.
  bool look_at(std::string_view line);
  [[nodiscard]] bool seen() const { return seen_; }
  /// Calls `then` when the line appears. A later call with another callback, or with none, replaces it.
  void when_seen(std::function<void()> then) { then_ = std::move(then); }

 private:
  RE2 pattern_;
  bool seen_ = false;
  std::function<void()> then_;
};

/// Waits until a process is ready, without blocking the loop. It calls `ready` or `timed_out`, once: what a
/// check in progress reports after that does not count. Once destroyed, it stops waiting and calls nothing.
class Readiness {
 public:
  struct Then {
    std::function<void()> ready;
    std::function<void()> timed_out;
    /// Watches the process's output since its start; needed only for `log`.
    std::shared_ptr<LineWatch> line{};
    /// Called once for each HTTP status that waiting does not change (3xx, 4xx): "not ready: GET /x answered
    /// 404; ...", and if a process of another run answers. Names no host. May be empty.
    std::function<void(const std::string& sentence)> note{};
    /// The run's processes on this node: one of them must be the process that answers, else it is a foreign
    /// server. May be empty: then any process may answer.
    std::function<std::vector<pid_t>()> own{};
    /// The server may be a process outside the run: started by a container daemon or a scheduler.
    bool elsewhere = false;
  };

  /// Requires `ready.given()`. `before`: the state of its file before the process started, which does not
  /// count. `like`: how the process is started; the program of `exec` is started in the same way.
  Readiness(sys::Loop& loop, const plan::Ready& ready, FileStamp before, sys::SpawnRequest like, Then then);
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  /// What it waits for and the result of the last check: "http://n1:8000/health: connection refused".
  [[nodiscard]] std::string status() const;
  /// The same in two parts.
  [[nodiscard]] std::string target() const;
  [[nodiscard]] std::string result() const;
  /// The address of this machine to which the last check connected; empty: it did not, or to another machine.
  [[nodiscard]] std::optional<sys::NetCheck::Peer> peer() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// What is wrong with a readiness check: a URL or a pattern that cannot be parsed. Else empty.
std::string problem_with(const plan::Ready& ready);

}  // namespace nlaunch::supervise
