#pragma once
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/diagnostic.h"
#include "sys/channel.h"
#include "sys/loop.h"

namespace nlaunch::fleet {

/// Where agents report: each is challenged, and let in when it proves that it knows the token and holds the
/// same plan. Who does not is told why, as far as it may know.
class AdmissionServer {
 public:
  struct Options {
    std::string token;
    std::string plan;           ///< its fingerprint
    std::uint32_t nodes = 0;    ///< of the plan
    nlohmann::json assignment;  ///< for each who is let in
  };
  struct AdmittedAgent {
    std::uint32_t node = 0;
    nlohmann::json hello;
    std::unique_ptr<sys::Channel> channel;
    [[nodiscard]] bool is_output() const { return hello.contains("output"); }
  };
  struct Handlers {
    std::function<void(AdmittedAgent)> arrived;
    /// Somebody without the token: perhaps nobody of ours.
    std::function<void(const std::string& why)> stranger;
    /// One of ours, with whom the run can never begin.
    std::function<void(const std::string& why)> misfit;
  };
  /// `port`: 0 lets the system choose.
  static Result<std::unique_ptr<AdmissionServer>> open(sys::Loop& loop, std::uint16_t port, Options options,
                                                       Handlers handlers);
  [[nodiscard]] std::uint16_t port() const { return listener_->port(); }

 private:
  struct PendingConnection {
    std::unique_ptr<sys::Channel> channel;
    std::string challenge;
  };
  AdmissionServer(sys::Loop& loop, Options options, Handlers handlers)
      : loop_(loop), options_(std::move(options)), handlers_(std::move(handlers)) {}

  void accept(std::unique_ptr<sys::Channel> channel);
  void hear(sys::Channel* channel, std::string_view line);
  void admit(PendingConnection pending, nlohmann::json hello);
  void send_away(PendingConnection pending, const std::string& line);

  sys::Loop& loop_;
  Options options_;
  Handlers handlers_;
  std::unique_ptr<sys::Listener> listener_;
  std::map<sys::Channel*, PendingConnection> pending_;
};

}  // namespace nlaunch::fleet
