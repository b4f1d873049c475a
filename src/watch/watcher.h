#pragma once
#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "plan/plan.h"
#include "watch/steps.h"

/// Whether a run gets on, from what its processes report. Pure: times come from who calls, since the attempt
/// began.
namespace nlaunch::watch {

/// The run makes no progress any more.
struct Stalled {
  bool began = false;  ///< false: it never made any
  Duration silent{};   ///< since its last progress, or since it was started
  std::optional<std::uint64_t> step;
};
/// A process does not keep up with the others.
struct Behind {
  std::size_t process = 0;
  std::uint64_t step = 0;
  std::uint64_t others = 0;  ///< the step that most have done
};
/// Most processes report steps, and this one none.
struct Mute {
  std::size_t process = 0;
};
using Finding = std::variant<Stalled, SlowStep, Behind, Mute>;

/// How far a process said that it is.
struct Reached {
  std::uint64_t step = 0;
  std::uint64_t total = 0;  ///< steps that there are to be
};

/// How the run got on, for its summary.
struct Progress {
  std::optional<std::uint64_t> last_step;
  std::uint64_t steps = 0;                               ///< reports of another step
  std::vector<double> seconds;                           ///< that steps took, the first ones left out
  std::vector<std::optional<std::uint64_t>> by_process;  ///< the last step of each
  std::vector<std::optional<Reached>> reached;           ///< of each that tells a total
  /// Of each, what its newest steps take by its own word. Empty: it does not say it.
  std::vector<std::vector<double>> own_seconds;
};

class Watcher {
 public:
  /// `watched`: of each process whether its progress is the run's. Without any, all are.
  Watcher(const plan::Watch& watch, std::vector<bool> watched);

  void started(std::size_t process, Duration at);
  void ended(std::size_t process);
  /// The process made progress and, where it says so, finished `step` of `total` in `seconds`. The same step
  /// again is no progress; a lower one is, and the count begins again. True: the run reached another step.
  bool progress(std::size_t process, Duration at, std::optional<std::uint64_t> step,
                std::optional<double> seconds, std::optional<std::uint64_t> total = std::nullopt);

  /// What is new. A stall is told once, and again only after new progress.
  std::vector<Finding> look(Duration now);

  [[nodiscard]] Progress summary() const;

 private:
  /// What is told with one total: training, an evaluation within it or after it.
  struct Bar {
    Reached reached;
    Duration first{};
    Duration last{};
  };
  struct Process {
    bool watched = false;
    bool running = false;
    std::optional<std::uint64_t> step{};  ///< since it was started
    std::optional<std::uint64_t> last{};  ///< the same, or of before its restart
    Duration step_at{};
    bool told = false;  ///< that it is behind, or mute
    std::vector<Bar> bars{};
    std::deque<double> seconds{};  ///< what its newest steps take by its own word
  };

  static void note_total(Process& process, Duration at, const Reached& reached);

  [[nodiscard]] std::optional<Stalled> stalled(Duration now);
  void find_stragglers(Duration now, std::vector<Finding>& found);

  plan::Watch watch_;
  std::vector<Process> processes_;
  Steps steps_;
  std::optional<Duration> start_;     ///< of the first watched process that runs
  std::optional<Duration> progress_;  ///< the last
  bool stall_told_ = false;
};

/// A finding as a sentence. `names` of the processes.
std::string text_of(const Finding& finding, const std::vector<std::string>& names);

}  // namespace nlaunch::watch
