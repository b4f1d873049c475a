#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "preflight/ask/probes.h"
#include "preflight/observations.h"
#include "sys/loop.h"

namespace nlaunch::preflight {

/// The commands to a node's agent about its probes.
namespace probe_command {
struct Start {
  unsigned run = 0;                 ///< distinguishes these probes from earlier ones
  std::size_t first = 0;            ///< the index of the node's first rank among all ranks
  std::vector<std::size_t> wanted;  ///< the ranks that are started, by index among all ranks
  std::string folder;               ///< with spec.json
};
struct Say {
  std::size_t rank = 0;
  std::string line;  ///< for its standard input
};
struct Kill {};
}  // namespace probe_command
using ProbeCommand = std::variant<probe_command::Start, probe_command::Say, probe_command::Kill>;

/// The probes of many nodes, through their agents.
class RemoteProbes : public Probes {
 public:
  /// Sends a command to a node's agent, by the node's index in the plan.
  using Send = std::function<void(std::uint32_t node, const ProbeCommand& command)>;
  struct Options {
    const std::vector<Rank>& ranks;          ///< of all nodes, in node order
    const std::vector<std::size_t>& wanted;  ///< the ranks that are started
    std::string folder;                      ///< with spec.json
    unsigned run = 0;                        ///< distinguishes these probes from earlier ones
  };
  /// `lost`, by node: why it is already lost; empty: it is up.
  RemoteProbes(sys::Loop& loop, const std::vector<std::string>& lost, Send send, const Options& options);
  ~RemoteProbes() override;

  void start(Tell tell) override;
  void say(std::size_t rank, const std::string& line) override;
  void kill() override;

  /// News from a node's agent. News of earlier probes, or of an unknown rank, is ignored.
  void on_news(unsigned run, const ProbeNews& news);
  /// The connection to the node's agent has closed.
  void lose(std::uint32_t node, const std::string& why);

 private:
  struct Node {
    std::string lost{};  ///< why it is lost; empty: it is up
    std::optional<probe_command::Start> start{};
  };
  void tell(const ProbeNews& news);

  sys::Loop& loop_;
  std::vector<Node> nodes_;
  Send send_;
  std::vector<std::uint32_t> node_of_;  ///< by rank
  std::vector<bool> running_;
  unsigned run_;
  Tell tell_;
  std::optional<sys::Loop::TimerId> patience_;
};

}  // namespace nlaunch::preflight
