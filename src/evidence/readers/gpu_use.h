#pragma once
#include <map>
#include <string>
#include <string_view>

namespace nlaunch::evidence {

/// How busy a GPU has been, from the samples of `nlaunch-probe gpu-use`.
struct GpuUse {
  double busy_now = 0;   ///< percent, the median of the last samples
  double busy = 0;       ///< percent, the median of all
  double power_now = 0;  ///< watts, likewise; 0: NVML does not report it
  double power = 0;      ///< watts
  double working = 0;    ///< watts that it has drawn when working: the 90th percentile of all
  double limit = 0;      ///< its power limit in watts; 0: NVML does not report it

  /// It has been seen to draw far more than now.
  [[nodiscard]] bool draws_less() const;
  /// No kernel runs on it.
  [[nodiscard]] bool idle() const;
  /// A kernel runs on it all the time and computes nothing, like one that waits for another rank: it draws
  /// far less power than when working.
  [[nodiscard]] bool spins() const;
};

/// By bus id. Lines that are invalid or truncated are left out.
std::map<std::string, GpuUse> read_gpu_use(std::string_view lines);

}  // namespace nlaunch::evidence
