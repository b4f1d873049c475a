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
/// Lines are not encrypted. A line is "PROOF MESSAGE", where the messages of one turn of the loop share a
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
  /// Queues a message, which is on its way when the loop has run. `text` must not contain control characters.
  void send(std::string_view text);
  /// For a caller that does not return to the loop.
  void flush();
  [[nodiscard]] const sys::Channel& connection() const { return *channel_; }

 private:
  void on_line(std::string_view line);

  sys::Loop& loop_;
  std::unique_ptr<sys::Channel> channel_;
  launch::LineProof sent_;
  launch::LineProof received_;
  std::string pending_;                 ///< messages with their separators
  std::shared_ptr<Handlers> handlers_;  ///< empty ones after the end of this object
};

}  // namespace nlaunch::fleet
