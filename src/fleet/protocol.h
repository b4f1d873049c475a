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

/// The messages between the leader of a run and the agents of its nodes: one JSON object each. Both are of
/// the same version of nlaunch and have the same plan.
namespace nlaunch::fleet {

namespace message {

// Before an agent is admitted. Every message except the challenge is inside a launch::Signed; a rejection for
// a missing token cannot be signed.

/// The leader's first line on every connection.
struct Challenge {
  std::string challenge;
};
/// The agent of a node.
struct Hello {
  std::uint32_t node = 0;            ///< index in the plan
  std::string plan{};                ///< its fingerprint
  std::string challenge{};           ///< for the leader
  std::string host{};                ///< the name of the node
  std::string address{};             ///< the address at which other nodes reach it
  std::vector<std::uint16_t> ports;  ///< as launch::ports_of() returns them
  std::string agent{};               ///< distinguishes it from another agent of the same node
  /// If it lost its relay: how many messages of the leader it has received.
  std::optional<std::uint64_t> received{};
};
/// The connection for the output of a node's processes: plain text follows, and there is no answer.
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

// In a conversation through relays; see Conversation, which does not count these.

/// How many messages have been received.
struct Confirm {
  std::uint64_t count = 0;
};
/// The leader's first message to an agent that lost its relay; what that agent lacks follows.
struct Resume {
  std::uint64_t received = 0;  ///< how many of its messages have arrived
};
/// From a relay, in the name of an agent that can no longer be reached through it.
struct Gone {
  std::string why;
  bool may_return = false;  ///< only its own relay is lost
};

// From the leader to its agents.

/// A file that all nodes have in common, if they share no directory.
struct Keep {
  std::string file;  ///< its name for launch::common_file()
  std::string text;
};
/// nodes.json has been written. Answered by Bound or NotBound.
struct Bind {};
/// Answered by preflight::Findings.
struct Look {
  PreflightLevel level = PreflightLevel::standard;
};
struct Supervise {
  Duration kill_wait{};  ///< from the SIGTERM that ends the job to the SIGKILL
};
/// Binds the node to another plan, for processes of these roles that start from now on; nothing changes until
/// Adopt. Answered by Prepared.
struct Prepare {
  std::string file;  ///< the file that contains the plan, by its name in the attempt
  std::vector<std::string> roles;
};
struct Adopt {};
/// Answered by Settled, when everything sent before is done.
struct Settle {};
struct Bye {
  std::optional<int> exit_code;  ///< empty: another attempt follows
};

// From an agent to the leader.

struct Bound {
  std::vector<std::string> notes;
  std::vector<std::string> dropped;          ///< inherited variables that were not passed on
  nlohmann::json libraries;                  ///< launch::libraries_of()
  nlohmann::json lock;                       ///< launch::provenance() of the first node; null for the others
  std::map<std::string, std::string> files;  ///< for all nodes: name for launch::common_file() → text
};
struct NotBound {
  int exit_code = 0;
  std::string sentence;
  std::string text;  ///< as shown to the user
};
struct Prepared {
  std::string file;
  std::string why;  ///< why it failed; empty: prepared
};
struct Settled {};
struct ProbeNews {
  unsigned run = 0;  ///< of preflight::probe_command::Start
  preflight::ProbeNews news;
};
/// Which process had which libnccl on the node.
struct Audit {
  nlohmann::json json;  ///< for audit.json
  std::vector<std::string> lines;
  std::size_t findings = 0;
};
/// The agent considers the leader lost and stops its processes.
struct Lost {
  std::string why;
};

}  // namespace message

using Message =
    std::variant<message::Challenge, launch::Signed, message::Hello, message::OutputHello, message::Welcome,
                 message::Refused,
                 // through relays
                 message::Confirm, message::Resume, message::Gone,
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

/// Returns text without control characters: {"type": ..., and the members by name}. Invalid UTF-8 becomes
/// U+FFFD.
std::string encode(const Message& message);
/// Fails with [fleet.message] and the reason if this is not a message: other JSON, a missing member, a number
/// out of range.
Result<Message> decode(std::string_view line);

/// Whether a Conversation counts this message: all but those about conversations.
bool is_counted(const Message& message);

/// Wraps a command of a lower layer (preflight::ProbeCommand, supervise::NodeCommand) as a message.
template <class Command>
Message as_message(const Command& command) {
  return std::visit([](const auto& one) -> Message { return one; }, command);
}

}  // namespace nlaunch::fleet
