#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "launch/job/handshake.h"
#include "sys/channel.h"

namespace nlaunch::fleet {

/// A connection on which each line proves that the other end wrote it, and that none was left out, repeated
/// or reordered. The key is specific to this connection: derived from the token and both ends' challenges.
/// Lines are not encrypted.
class SealedChannel {
 public:
  /// Of an authenticated connection: the challenges are those of the handshake.
  struct Key {
    launch::End end;  ///< which end this is
    std::string_view token;
    std::string_view leader_challenge;
    std::string_view agent_challenge;
  };
  struct Handlers {
    /// A line without its newline and proof.
    std::function<void(std::string_view line)> line;
    /// Called once; nothing comes after it. `why`: "was closed", or "carried an unsigned line".
    std::function<void(const std::string& why)> closed;
  };
  SealedChannel(std::unique_ptr<sys::Channel> channel, const Key& key);
  ~SealedChannel();
  SealedChannel(const SealedChannel&) = delete;
  SealedChannel& operator=(const SealedChannel&) = delete;

  void set(Handlers handlers);
  /// As sys::Channel::send.
  void send(std::string_view text);
  [[nodiscard]] const sys::Channel& connection() const { return *channel_; }

 private:
  void on_line(std::string_view line);

  std::unique_ptr<sys::Channel> channel_;
  launch::LineProof sent_;
  launch::LineProof received_;
  std::shared_ptr<Handlers> handlers_;
};

}  // namespace nlaunch::fleet
