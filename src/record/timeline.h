#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/run_files.h"
#include "supervise/links.h"

/// What a run did with its time, from the files of its directory. Pure.
namespace nlaunch::record {

/// Where the time of a run goes. Every moment of a run is in exactly one of these.
enum class Phase {
  queue,       ///< submitted and not started: the run holds no GPU
  preflight,   ///< bound to its nodes and checked
  loading,     ///< processes start, up to the start of the first learner
  first_step,  ///< the learners run and have not finished a step
  productive,  ///< training steps that count
  stalled,     ///< no progress for longer than `watch` permits, from the last progress on
  lost,        ///< training steps that were done again, not finished, or not saved by a run that failed
  restart,     ///< an attempt has ended, and the next one has not begun
  shutdown,    ///< from the decision to end until all processes have exited
};
inline constexpr std::size_t kPhases = 9;
/// "first step"
std::string_view title_of(Phase phase);

/// Times in seconds since the run began: when it was submitted, or else when nlaunch started.
struct Interval {
  double begin = 0;
  double end = 0;
  [[nodiscard]] double seconds() const { return end - begin; }
};

struct PhaseSpan {
  Phase phase{};
  Interval time{};
};

/// Why time of a run was not productive.
struct Cause {
  enum class Kind {
    first_start,  ///< until the first training step
    failure,      ///< a process failed, or was never ready
    lost_node,
    stall,
    walltime,
    stopped,  ///< by a person or the scheduler
    killed,   ///< nlaunch or its job, without a chance to say so
    request,  ///< `nlaunch restart`, `drain` or `update`
    finished,
  } kind{};
  double at = 0;                      ///< from when on; steps before it that were not saved are lost by it
  std::string what{};                 ///< "engine.0 exited with code 1 after 40.2s"; may be empty
  std::string why{};                  ///< what `diagnose`, or the evidence of a stall, says; empty: nothing
  std::string job{};                  ///< in which it occurred; empty: in none
  std::optional<unsigned> attempt{};  ///< that it ended
  unsigned restart = 0;  ///< of the run, in the same allocation, counted from 1; 0: none followed
};
inline constexpr std::size_t kCauses = 9;
/// "first start"
std::string_view title_of(Cause::Kind kind);

/// What one cause cost.
struct Cost {
  Cause cause;
  std::array<double, kPhases> seconds{};  ///< by phase; none of them productive
  [[nodiscard]] double total() const;
  /// Without the queue, in which the run holds no GPU.
  [[nodiscard]] double held() const;
};

struct TrainingStep {
  double at = 0;             ///< when it was finished
  std::uint64_t step = 0;    ///< as the process counts
  std::uint64_t number = 0;  ///< of the run: a count that begins anew with each epoch goes on here
  double seconds = 0;        ///< as the process reported it, else since the step before; 0: not known
  unsigned attempt = 0;
  bool first = false;  ///< since its learner started
  bool slow = false;   ///< more than twice the median
  bool lost = false;
};

struct ProcessSpan {
  enum class State { starting, up, stale } state{};
  Interval time{};
  std::string end{};  ///< "exited with code 1"; empty: it did not exit then
};

/// The process did its work, or was asked to stop. Runs of older versions have "was ended by".
bool exited_well(std::string_view end);

struct ProcessRow {
  std::string name;  ///< "engine.0"
  std::string host;  ///< the last one; empty in a run on one machine
  std::vector<ProcessSpan> spans;
};

/// Something that happened at one moment.
struct Mark {
  double at = 0;
  std::string what;
};

/// Of the steps whose time is known. The first after each start of a learner is left out: it compiles and
/// warms up.
struct StepTimes {
  std::size_t count = 0;
  double median = 0;
  double p90 = 0;
  double longest = 0;
  std::size_t slow = 0;
};

struct Timeline {
  double began = 0;  ///< seconds since 1970, UTC
  double seconds = 0;
  bool over = false;
  std::uint32_t gpus = 0;  ///< of the allocation; 0 where CPU slots stand for them
  std::vector<PhaseSpan> phases;
  std::vector<TrainingStep> steps;
  std::vector<ProcessRow> processes;
  std::vector<Mark> marks;  ///< the newest 500
  std::vector<supervise::Link> links;
  std::vector<Cause> causes{};  ///< in their order; the first start is the first one

  [[nodiscard]] double in(Phase phase, const Interval& of) const;
  [[nodiscard]] double in(Phase phase) const { return in(phase, {0, seconds}); }
  /// The effective training time ratio: productive time over all time, the queue included (Kokolis et al.,
  /// arXiv:2410.21680, section 3). Nothing for an empty interval.
  [[nodiscard]] std::optional<double> ettr(const Interval& of) const;
  [[nodiscard]] std::optional<double> ettr() const { return ettr({0, seconds}); }
  /// The GPUs of the allocation, for as long as the run held them in this phase.
  [[nodiscard]] double gpu_hours(Phase phase) const;
  [[nodiscard]] double gpu_hours(const Cost& cost) const;
  [[nodiscard]] StepTimes step_times() const;
};

/// All time that was not productive, by cause; the most expensive first. Lost steps count for what ended
/// them, all other time for what came before it: a failure costs its shutdown, the wait, and the next start.
std::vector<Cost> costs_of(const Timeline& timeline);

/// Builds it while the run goes on.
class TimelineBuilder {
 public:
  /// `job`: as RunFiles has it; null where the run was not submitted.
  TimelineBuilder(const Json& plan, const Json& job);
  ~TimelineBuilder();
  TimelineBuilder(TimelineBuilder&&) noexcept;
  TimelineBuilder& operator=(TimelineBuilder&&) noexcept;

  /// The next event, in the order of events.jsonl, or the next training step of an attempt. The two files are
  /// merged by their times.
  void take(const Json& event, unsigned attempt = 0);
  struct AttemptSteps {
    unsigned number = 0;
    std::span<const Json> steps;
  };
  /// More of both files, merged; the attempts in their order.
  void take(const std::vector<Json>& events, const std::vector<AttemptSteps>& steps);
  /// The step of the newest complete checkpoint, where something else than the events tells it.
  void set_saved(std::optional<std::uint64_t> step);
  /// Up to `now`, seconds since 1970, or else to the last event where nobody leads the run.
  [[nodiscard]] Timeline timeline(double now, bool alive) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// The same of a whole run at once. Of a run that failed it knows from the summary what was saved, and from
/// the diagnoses of its attempts why they failed.
Timeline timeline_of(const RunFiles& run, double now, bool alive);

}  // namespace nlaunch::record
