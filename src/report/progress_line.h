#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "report/console.h"
#include "supervise/terminal.h"

namespace nlaunch::report {

/// The current activity and its duration, on the last line of a terminal: "  12 s  learner world: 3 of 4
/// sizes". If standard error is not a terminal, under --plain and without colours (NO_COLOR, TERM=dumb), the
/// same as a message every 30 s. Shows nothing under --quiet, and draws nothing in the background. A terminal
/// that blocks does not block nlaunch.
class ProgressLine {
 public:
  explicit ProgressLine(const Console& console);
  /// Leaves the line empty.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// A function to call with a short text; empty if nothing is shown.
  [[nodiscard]] std::function<void(const std::string&)> teller();

 private:
  void tick();
  void tell_now_and_then();
  void draw();
  [[nodiscard]] bool may_draw() const;
  [[nodiscard]] long long seconds() const;

  const Console console_;
  std::unique_ptr<supervise::Terminal> terminal_;  ///< null: lines are not drawn again
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string words_;
  bool done_ = false;
  std::thread ticker_;
};

}  // namespace nlaunch::report
