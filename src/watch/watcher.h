#pragma once
#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "plan/plan.h"
#include "watch/steps.h"

/// Whether a run makes progress, according to its processes' reports. Pure: times come from the caller, since
/// the start of the attempt.
namespace nlaunch::watch {

/// The run makes no progress.
struct Stalled {
  bool began = false;  ///< false: it never made any
  Duration silent{};   ///< since its last progress, or since its start
  std::optional<std::uint64_t> step;
};
/// A process falls behind the others.
struct Behind {
  std::size_t process = 0;
  std::uint64_t step = 0;
  std::uint64_t others = 0;  ///< the step that most have done
};
/// Most processes report steps, but this one does not.
struct Mute {
  std::size_t process = 0;
};
using Finding = std::variant<Stalled, SlowStep, Behind, Mute>;

/// The progress that a process reported.
struct Reached {
  std::uint64_t step = 0;
  std::uint64_t total = 0;  ///< total number of steps
};

/// The run's progress, for its summary.
struct Progress {
  std::optional<std::uint64_t> last_step;
  std::uint64_t steps = 0;                               ///< number of new steps reported
  std::vector<double> seconds;                           ///< durations of steps, without the first ones
  std::vector<std::optional<std::uint64_t>> by_process;  ///< the last step of each
  std::vector<std::optional<Reached>> reached;           ///< of each process that reports a total
  /// For each process, durations of its newest steps as it reports them. Empty: not reported.
  std::vector<std::vector<double>> own_seconds;
};

class Watcher {
 public:
  /// `watched`: for each process, whether its progress counts for the run. If none does, all count.
  Watcher(const plan::Watch& watch, std::vector<bool> watched);

  void started(std::size_t process, Duration at);
  void ended(std::size_t process);
  /// It reported progress, if known with `step`, which took `seconds`, of `total`. The same step again is
  /// ignored; a lower one is progress, and its count restarts. True: the run reached another step.
  bool progress(std::size_t process, Duration at, std::optional<std::uint64_t> step,
                std::optional<double> seconds, std::optional<std::uint64_t> total = std::nullopt);

  /// New findings. A stall is reported once, and again only after new progress.
  std::vector<Finding> look(Duration now);

  [[nodiscard]] Progress summary() const;

 private:
  /// Reports with the same total: training, or an evaluation within or after it.
  struct Bar {
    Reached reached;
    Duration first{};
    Duration last{};
  };
  struct Process {
    bool watched = false;
    bool running = false;
    std::optional<std::uint64_t> step{};  ///< since it was started
    std::optional<std::uint64_t> last{};  ///< the same, including before its restart
    Duration step_at{};
    bool told = false;  ///< that it is behind or mute has been reported
    std::vector<Bar> bars{};
    std::deque<double> seconds{};  ///< durations of its newest steps as it reports them
  };

  static void note_total(Process& process, Duration at, const Reached& reached);

  [[nodiscard]] std::optional<Stalled> stalled(Duration now);
  void find_stragglers(Duration now, std::vector<Finding>& found);

  plan::Watch watch_;
  std::vector<Process> processes_;
  Steps steps_;
  std::optional<Duration> start_;     ///< start of the first watched process
  std::optional<Duration> progress_;  ///< the last
  bool stall_told_ = false;
};

/// A finding as a sentence. `names` are those of the processes.
std::string text_of(const Finding& finding, const std::vector<std::string>& names);

}  // namespace nlaunch::watch
