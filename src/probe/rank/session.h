#pragma once
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "probe/gpu/rank.h"
#include "probe/rank/communicator.h"
#include "probe/rank/mail.h"
#include "probe/rank/spec.h"
#include "probe/rank/watchdog.h"

namespace nlaunch::probe {

/// The life of one rank, see rank.h. Every step is reported on standard output when it starts or finishes.
class Session {
 public:
  Session(Spec spec, unsigned index, Mail mail);

  /// Opens the GPU and the library and reports its identity.
  bool identify();
  /// Waits for permission, then checks and times all groups of this rank.
  bool measure();
  /// Finds the transport of the groups that request it, unless measure() has; if libnccl reads NCCL_DEBUG
  /// only once, this process starts over as `again`, which does only this.
  bool find_transports(std::vector<std::string> again);
  void done() const;
  [[nodiscard]] bool drilled() const;
  /// After a drill: stays alive, since a rank that exits is itself something that the others see, until the
  /// process that started it closes its input.
  void linger() const;
  /// Opens the GPU and the library without reporting.
  bool open();

 private:
  [[nodiscard]] bool takes_part(const GroupSpec& group) const;
  [[nodiscard]] bool asks_for_transport() const;
  [[nodiscard]] bool logs_from_start() const;
  void log_transports(const char* subsystems) const;
  [[nodiscard]] JoinRequest request(std::size_t group, const std::string& key);
  void take_drill_environment() const;
  bool drill(std::size_t group);
  Result<Communicator*> join(std::size_t group, const std::string& key);
  bool enter(std::size_t group, const std::string& key, Communicator*& communicator);
  std::optional<std::uint64_t> wait_for_go();
  bool measure_group(std::size_t group);
  bool measure_size(const GroupSpec& group, Communicator& communicator, std::uint64_t bytes);
  bool measure(const GroupSpec& group, Communicator& communicator, const Workload& workload);
  Result<std::vector<double>> timed(Communicator& communicator, const Workload& workload);
  bool connect(const GroupSpec& group, Communicator& communicator);
  bool find_transport(std::size_t group);
  bool find_choices(const GroupSpec& group, Communicator& communicator, const Workload& workload);
  void expect(const char* phase, const std::string& group, Duration within);
  bool fail(const char* phase, const std::string& group, const Diagnostics& why);

  Spec spec_;
  unsigned index_;
  Mail mail_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::unique_ptr<GpuRank> gpu_;
  std::map<std::string, std::unique_ptr<Communicator>> communicators_;
  std::map<std::string, std::string> logs_;  ///< by communicator: what NCCL logged while it was used
  Watchdog watchdog_;                        // last: it must not outlive what it reports on
};

}  // namespace nlaunch::probe
