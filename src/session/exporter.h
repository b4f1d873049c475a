#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "session/caller.h"
#include "sys/files.h"
#include "sys/sweep.h"

namespace nlaunch::session {

/// The process that exports the metrics of a run: `nlaunch exporter`. It reads the run directory as `nlaunch
/// top` does. It has none of the run's outputs, it is no descendant of the supervisor, and whatever becomes
/// of it, the run goes on.
class Exporter {
 public:
  /// Starts it if the plan has `metrics`. To be called before guard_run, whose guardian is then its parent.
  /// What does not work is said. `caller` must outlive this.
  Exporter(const plan::Plan& plan, const std::filesystem::path& run_folder, const Caller& caller);
  /// end()
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  /// The process itself; empty: none was started.
  [[nodiscard]] sys::ProcessIds processes() const;
  /// Says what it has reported since the last call.
  void say_troubles();
  /// The run is over: waits until it has written the last figures, for some seconds at most.
  void end();

 private:
  [[nodiscard]] sys::UniqueFd listen(const std::string& where) const;
  void start(std::vector<std::string> argv, int listening);
  void complain(const std::string& what) const;
  void await_end();

  const Caller& caller_;
  sys::UniqueFd channel_;  ///< at its end, the process has exited; none: it does not run
  pid_t pid_ = 0;
};

/// What that process does, until the run is over or its nlaunch is gone. `file`: for node_exporter's textfile
/// collector; empty: none. RUNS/file_sd.NAME.RUN-ID.json has the servers with metrics for `file_sd_configs`
/// of Prometheus. It ignores the signals that are meant for the run. Its standard input is the other end of
/// the channel; its standard output is the socket on which it listens, if it is a socket.
void export_metrics(const std::filesystem::path& run_folder, const std::filesystem::path& file);

}  // namespace nlaunch::session
