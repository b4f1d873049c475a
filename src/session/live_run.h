#pragma once
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "bench/metrics.h"
#include "plan/plan.h"
#include "record/timeline.h"
#include "report/run_prometheus.h"
#include "report/top.h"
#include "supervise/progress.h"
#include "sys/files.h"

namespace nlaunch::session {

/// The last 4 KiB of a regular file, without the line that they begin in the middle of; empty where there is
/// none. Links are not followed.
std::string tail_of(const std::filesystem::path& file);

/// When a run is to be read again, of which one reading began at `begin` and has just ended: after a second,
/// and with no more than a fiftieth of a core.
std::chrono::steady_clock::time_point next_reading(std::chrono::steady_clock::time_point begin);

/// A file that others append to, read as it grows.
class GrowingFile {
 public:
  explicit GrowingFile(std::filesystem::path path) : path_(std::move(path)) {}
  /// What is new since the last call; empty where the file is not there.
  std::string more();
  /// The same of a log: at most its newest 1 MiB.
  std::string newest();

 private:
  std::string read(bool newest);

  std::filesystem::path path_;
  sys::UniqueFd fd_;
  std::uint64_t read_ = 0;
};

/// A file of JSON lines, likewise.
class GrowingLines {
 public:
  explicit GrowingLines(std::filesystem::path path) : file_(std::move(path)) {}
  /// The objects among the new lines; one that is not complete yet comes later.
  std::vector<record::Json> more();

 private:
  GrowingFile file_;
  std::string half_;
};

/// A run directory that is read while the run goes on: only what is new, so that a run of a thousand nodes
/// costs little more than one of two.
class LiveRun {
 public:
  static Result<LiveRun> open(const std::string& runs_dir, const std::string& run);

  /// Reads what is new, except what look_at() adds. After `nlaunch update`, it has the new plan.
  report::TopView refresh();
  /// Adds what its own files tell of a process: last line, step, GPUs.
  void look_at(report::TopProcess& process);
  /// The GPUs of its processes that run, as their nodes sampled them last, and not long ago.
  [[nodiscard]] std::vector<report::GpuSample> gpus(const report::TopView& view);
  /// Where its processes that are ready serve metrics; of a replica, the first one.
  [[nodiscard]] std::vector<report::ScrapeTarget> targets(const report::TopView& view) const;

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] std::string id() const { return folder_.filename(); }
  /// The log of a process in the present attempt; nothing where its directory is not the run's own.
  [[nodiscard]] std::optional<std::filesystem::path> log_of(const std::string& process) const;

 private:
  struct Gpu {
    std::string bus_id, uuid;
  };
  /// Of one node, as the plan numbers them.
  using Gpus = std::vector<Gpu>;
  struct Addresses;
  /// Differs if the file was replaced or changed.
  struct Version {
    std::uint64_t inode = 0;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    bool operator==(const Version&) const = default;
  };

  static Version version_of(const std::filesystem::path& file);
  LiveRun(std::filesystem::path folder, plan::Plan plan, const record::Json& plan_json);

  void read_events();
  void note(const record::Json& event);
  void read_metrics();
  [[nodiscard]] std::vector<report::TopProcess> processes(const record::Timeline& timeline) const;
  [[nodiscard]] std::vector<report::TopStage> stages(const std::vector<report::TopProcess>& processes) const;
  [[nodiscard]] std::optional<std::filesystem::path> in_attempt(std::string_view directory,
                                                                const std::string& name) const;
  [[nodiscard]] std::optional<Addresses> addresses() const;
  [[nodiscard]] const Gpus& gpus_of(const std::string& host);
  void add_gpus(report::TopProcess& process, const plan::Process& planned);

  std::filesystem::path folder_;
  plan::Plan plan_;
  Version version_;                           ///< of the plan
  std::map<std::string, std::size_t> index_;  ///< of processes, by name
  record::TimelineBuilder builder_;
  GrowingLines events_;
  std::map<unsigned, GrowingLines> steps_;  ///< by attempt
  std::optional<GrowingFile> log_;          ///< of the first learner, in the present attempt
  std::unique_ptr<bench::MetricReader> metrics_;
  supervise::ProgressPattern progress_;
  unsigned attempt_ = 0;
  std::optional<double> walltime_end_;
  std::map<std::string, Gpus> gpus_;  ///< by host, in the present attempt
  record::Json run_;                  ///< the last event "run" or "taken-over"; null: none
  std::string outcome_;               ///< how it ended; empty: it has not
};

}  // namespace nlaunch::session
