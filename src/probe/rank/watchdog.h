#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "base/units.h"

namespace nlaunch::probe {

/// Ends the process when a step takes longer than it may. CUDA and NCCL can block where no deadline of their
/// own reaches, and a process that ends gives its GPU memory back whatever state it was in.
class Watchdog {
 public:
  Watchdog();
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// From now on, `within` for the step; then `tell` is called (from another thread) and the process ends
  /// with code 3. Replaces the step before.
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
