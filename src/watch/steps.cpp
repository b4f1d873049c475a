#include "watch/steps.h"

#include <algorithm>
#include <utility>

namespace nlaunch::watch {
namespace {

constexpr std::uint64_t kWarmUp = 3;  ///< reports that are not judged
constexpr std::size_t kEnough = 5;    ///< steps before one can be called slow
constexpr std::size_t kInARow = 3;    ///< slow steps
constexpr std::size_t kWindow = 50;   ///< number of steps for the median
constexpr std::size_t kKept = 1000;
constexpr double kFarTooLong = 5;      ///< times the median
constexpr double kLongerThanEver = 2;  ///< times the longest
constexpr double kWorthSaying = 1;     ///< seconds: shorter steps are not worth a report

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::ranges::max_element(values.begin(), middle)) / 2;
}

bool Steps::done(Duration at, std::uint64_t step, std::optional<double> seconds) {
  if (last_ && step <= *last_) return false;
  if (last_) {
    apart_ = step - *last_;
    const auto took = seconds ? *seconds : seconds_of(at - last_at_) / static_cast<double>(apart_);
    if (++count_ > kWarmUp) seconds_.push_back(took);
    if (seconds_.size() > kKept) seconds_.pop_front();
  }
  last_ = step;
  last_at_ = at;
  return true;
}

bool Steps::again(Duration at, std::uint64_t step) {
  // If several processes restart, the first is followed.
  if (!last_ || step >= *last_) return done(at, step, std::nullopt);
  last_ = step;
  last_at_ = at;
  ++count_;
  return true;
}

std::optional<SlowStep> Steps::look(Duration now) {
  auto found = slow_run();
  if (!found) found = slow_now(now);
  if (!found) told_ = false;
  if (!found || std::exchange(told_, true)) return std::nullopt;
  return found;
}

/// The last steps, compared with the median of those before them.
std::optional<SlowStep> Steps::slow_run() const {
  if (seconds_.size() < kEnough + kInARow) return std::nullopt;
  const auto last = seconds_.end() - kInARow;
  const auto first = seconds_.size() > kWindow + kInARow ? last - kWindow : seconds_.begin();
  const auto usual = median({first, last});
  const auto least = *std::min_element(last, seconds_.end());
  if (least <= slow_ * usual || least < kWorthSaying) return std::nullopt;
  return SlowStep{*last_, median({last, seconds_.end()}), usual, true};
}

/// The step in progress.
std::optional<SlowStep> Steps::slow_now(Duration now) const {
  if (seconds_.size() < kEnough) return std::nullopt;
  const auto usual = median({seconds_.begin(), seconds_.end()});
  const auto longest = *std::ranges::max_element(seconds_);
  const auto so_far = seconds_of(now - last_at_) / static_cast<double>(apart_);
  const auto limit = std::max({kFarTooLong * usual, slow_ * usual, kLongerThanEver * longest, kWorthSaying});
  if (so_far <= limit) return std::nullopt;
  return SlowStep{*last_ + apart_, so_far * static_cast<double>(apart_), usual, false};
}

}  // namespace nlaunch::watch
