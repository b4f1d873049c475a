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
/// Lines are not encrypted. A line is "PROOF MESSAGE", where messages that were queued together share a
/// line and are separated by U+001E, which JSON does not contain: a proof and a system call for all of them.
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
    std::function<void(std::string_view text)> message;
    /// Called once; nothing comes after it. `why`: "was closed", or "carried an unsigned line".
    std::function<void(const std::string& why)> closed;
  };
  SealedChannel(sys::Loop& loop, std::unique_ptr<sys::Channel> channel, const Key& key);
  /// Flushes.
  ~SealedChannel();
  SealedChannel(const SealedChannel&) = delete;
  SealedChannel& operator=(const SealedChannel&) = delete;

  void set(Handlers handlers);
  /// Sends what is queued and this message, as sys::Channel::send does. `text` must not contain control
  /// characters.
  void send(std::string_view text);
  /// For one of many messages: it is sent with those that follow in this turn of the loop.
  void queue(std::string_view text);
  /// Sends what is queued, before something that blocks the loop.
  void flush();
  [[nodiscard]] const sys::Channel& connection() const { return *channel_; }

 private:
  void on_line(std::string_view line);
  void add(std::string_view text);

  sys::Loop& loop_;
  std::unique_ptr<sys::Channel> channel_;
  launch::LineProof sent_;
  launch::LineProof received_;
  std::string pending_;                 ///< messages with their separators
  std::shared_ptr<Handlers> handlers_;  ///< empty ones after the end of this object
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace nlaunch::fleet
