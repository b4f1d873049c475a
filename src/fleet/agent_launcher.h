#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "launch/bind/bind.h"
#include "preflight/search/suspects.h"

namespace nlaunch::fleet {

class NodeLender;

/// How the agents of an attempt come to be: programs are started here that bring all of them, or one that
/// brings that of this node where the others come by themselves.
class AgentLauncher {
 public:
  AgentLauncher() = default;
  virtual ~AgentLauncher() = default;
  AgentLauncher(const AgentLauncher&) = delete;
  AgentLauncher& operator=(const AgentLauncher&) = delete;

  /// Of the nodes, as far as they are known before their agents are there.
  [[nodiscard]] virtual std::vector<std::string> nodes() const = 0;
  /// What the program is called, for people.
  [[nodiscard]] virtual std::string starter() const = 0;
  /// The file of the attempt that has what it says.
  [[nodiscard]] virtual std::string log() const = 0;
  /// Its words and its environment. Agents are to report at `port` with `token`.
  struct Start {
    std::vector<std::string> argv;
    std::vector<std::string> env;
  };
  /// Why the nodes cannot have the run, which is known before they are asked; empty: they may.
  [[nodiscard]] virtual std::string unfit() const { return ""; }
  /// One at least. The first brings those without which the run ends, and the run ends with it; with each
  /// other one no more ends than what it has brought.
  virtual Result<std::vector<Start>> start(const launch::RunPaths& paths, std::uint16_t port,
                                           const std::string& token) = 0;
  /// Says where this leader is to agents that have lost the one before. Only where they share a folder.
  virtual Result<void> announce(const launch::RunPaths& /*paths*/, std::uint16_t /*port*/,
                                const std::string& /*token*/) {
    return {};
  }
  /// Hosts of the job on which node `node` of the plan may be, its own among them. Empty: an agent that has
  /// gone cannot be brought back.
  [[nodiscard]] virtual std::vector<std::string> hosts_for(std::uint32_t /*node*/) const { return {}; }
  /// The program that brings an agent to one of these hosts, as node `node`. Only after `start`.
  virtual Start start_again(const launch::RunPaths& /*paths*/, std::uint32_t /*node*/,
                            const std::string& /*host*/) {
    return {};
  }
  /// What gives the nodes of elastic pools; null where nobody does. Not longer than this.
  [[nodiscard]] virtual NodeLender* lender() { return nullptr; }
  /// A host was not fit. What was made of that, as a sentence; empty: nothing.
  virtual std::string note_unfit(const preflight::Suspect& /*suspect*/) { return ""; }
  /// The token and the port, where agents know them already; empty and 0: they are told.
  [[nodiscard]] virtual std::string token() const { return ""; }
  [[nodiscard]] virtual std::uint16_t port() const { return 0; }
  /// By which of this node's addresses they come; empty: that is not known.
  [[nodiscard]] virtual std::string address() const { return ""; }
  /// For all agents to be there.
  [[nodiscard]] virtual Duration patience() const = 0;
  /// From the SIGTERM that ends a job to the SIGKILL.
  [[nodiscard]] virtual Duration kill_wait() const = 0;
  /// Whether all nodes see this one's run directory.
  [[nodiscard]] virtual bool shares_a_folder() const = 0;
  /// What a person should look at when a node does not answer.
  [[nodiscard]] virtual std::string look_at(const std::string& host) const = 0;
};

}  // namespace nlaunch::fleet
