#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "preflight/ask/probes.h"
#include "preflight/observations.h"
#include "sys/channel.h"
#include "sys/loop.h"

namespace nlaunch::preflight {

/// The probes of many nodes, through their agents. An agent is sent {"probes": "start", "run", "first",
/// "wanted", "folder"}, {"probes": "say", "rank", "line"} and {"probes": "kill"}; it answers with news of
/// that run.
class RemoteProbes : public Probes {
 public:
  struct Node {
    sys::Channel* channel = nullptr;  ///< outlives this; null: the node is lost already
    std::string lost;                 ///< why
  };
  struct Options {
    const std::vector<Rank>& ranks;          ///< of all nodes, node after node
    const std::vector<std::size_t>& wanted;  ///< those that are started
    std::string folder;                      ///< with spec.json
    unsigned run = 0;                        ///< tells these probes from earlier ones
  };
  /// `nodes` by index in the plan.
  RemoteProbes(sys::Loop& loop, std::vector<Node> nodes, const Options& options);
  ~RemoteProbes() override;

  void start(Tell tell) override;
  void say(std::size_t rank, const std::string& line) override;
  void kill() override;

  /// News from a node's agent; what it says of earlier probes is nothing. What cannot be read is an
  /// exception.
  void hear(const nlohmann::json& message);
  /// The connection to the node's agent has ended.
  void lose(std::uint32_t node, const std::string& why);

 private:
  void tell(const ProbeNews& news);

  sys::Loop& loop_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> node_of_;  ///< by rank
  std::vector<bool> running_;
  std::vector<nlohmann::json> starts_;  ///< by node: what its agent is asked for; null: nothing
  unsigned run_;
  Tell tell_;
  std::optional<sys::Loop::TimerId> patience_;
};

nlohmann::json to_message(const ProbeNews& news, unsigned run = 0);
ProbeNews news_from(const nlohmann::json& message);

}  // namespace nlaunch::preflight
