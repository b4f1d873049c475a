#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervise/events.h"
#include "supervise/process_backend.h"
#include "sys/loop.h"
#include "watch/watcher.h"

namespace nlaunch::supervise {

/// Which process blocks a run, according to the evidence.
struct Judgement {
  std::string sentence;               ///< "learner.1 (rank 1) sleeps in train.py:12, the others wait for it"
  std::vector<std::string> lines;     ///< further lines for the user
  std::optional<ProcessIndex> fault;  ///< which process is at fault; empty: not sure
  Json json;                          ///< for the summary
};
/// Judges from the evidence in this directory and from each process's progress; also writes its verdict
/// there.
using Judge = std::function<Judgement(const std::string& folder, const watch::Progress& progress)>;

/// The file in an attempt's directory by which another program on any host requests evidence. The
/// investigator removes it; the result is the next event "evidence".
inline constexpr std::string_view kEvidenceWanted = "evidence-wanted";

/// Collects evidence from all processes of all nodes at the same time, in a separate directory, and has it
/// judged. One investigation at a time.
class Investigation {
 public:
  struct Options {
    std::filesystem::path evidence;  ///< directory for the evidence of this attempt
    std::size_t nodes = 1;           ///< that have to answer
    Judge judge{};                   ///< not given: evidence is not judged
    std::function<watch::Progress()> progress{};
    std::function<void(const std::string&)> say{};
    std::function<void(std::string_view event, const Json& fields)> record{};
    std::function<void(const action::Collect&)> collect{};
  };
  using Done = std::function<void(const std::string& folder, const Judgement& judgement)>;

  Investigation(sys::Loop& loop, Options options) : loop_(loop), options_(std::move(options)) {}
  ~Investigation() { stop(); }
  Investigation(const Investigation&) = delete;
  Investigation& operator=(const Investigation&) = delete;

  [[nodiscard]] bool goes_on() const { return awaited_ > 0; }
  /// Must not be called while an investigation is in progress. The result is printed and recorded before
  /// `done` is called.
  void begin(Done done);
  void on(const process_event::Collected& collected);
  /// Cancels the investigation in progress.
  void stop();

 private:
  void judge();

  sys::Loop& loop_;
  Options options_;
  Done done_;
  std::optional<sys::Loop::TimerId> deadline_;
  std::string folder_;
  std::size_t awaited_ = 0;  ///< nodes that have not answered
};

}  // namespace nlaunch::supervise
