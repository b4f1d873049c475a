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

/// The sum of all samples of a metric, whatever their labels, in what Prometheus reads; nothing: there is
/// none.
std::optional<double> metric(std::string_view text, std::string_view name);

/// Whether a server gets on, by its metrics: pure.
class ThroughputWatch {
 public:
  explicit ThroughputWatch(const plan::Throughput& what) : what_(what) {}
  /// What its metrics are at a time. Why it does nothing, once that is sure.
  std::optional<std::string> look(std::string_view metrics, Duration now);

 private:
  plan::Throughput what_;
  std::optional<double> last_;
  std::optional<Duration> since_;  ///< when it was first busy with the counter as it is
};

/// Reads the metrics of a process that is ready, again and again. A server that does not answer is nobody's
/// news here: `alive` finds it. Destroyed, it asks no more and calls nothing.
class ThroughputReader {
 public:
  /// Called once.
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
