#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "supervise/crew.h"
#include "supervise/events.h"
#include "sys/loop.h"
#include "watch/watcher.h"

namespace nlaunch::supervise {

/// Who holds a run up, as the evidence shows it.
struct Judgement {
  std::string sentence;               ///< "learner.1 (rank 1) sleeps in train.py:12, the others wait for it"
  std::vector<std::string> lines;     ///< what else a person should see
  std::optional<ProcessIndex> fault;  ///< whose fault it is; empty: not sure
  Json json;                          ///< for the summary
};
/// From the evidence in this folder, and from how far each process had come; writes its verdict there, too.
using Judge = std::function<Judgement(const std::string& folder, const watch::Progress& progress)>;

/// Watches whether the run gets on, and does what the plan says when it does not: collects evidence of all
/// processes, names who holds it up, and ends it. Nothing is ended without evidence.
class Watching {
 public:
  struct Options {
    const plan::Plan& plan;
    const Rules& rules;
    std::vector<std::string> names;  ///< of the processes, by ProcessIndex
    std::filesystem::path evidence;  ///< folder for the evidence of this attempt
    Judge judge{};                   ///< not given: evidence is not judged
    std::function<void(const std::string&)> say{};
    std::function<void(std::string_view event, const Json& fields)> record{};
    std::function<void(const action::Collect&)> collect{};
    std::function<void(const event::Abort&)> abort{};
  };
  /// Looks each second, until it is destroyed or `stop`ped. Times are since it was made.
  Watching(sys::Loop& loop, Options options);
  ~Watching();
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

  void hear(const notice::Started& started);
  void hear(const notice::Ended& ended);
  void hear(const notice::Progress& progress);
  void hear(const notice::Collected& collected);
  /// The run ends: there is nothing to be watched any more.
  void stop();
  /// For the summary: steps, their median and spread, what was found, who was at which step.
  [[nodiscard]] Json summary() const;

 private:
  void look();
  void found(const watch::Finding& finding);
  void found_stall(const std::string& text);
  void judge();
  [[nodiscard]] Duration now() const;

  sys::Loop& loop_;
  Options options_;
  watch::Watcher watcher_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<sys::Loop::TimerId> timer_;
  std::optional<sys::Loop::TimerId> deadline_;
  std::string stall_;        ///< what the evidence that is being collected is about
  std::string folder_;       ///< of that evidence
  std::size_t awaited_ = 0;  ///< nodes that have not answered
  Json findings_ = Json::array();
};

}  // namespace nlaunch::supervise
