#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "plan/plan.h"
#include "sys/loop.h"
#include "sys/net_check.h"

namespace nlaunch::supervise {

/// The sum of all samples of a metric over all labels, in Prometheus text format; empty if there is none.
std::optional<double> metric(std::string_view text, std::string_view name);

/// Whether a server makes progress, according to its metrics. Pure.
class ThroughputWatch {
 public:
  explicit ThroughputWatch(const plan::Throughput& what) : what_(what) {}
  /// Takes its metrics at a time. Returns why it makes no progress, once that is certain.
  std::optional<std::string> look(std::string_view metrics, Duration now);

 private:
  plan::Throughput what_;
  std::optional<double> last_;
  std::optional<Duration> since_;  ///< when it was first busy with the current counter value
};

/// Repeatedly reads the metrics of a process that is ready. A server that does not answer is not reported
/// here: `alive` detects it. Once destroyed, it stops reading and calls nothing.
class ThroughputReader {
 public:
  /// Called at most once.
  using Idle = std::function<void(const std::string& reason)>;
  ThroughputReader(sys::Loop& loop, const plan::Throughput& what, Idle idle);
  ~ThroughputReader();
  ThroughputReader(const ThroughputReader&) = delete;
  ThroughputReader& operator=(const ThroughputReader&) = delete;

 private:
  void look_after_a_while();
  void judge(const std::expected<std::string, std::string>& metrics);

  sys::Loop& loop_;
  plan::Throughput what_;
  ThroughputWatch watch_;
  Idle idle_;
  sys::Loop::TimerId next_ = 0;
  std::unique_ptr<sys::NetCheck> check_;
};

}  // namespace nlaunch::supervise
