#pragma once
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
#include "report/top.h"
#include "supervise/progress.h"
#include "sys/files.h"

namespace nlaunch::session {

/// A file that others append lines to, read as it grows. At most 1 MiB each time: of what grows faster, the
/// newest is read.
class GrowingFile {
 public:
  explicit GrowingFile(std::filesystem::path path) : path_(std::move(path)) {}
  /// What is new since the last call; empty where the file is not there. `from_start`: all of it the first
  /// time, however much that is.
  std::string more(bool from_start);

 private:
  std::filesystem::path path_;
  sys::UniqueFd fd_;
  std::uint64_t read_ = 0;
};

/// A run directory that is read while the run goes on: only what is new, so that a run of a thousand nodes
/// costs no more than one of two.
class LiveRun {
 public:
  static Result<LiveRun> open(const std::string& runs_dir, const std::string& run);

  /// Reads what is new, and has all of it but what look_at() adds.
  report::TopView refresh();
  /// Adds what its own files tell of a process: last line, step, GPUs.
  void look_at(report::TopProcess& process);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] const std::string& id() const { return id_; }
  /// The log of a process in the present attempt.
  [[nodiscard]] std::filesystem::path log_of(const std::string& process) const;

 private:
  /// By plan GPU: its bus id, on one node.
  using BusIds = std::vector<std::string>;

  LiveRun(std::filesystem::path folder, plan::Plan plan, const record::Json& plan_json);

  void read_events();
  void read_metrics();
  void look_at_state();
  [[nodiscard]] const BusIds& bus_ids(const std::string& host);
  void add_gpus(report::TopProcess& process, const plan::Process& planned);

  std::filesystem::path folder_;
  std::string id_;
  std::string runs_dir_;
  plan::Plan plan_;
  std::map<std::string, std::size_t> index_;  ///< of processes, by name
  std::unique_ptr<record::TimelineBuilder> builder_;
  GrowingFile events_;
  std::optional<GrowingFile> steps_;  ///< of the present attempt
  std::optional<GrowingFile> log_;    ///< of the first learner
  std::unique_ptr<bench::MetricReader> metrics_;
  supervise::ProgressPattern progress_;
  std::string half_event_, half_step_;
  std::optional<unsigned> attempt_;
  std::optional<double> walltime_end_;
  std::map<std::string, BusIds> bus_ids_;
  std::string state_;
  bool alive_ = false;
  double looked_at_ = 0;
};

}  // namespace nlaunch::session
