#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "fleet/admission.h"
#include "fleet/conversation.h"

namespace nlaunch::fleet {

/// In an agent: admits the agents that connect to the leader through it, and passes on what they and the
/// leader tell each other. It does not read their messages.
class Relay {
 public:
  struct Handlers {
    /// A text for the leader, with its address.
    std::function<void(const std::string& text)> up;
    /// A line of output of the nodes below.
    std::function<void(std::string_view line)> output;
    /// The last of the agents below is gone.
    std::function<void()> empty;
  };
  static Result<std::unique_ptr<Relay>> open(sys::Loop& loop, const sys::ListenAt& at,
                                             AdmissionServer::Options options, Handlers handlers);

  [[nodiscard]] std::uint16_t port() const { return server_->port(); }
  /// For a node below, or for all of them. A text for a node that is not below is dropped: it has lost its
  /// way, and the leader sends it again.
  void down(const Address& address, std::string_view text);
  /// The fingerprint of a plan that replaces the previous one.
  void expect(std::string fingerprint) { server_->expect(std::move(fingerprint)); }
  [[nodiscard]] bool is_empty() const { return agents_.empty() && outputs_.empty(); }

 private:
  Relay(sys::Loop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}

  void admit(AdmissionServer::AdmittedAgent arrived);
  void add_output(std::unique_ptr<sys::Channel> channel);
  void pass_up(std::uint32_t child, std::string_view text);
  void lose(std::uint32_t child, const std::string& why);
  void remove(std::uint32_t child, const std::string& why, bool is_back);
  void close_later(std::shared_ptr<void> channel);

  sys::Loop& loop_;
  Handlers handlers_;
  std::unique_ptr<AdmissionServer> server_;
  struct Agent {
    std::string id;  ///< message::Hello::agent
    std::unique_ptr<SealedChannel> channel;
  };
  std::map<std::uint32_t, Agent> agents_;          ///< that are connected here, by node
  std::map<std::uint32_t, std::uint32_t> routes_;  ///< from each node below to the child
  std::map<const sys::Channel*, std::unique_ptr<sys::Channel>> outputs_;
};

}  // namespace nlaunch::fleet
