#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "base/units.h"

namespace nlaunch::probe {

/// Terminates the process if a step takes too long. CUDA and NCCL can block where none of their own deadlines
/// applies, and a process that exits frees its GPU memory in any state.
class Watchdog {
 public:
  Watchdog();
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// From now on, `within` for the step; then `tell` is called (from another thread) and the process exits
  /// with code 3. Replaces the previous step.
  void expect(Duration within, std::function<void()> tell);
  void done();

 private:
  void watch();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  std::function<void()> tell_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace nlaunch::probe
