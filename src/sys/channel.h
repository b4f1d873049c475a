#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "sys/loop.h"

/// Messages between nlaunch's processes on several nodes: lines over TCP.
namespace nlaunch::sys {

/// One end of a connection, on a Loop.
class Channel {
 public:
  struct Handlers {
    /// A line without its newline.
    std::function<void(std::string_view line)> line;
    /// Called once, when the other end is gone; nothing follows.
    std::function<void()> closed;
    /// In bytes: a longer line closes the connection, and no more of it is kept.
    std::size_t longest_line = std::size_t{64} << 20U;
  };
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  void set(Handlers handlers);
  /// Queues a line; `text` must not contain a newline. After the end it does nothing.
  void send(std::string_view text);
  /// Whether data has arrived that the loop has not read yet, or the other end is gone: for work that blocks
  /// the loop.
  [[nodiscard]] bool waiting() const;
  /// Queued bytes that have not been passed to the system yet.
  [[nodiscard]] std::size_t queued() const;
  /// The address of this end, at which the other one can be expected to reach this machine.
  [[nodiscard]] std::string own_address() const;
  [[nodiscard]] std::string peer_address() const;

 private:
  friend class Listener;
  friend class Connecting;
  struct State;
  explicit Channel(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// Where connections are accepted.
struct ListenAt {
  std::uint16_t port = 0;  ///< 0: chosen by the system
  std::string address{};   ///< IPv4; empty: all addresses of this machine
};

class Listener {
 public:
  using Accepted = std::function<void(std::unique_ptr<Channel>)>;
  static Result<std::unique_ptr<Listener>> open(Loop& loop, Accepted accepted, const ListenAt& at = {});
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  [[nodiscard]] std::uint16_t port() const;

 private:
  struct State;
  explicit Listener(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// Establishes a connection: tries the addresses ("10.0.0.1" or a name, with the one port) in order,
/// repeatedly, until `limit` has passed. Once destroyed, it calls nothing.
class Connecting {
 public:
  /// A null pointer: none could be reached; `why` has the errors of the last tries.
  using Done = std::function<void(std::unique_ptr<Channel>, std::string why)>;
  Connecting(Loop& loop, std::vector<std::string> addresses, std::uint16_t port, Duration limit, Done done);
  ~Connecting();
  Connecting(const Connecting&) = delete;
  Connecting& operator=(const Connecting&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace nlaunch::sys
