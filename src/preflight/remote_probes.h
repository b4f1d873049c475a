#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "preflight/evidence.h"
#include "preflight/probes.h"
#include "sys/channel.h"
#include "sys/loop.h"

namespace nlaunch::preflight {

/// The probes of many nodes, through their agents. An agent is sent {"probes": "start", "first", "folder"},
/// {"probes": "say", "rank", "line"} and {"probes": "kill"}; it answers with news.
class RemoteProbes : public Probes {
 public:
  struct Node {
    sys::Channel* channel = nullptr;  ///< outlives this; null: the node is lost already
    std::string lost;                 ///< why
  };
  /// `nodes` by index in the plan; `ranks` of all of them, node after node.
  RemoteProbes(sys::Loop& loop, std::vector<Node> nodes, const std::vector<Rank>& ranks, std::string folder);
  ~RemoteProbes() override;

  void start(Tell tell) override;
  void say(std::size_t rank, const std::string& line) override;
  void kill() override;

  /// News from a node's agent. What cannot be read is an exception.
  void hear(const nlohmann::json& message);
  /// The connection to the node's agent has ended.
  void lose(std::uint32_t node, const std::string& why);

 private:
  void tell(const ProbeNews& news);

  sys::Loop& loop_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> node_of_;  ///< by rank
  std::vector<bool> running_;
  std::string folder_;
  Tell tell_;
  std::optional<sys::Loop::TimerId> patience_;
};

nlohmann::json to_message(const ProbeNews& news);
ProbeNews news_from(const nlohmann::json& message);

}  // namespace nlaunch::preflight
