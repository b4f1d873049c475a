#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/diagnostic.h"
#include "fleet/protocol.h"
#include "fleet/sealed_channel.h"
#include "sys/channel.h"
#include "sys/loop.h"

namespace nlaunch::fleet {

/// Where agents connect: each is challenged, and admitted if it proves that it knows the token and has the
/// same plan. A rejected one is told why, as far as it may know.
///
/// Anyone can connect. So until the proof, a connection gets little time and only short lines, and their
/// number is limited: one too many closes the oldest.
class AdmissionServer {
 public:
  struct Options {
    std::string token;
    std::string plan;                             ///< its fingerprint
    std::uint32_t nodes = 0;                      ///< of the plan
    launch::Assignment assignment;                ///< for each admitted agent
    Duration patience = std::chrono::seconds(5);  ///< with a connection that has not proved anything
  };
  struct AdmittedAgent {
    std::uint32_t node = 0;
    message::Hello hello{};
    std::unique_ptr<SealedChannel> channel{};
    std::optional<std::uint32_t> relay{};    ///< instead of a channel: the node whose agent has it
    std::unique_ptr<sys::Channel> output{};  ///< instead of all this: the connection for output
  };
  struct Handlers {
    std::function<void(AdmittedAgent)> arrived;
    /// A connection without the token: perhaps not an agent of this run.
    std::function<void(const std::string& why)> stranger;
    /// An agent of this run that can never take part.
    std::function<void(const std::string& why)> misfit;
  };
  static Result<std::unique_ptr<AdmissionServer>> open(sys::Loop& loop, const sys::ListenAt& at,
                                                       Options options, Handlers handlers);
  ~AdmissionServer();
  AdmissionServer(const AdmissionServer&) = delete;
  AdmissionServer& operator=(const AdmissionServer&) = delete;
  [[nodiscard]] std::uint16_t port() const { return listener_->port(); }
  /// The fingerprint of a plan that replaces the previous one. An agent that comes back may not have heard of
  /// it.
  void expect(std::string fingerprint) { before_ = std::exchange(options_.plan, std::move(fingerprint)); }

 private:
  struct PendingConnection {
    std::unique_ptr<sys::Channel> channel;
    std::string challenge;
    sys::Loop::TimerId deadline = 0;
    std::uint64_t number = 0;  ///< in order of arrival
  };
  AdmissionServer(sys::Loop& loop, Options options, Handlers handlers)
      : loop_(loop), options_(std::move(options)), handlers_(std::move(handlers)) {}

  void accept(std::unique_ptr<sys::Channel> channel);
  void on_message(sys::Channel* channel, std::string_view line);
  void forget(sys::Channel* channel);
  void make_room();
  void admit(PendingConnection pending, const message::Hello& hello);
  void admit(PendingConnection pending, const message::OutputHello& hello);
  /// Why an agent that knows the token cannot take part; empty if it can.
  [[nodiscard]] std::string misfit(const std::string& host, const std::string& plan, std::uint32_t node,
                                   bool comes_back) const;
  void reject(PendingConnection pending, const Message& message);
  [[nodiscard]] launch::Signed signed_for(const std::string& challenge, const Message& message) const;

  sys::Loop& loop_;
  Options options_;
  Handlers handlers_;
  std::unique_ptr<sys::Listener> listener_;
  std::map<sys::Channel*, PendingConnection> pending_;
  std::uint64_t came_ = 0;
  std::string before_;  ///< the fingerprint of the previous plan
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace nlaunch::fleet
