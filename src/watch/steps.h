#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/units.h"

namespace nlaunch::watch {

inline double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// A step that takes far longer than those before it.
struct SlowStep {
  std::uint64_t step = 0;
  double seconds = 0;  ///< so far, if it has not finished
  double median = 0;   ///< of the previous steps, seconds
  bool ended = false;
};

/// How long a run's steps take, from the time each was first reported.
class Steps {
 public:
  /// `slow`: a step of more than this many times the median is slow.
  explicit Steps(double slow) : slow_(slow) {}

  /// A process reported that `step` is done. `seconds`: its duration, if reported. A step that was reported
  /// before, or an older one, is ignored. True: it is a new step.
  bool done(Duration at, std::uint64_t step, std::optional<double> seconds);
  /// A process that had reported a later step counts from `step` on: the time between belongs to no step.
  /// True: so does the run.
  bool again(Duration at, std::uint64_t step);
  /// A slow step, reported once each time that steps become slow.
  ///
  /// The first steps (compilation, warm-up) are not judged. An evaluation or a checkpoint makes one step long
  /// now and then: so it takes three slow steps in a row, or one that has been running for longer than five
  /// times the median and twice the longest of the run.
  std::optional<SlowStep> look(Duration now);

  [[nodiscard]] std::optional<std::uint64_t> last() const { return last_; }
  /// Of all steps after the first ones, in seconds. At most the newest 1,000.
  [[nodiscard]] const std::deque<double>& seconds() const { return seconds_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  [[nodiscard]] std::optional<SlowStep> slow_run() const;
  [[nodiscard]] std::optional<SlowStep> slow_now(Duration now) const;

  double slow_;
  std::optional<std::uint64_t> last_;
  Duration last_at_{};
  std::uint64_t count_ = 0;
  std::uint64_t apart_ = 1;  ///< steps between the last two reports
  std::deque<double> seconds_;
  bool told_ = false;
};

/// With an even number, the mean of the middle two; 0 if there are none.
double median(std::vector<double> values);

}  // namespace nlaunch::watch
