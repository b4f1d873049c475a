#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/diagnostic.h"
#include "base/words.h"
#include "launch/job/handshake.h"
#include "launch/job/step.h"
#include "preflight/ask/remote_probes.h"
#include "preflight/clocks.h"
#include "preflight/findings.h"
#include "supervise/process_backend.h"
#include "supervise/remote_backend.h"

/// What the leader of a run and the agents of its nodes say to each other: a line of JSON a message. Both are
/// of one version of nlaunch and hold one plan.
namespace nlaunch::fleet {

namespace message {

// Until an agent is let in. All but the challenge travel within a launch::Signed; of what is refused for want
// of the token nothing can be signed.

/// The leader's first line on every connection.
struct Challenge {
  std::string challenge;
};
/// The agent of a node.
struct Hello {
  std::uint32_t node = 0;            ///< index in the plan
  std::string plan{};                ///< its fingerprint
  std::string challenge{};           ///< for the leader
  std::string host{};                ///< by which name the node is known
  std::string address{};             ///< by which the other nodes reach it
  std::vector<std::uint16_t> ports;  ///< as launch::ports_of() has them
  std::string agent{};               ///< by which it is known from another agent of the same node
};
/// The connection for what a node's processes write: plain text follows, and there is no answer.
struct OutputHello {
  std::uint32_t node = 0;
  std::string plan;
};
struct Welcome {
  launch::Assignment assignment;
};
struct Refused {
  std::string why;
};

// From the leader to its agents.

/// A file that all nodes have in common, where they share no folder.
struct Keep {
  std::string file;  ///< by its name for launch::common_file()
  std::string text;
};
/// nodes.json is there. To be answered by Bound or NotBound.
struct Bind {};
/// To be answered by preflight::Findings.
struct Look {
  PreflightLevel level = PreflightLevel::standard;
};
struct Supervise {
  Duration kill_wait{};  ///< from the SIGTERM that ends the job to the SIGKILL
};
/// The node is to be bound to another plan, for processes of these roles that start from now on; it stays as
/// it is until Adopt. To be answered by Prepared.
struct Prepare {
  std::string file;  ///< that has the plan, by its name in the attempt
  std::vector<std::string> roles;
};
struct Adopt {};
/// To be answered by Settled, when all that came before is done.
struct Settle {};
struct Bye {
  std::optional<int> exit_code;  ///< nothing: another attempt follows
};

// From an agent to the leader.

struct Bound {
  std::vector<std::string> notes;
  std::vector<std::string> dropped;          ///< inherited variables that were not passed on
  nlohmann::json libraries;                  ///< launch::libraries_of()
  nlohmann::json lock;                       ///< launch::provenance(), of the first node; null of the others
  std::map<std::string, std::string> files;  ///< for all nodes: name for launch::common_file() → text
};
struct NotBound {
  int exit_code = 0;
  std::string sentence;
  std::string text;  ///< as a person should read it
};
struct Prepared {
  std::string file;
  std::string why;  ///< it could not be; empty: it is
};
struct Settled {};
struct ProbeNews {
  unsigned run = 0;  ///< of preflight::probe_command::Start
  preflight::ProbeNews news;
};
/// Who had which libnccl on the node.
struct Audit {
  nlohmann::json json;  ///< for audit.json
  std::vector<std::string> lines;
  std::size_t findings = 0;
};
/// The agent takes the leader for gone, and ends what it has.
struct Lost {
  std::string why;
};

}  // namespace message

using Message =
    std::variant<message::Challenge, launch::Signed, message::Hello, message::OutputHello, message::Welcome,
                 message::Refused,
                 // to an agent
                 message::Keep, message::Bind, preflight::ClockQuestion, message::Look,
                 preflight::probe_command::Start, preflight::probe_command::Say,
                 preflight::probe_command::Kill, message::Supervise, supervise::node_command::Perform,
                 supervise::node_command::Ending, supervise::node_command::Finish, message::Prepare,
                 message::Adopt, message::Settle, message::Bye,
                 // to the leader
                 preflight::ClockAnswer, message::Bound, message::NotBound, preflight::Findings,
                 message::Prepared, message::Settled, message::ProbeNews, supervise::ProcessEvent,
                 message::Audit, supervise::BackendEnd, message::Lost>;

/// A line without its newline: {"type": ..., and the members by name}. Bytes that are no UTF-8 become U+FFFD.
std::string encode(const Message& message);
/// Fails [fleet.message] with the reason for what is no message: other JSON, a missing member, a number that
/// does not fit.
Result<Message> decode(std::string_view line);

/// A command of a layer below (preflight::ProbeCommand, supervise::NodeCommand) as the message that it is.
template <class Command>
Message as_message(const Command& command) {
  return std::visit([](const auto& one) -> Message { return one; }, command);
}

}  // namespace nlaunch::fleet
