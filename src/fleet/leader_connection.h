#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleet/protocol.h"
#include "fleet/sealed_channel.h"
#include "sys/channel.h"
#include "sys/files.h"
#include "sys/loop.h"

namespace nlaunch::fleet {

/// An agent's connection to the leader's AdmissionServer: connects, proves that it knows the token, and
/// verifies that the other end does, too.
class LeaderConnection {
 public:
  struct Options {
    std::vector<std::string> addresses;  ///< or names, likely ones first
    std::uint16_t port = 0;
    std::string token;
    std::string plan;  ///< its fingerprint
    std::uint32_t node = 0;
    Duration limit{};
    Duration patience =
        std::chrono::seconds(5);  ///< with a server that accepts the connection and sends nothing
  };
  struct End {
    std::unique_ptr<SealedChannel> channel{};  ///< empty: not admitted
    launch::Assignment assignment{};
    std::string why{};     ///< not admitted
    bool refused = false;  ///< by the leader of this run: another try would not help
  };
  /// `hello`: what the agent reports about itself, given the connection; node, plan and challenge are added
  /// here. `done` is called once, and sets the channel's handlers before it returns.
  LeaderConnection(sys::Loop& loop, Options options, std::function<message::Hello(const sys::Channel&)> hello,
                   std::function<void(End)> done);
  ~LeaderConnection();
  LeaderConnection(const LeaderConnection&) = delete;
  LeaderConnection& operator=(const LeaderConnection&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  void connect();
  void on_challenge(std::string_view line);
  void on_answer(std::string_view line);
  void again();
  void on_welcome(const launch::Assignment& assignment);
  void end(End end);
  void stop_waiting();

  sys::Loop& loop_;
  Options options_;
  std::function<message::Hello(const sys::Channel&)> hello_;
  std::function<void(End)> done_;
  Clock::time_point deadline_;
  std::unique_ptr<sys::Connecting> connecting_;
  std::unique_ptr<sys::Channel> channel_;
  std::string their_challenge_;
  std::string challenge_;  ///< ours, once we have sent it
  std::optional<sys::Loop::TimerId> pause_;
  std::optional<sys::Loop::TimerId> silence_;
};

/// A plain connection to the same server for process output; empty if there is no server any more.
sys::UniqueFd connect_output(const std::string& address, const LeaderConnection::Options& options);

}  // namespace nlaunch::fleet
