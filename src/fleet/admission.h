#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "fleet/protocol.h"
#include "fleet/sealed_channel.h"
#include "sys/channel.h"
#include "sys/loop.h"

namespace nlaunch::fleet {

/// Where agents report: each is challenged, and let in when it proves that it knows the token and holds the
/// same plan. Who does not is told why, as far as it may know.
///
/// Anybody may connect. So until the proof a connection has little time and short lines, and there are few of
/// them: one too many costs the one that has waited for the longest.
class AdmissionServer {
 public:
  struct Options {
    std::string token;
    std::string plan;                             ///< its fingerprint
    std::uint32_t nodes = 0;                      ///< of the plan
    launch::Assignment assignment;                ///< for each who is let in
    Duration patience = std::chrono::seconds(5);  ///< with who has connected and proves nothing
  };
  struct AdmittedAgent {
    std::uint32_t node = 0;
    message::Hello hello{};
    std::unique_ptr<SealedChannel> channel{};
    std::unique_ptr<sys::Channel> output{};  ///< in place of all this: the connection for output
  };
  struct Handlers {
    std::function<void(AdmittedAgent)> arrived;
    /// Somebody without the token: perhaps nobody of ours.
    std::function<void(const std::string& why)> stranger;
    /// One of ours, with whom the run can never begin.
    std::function<void(const std::string& why)> misfit;
  };
  static Result<std::unique_ptr<AdmissionServer>> open(sys::Loop& loop, const sys::ListenAt& at,
                                                       Options options, Handlers handlers);
  ~AdmissionServer();
  AdmissionServer(const AdmissionServer&) = delete;
  AdmissionServer& operator=(const AdmissionServer&) = delete;
  [[nodiscard]] std::uint16_t port() const { return listener_->port(); }
  /// Of a plan that has taken the place of the one before.
  void expect(std::string fingerprint) { options_.plan = std::move(fingerprint); }

 private:
  struct PendingConnection {
    std::unique_ptr<sys::Channel> channel;
    std::string challenge;
    sys::Loop::TimerId deadline = 0;
    std::uint64_t number = 0;  ///< in the order of their coming
  };
  AdmissionServer(sys::Loop& loop, Options options, Handlers handlers)
      : loop_(loop), options_(std::move(options)), handlers_(std::move(handlers)) {}

  void accept(std::unique_ptr<sys::Channel> channel);
  void on_message(sys::Channel* channel, std::string_view line);
  void forget(sys::Channel* channel);
  void make_room();
  void admit(PendingConnection pending, const message::Hello& hello);
  void admit(PendingConnection pending, const message::OutputHello& hello);
  /// Why one who knows the token cannot take part; empty: it can.
  [[nodiscard]] std::string misfit(const std::string& host, const std::string& plan,
                                   std::uint32_t node) const;
  void send_away(PendingConnection pending, const Message& message);
  [[nodiscard]] launch::Signed signed_for(const std::string& challenge, const Message& message) const;

  sys::Loop& loop_;
  Options options_;
  Handlers handlers_;
  std::unique_ptr<sys::Listener> listener_;
  std::map<sys::Channel*, PendingConnection> pending_;
  std::uint64_t came_ = 0;
};

}  // namespace nlaunch::fleet
