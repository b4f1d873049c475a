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

/// Who holds a run up, as the evidence shows it.
struct Judgement {
  std::string sentence;               ///< "learner.1 (rank 1) sleeps in train.py:12, the others wait for it"
  std::vector<std::string> lines;     ///< what else a person should see
  std::optional<ProcessIndex> fault;  ///< whose fault it is; empty: not sure
  Json json;                          ///< for the summary
};
/// From the evidence in this folder, and from how far each process had come; writes its verdict there, too.
using Judge = std::function<Judgement(const std::string& folder, const watch::Progress& progress)>;

/// The file in the folder of an attempt by which another program on any host asks for evidence. Whoever
/// investigates removes it; what comes of it is the next event "evidence".
inline constexpr std::string_view kEvidenceWanted = "evidence-wanted";

/// Collects evidence of all processes of all nodes at the same time, in a folder of its own, and has it
/// judged. One at a time.
class Investigation {
 public:
  struct Options {
    std::filesystem::path evidence;  ///< folder for the evidence of this attempt
    std::size_t nodes = 1;           ///< that are to answer
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
  /// Not to be called while one goes on. What it finds is said and recorded before `done` is called.
  void begin(Done done);
  void on(const process_event::Collected& collected);
  /// What goes on is given up.
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
