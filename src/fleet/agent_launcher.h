#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "launch/bind/bind.h"
#include "preflight/search/suspects.h"

namespace nlaunch::fleet {

class NodeLender;

/// How the agents of an attempt are started: by programs started here that start all agents, or, if the
/// others start on their own, by one that starts the agent of this node.
class AgentLauncher {
 public:
  AgentLauncher() = default;
  virtual ~AgentLauncher() = default;
  AgentLauncher(const AgentLauncher&) = delete;
  AgentLauncher& operator=(const AgentLauncher&) = delete;

  /// Names of the nodes, as far as known before their agents connect.
  [[nodiscard]] virtual std::vector<std::string> nodes() const = 0;
  /// The name of the program, for messages.
  [[nodiscard]] virtual std::string starter() const = 0;
  /// The file of the attempt that contains its output.
  [[nodiscard]] virtual std::string log() const = 0;
  /// Its command and environment. Agents connect at `port` with `token`.
  struct Start {
    std::vector<std::string> argv;
    std::vector<std::string> env;
  };
  /// Why the nodes cannot have the run, if that is known before they are asked; empty if they can.
  [[nodiscard]] virtual std::string unfit() const { return ""; }
  /// Returns at least one program. The first starts the agents without which the run ends, and the run ends
  /// when it exits; when another one exits, only the agents that it started are lost.
  virtual Result<std::vector<Start>> start(const launch::RunPaths& paths, std::uint16_t port,
                                           const std::string& token) = 0;
  /// Announces this leader to agents that have lost the previous one. Only if they share a directory.
  virtual Result<void> announce(const launch::RunPaths& /*paths*/, std::uint16_t /*port*/,
                                const std::string& /*token*/) {
    return {};
  }
  /// Hosts of the job on which node `node` of the plan can be, including its own. Empty: a lost agent cannot
  /// be replaced.
  [[nodiscard]] virtual std::vector<std::string> hosts_for(std::uint32_t /*node*/) const { return {}; }
  /// The program that starts an agent on one of these hosts, as node `node`. Only after `start`.
  virtual Start start_again(const launch::RunPaths& /*paths*/, std::uint32_t /*node*/,
                            const std::string& /*host*/) {
    return {};
  }
  /// Provides the nodes of elastic pools; null if there is none. Must not be used after this is destroyed.
  [[nodiscard]] virtual NodeLender* lender() { return nullptr; }
  /// Records that a host was unfit. Returns what was done as a sentence; empty: nothing.
  virtual std::string note_unfit(const preflight::Suspect& /*suspect*/) { return ""; }
  /// The token and the port, if agents know them already; empty and 0: they are told.
  [[nodiscard]] virtual std::string token() const { return ""; }
  [[nodiscard]] virtual std::uint16_t port() const { return 0; }
  /// The address of this node at which they connect; empty: unknown.
  [[nodiscard]] virtual std::string address() const { return ""; }
  /// How many of its agents connect through others, and not directly.
  [[nodiscard]] virtual std::uint32_t relayed() const { return 0; }
  /// Time limit for all agents to connect.
  [[nodiscard]] virtual Duration patience() const = 0;
  /// From the SIGTERM that ends a job to the SIGKILL.
  [[nodiscard]] virtual Duration kill_wait() const = 0;
  /// Whether all nodes see this node's run directory.
  [[nodiscard]] virtual bool shares_a_folder() const = 0;
  /// What the user should check when a node does not answer.
  [[nodiscard]] virtual std::string look_at(const std::string& host) const = 0;
};

}  // namespace nlaunch::fleet
