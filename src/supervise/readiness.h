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
#include "sys/spawn.h"

namespace nlaunch::supervise {

/// A file as it is at a moment, so that a later one is told from it without comparing clocks; nothing: it is
/// not there.
using FileStamp = std::optional<std::tuple<dev_t, ino_t, time_t, long>>;
FileStamp stamp_of(const std::string& path);

/// Whether a line of a process's output fits a pattern. The output is watched from the start of the process,
/// for the line may come before anybody asks for it.
class LineWatch {
 public:
  /// `problem_with` finds nothing wrong with the pattern.
  explicit LineWatch(const std::string& pattern) : pattern_(pattern, RE2::Quiet) {}

  /// One more line. True once there was one that fits.
  bool look_at(std::string_view line);
  [[nodiscard]] bool seen() const { return seen_; }
  /// Calls `then` when the line comes. It may do so no more once this is called with another, or with none.
  void when_seen(std::function<void()> then) { then_ = std::move(then); }

 private:
  RE2 pattern_;
  bool seen_ = false;
  std::function<void()> then_;
};

/// Waits until one process counts as ready; nothing of it blocks the loop. Destroyed, it waits no longer and
/// calls nothing.
class Readiness {
 public:
  struct Then {
    std::function<void()> ready;
    std::function<void()> timed_out;
    /// Of the process's output since it was started; needed for `log` alone.
    std::shared_ptr<LineWatch> line{};
    /// Told once of each HTTP status that waiting does not change (3xx, 4xx): "not ready: GET /x answered
    /// 404; ...", and of a stranger who answers. It names no host. May be empty.
    std::function<void(const std::string& sentence)> note{};
    /// The processes of the run on this node: one of them has to be who answers, else it is a stranger's
    /// server. May be empty: then it may be anyone's.
    std::function<std::vector<pid_t>()> own{};
    /// The server may be a process that is none of the run's: a container's daemon or a scheduler starts it.
    bool elsewhere = false;
  };

  /// `ready.given()` holds. `before`: its file before the process was started, which does not count. `like`:
  /// how the process is started, and so the program of `exec`.
  Readiness(sys::Loop& loop, const plan::Ready& ready, FileStamp before, sys::SpawnRequest like, Then then);
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  /// What it waits for and what the last look said: "http://n1:8000/health: connection refused".
  [[nodiscard]] std::string status() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// What is wrong with a readiness check, or empty: a URL or a pattern that cannot be read.
std::string problem_with(const plan::Ready& ready);

}  // namespace nlaunch::supervise
