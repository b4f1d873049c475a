#pragma once
#include <chrono>
#include <string>
#include <vector>

namespace nlaunch::preflight {

/// When each part of a preflight began and ended: of nlaunch itself, and of each probe.
class Timeline {
 public:
  using Clock = std::chrono::steady_clock;

  /// `lane`: who did it, "nlaunch" or "rank 3".
  void add(std::string lane, std::string name, Clock::time_point begin, Clock::time_point end = Clock::now());
  /// Chrome's trace event format, for ui.perfetto.dev and chrome://tracing: one row for each lane, times
  /// since the first of them.
  [[nodiscard]] std::string trace() const;

 private:
  struct Phase {
    std::string lane;
    std::string name;
    Clock::time_point begin;
    Clock::time_point end;
  };
  std::vector<Phase> phases_;
};

}  // namespace nlaunch::preflight
