#pragma once
#include <functional>
#include <string>
#include <variant>

namespace nlaunch::preflight {

/// What happens to a probe.
namespace probe_news {
struct Said {
  std::string line;
};
struct Ended {
  std::string how;  ///< "exited with code 1; its last words: ..."
};
/// SIGKILL did not kill it in time.
struct Stuck {
  std::string state;  ///< "pid 4711, state D"
};
/// Its node no longer responds.
struct Lost {
  std::string why;
};
}  // namespace probe_news
struct ProbeNews {
  std::size_t rank = 0;  ///< index into Evidence::ranks
  std::variant<probe_news::Said, probe_news::Ended, probe_news::Stuck, probe_news::Lost> what;
};

/// The probes of some or all ranks, wherever they run: on this machine, or on the nodes of an allocation.
/// Each ends with one *Ended*, *Stuck* or *Lost*, on the leader's loop.
class Probes {
 public:
  using Tell = std::function<void(const ProbeNews&)>;
  Probes() = default;
  virtual ~Probes() = default;
  Probes(const Probes&) = delete;
  Probes& operator=(const Probes&) = delete;

  virtual void start(Tell tell) = 0;
  /// A line for the standard input of one probe.
  virtual void say(std::size_t rank, const std::string& line) = 0;
  virtual void kill() = 0;
};

}  // namespace nlaunch::preflight
