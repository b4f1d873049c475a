#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "plan/bound.h"
#include "preflight/ask/probes.h"
#include "preflight/observations.h"
#include "sys/files.h"
#include "sys/loop.h"

namespace nlaunch::preflight {

/// The probes of this machine, as children of this process, each in the environment of its rank.
class LocalProbes : public Probes {
 public:
  struct Options {
    const plan::BoundNode& node;
    const std::vector<Rank>& ranks;     ///< of this node
    std::size_t first = 0;              ///< the index of the first of them among all ranks of the preflight
    std::string folder;                 ///< with spec.json; files that the probes leave are put there
    std::string probe;                  ///< path of nlaunch-probe
    std::vector<std::size_t> wanted{};  ///< which probes are started, among all ranks of the preflight
  };
  /// All of these must outlive this.
  LocalProbes(sys::Loop& loop, Options options);
  /// Does not wait: call kill() first, and receive the end of each probe.
  ~LocalProbes() override;

  void start(Tell tell) override;
  void say(std::size_t rank, const std::string& line) override;
  void kill() override;

 private:
  struct Probe {
    pid_t pid = -1;  ///< -1: not running
    sys::UniqueFd in;
    sys::UniqueFd out;
    std::string pending;  ///< an unfinished line
  };
  Result<void> start(std::size_t index);
  void read(std::size_t index);
  void ended(std::size_t index, sys::WaitStatus status);
  void give_up();
  void tell(std::size_t index, decltype(ProbeNews::what) what);
  [[nodiscard]] std::string error_file(std::size_t index) const;

  sys::Loop& loop_;
  Options options_;
  Tell tell_;
  std::vector<Probe> probes_;
  std::optional<sys::Loop::TimerId> patience_;
};

}  // namespace nlaunch::preflight
