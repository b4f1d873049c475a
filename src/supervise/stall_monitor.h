#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "supervise/events.h"
#include "supervise/investigation.h"
#include "supervise/process_backend.h"
#include "sys/loop.h"
#include "watch/watcher.h"

namespace nlaunch::supervise {

/// Watches the progress of the run and, when it stalls, does what the plan says: collects evidence from all
/// processes, names the one that blocks the others, and ends the run. Nothing is ended without evidence.
class StallMonitor {
 public:
  struct Options {
    const plan::Plan& plan;
    const Rules& rules;
    std::vector<std::string> names;  ///< of the processes, by ProcessIndex
    Investigation& investigation;    ///< must outlive this
    std::function<void(const std::string&)> say{};
    std::function<void(std::string_view event, const Json& fields)> record{};
    /// The run finished a step, which took `seconds` if the process reports it. At most ten per second.
    std::function<void(std::uint64_t step, std::optional<double> seconds)> step{};
    std::function<void(const event::Abort&)> abort{};
  };
  /// Checks every second until it is destroyed or `stop`ped. Times are since construction.
  StallMonitor(sys::Loop& loop, Options options);
  ~StallMonitor();
  StallMonitor(const StallMonitor&) = delete;
  StallMonitor& operator=(const StallMonitor&) = delete;

  void on(const process_event::Started& started);
  void on(const process_event::Ended& ended);
  void on(const process_event::Progress& progress);
  /// The run is ending: there is nothing left to watch.
  void stop();
  /// For the summary: steps, their median and spread, findings, and the step of each process.
  [[nodiscard]] Json summary() const;
  [[nodiscard]] watch::Progress progress() const { return watcher_.summary(); }

 private:
  void look();
  void tell_step();
  void found(const watch::Finding& finding);
  void found_stall(const std::string& text);
  void judged(const std::string& stall, const std::string& folder, const Judgement& judgement);
  [[nodiscard]] Duration now() const;

  sys::Loop& loop_;
  Options options_;
  watch::Watcher watcher_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<Duration> step_told_;
  std::optional<std::pair<std::uint64_t, std::optional<double>>> pending_step_;
  std::optional<sys::Loop::TimerId> timer_;
  Json findings_ = Json::array();
};

}  // namespace nlaunch::supervise
