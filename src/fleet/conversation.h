#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nlaunch::fleet {

/// One end of what the leader and an agent tell each other through relays. Both ends count the messages, and
/// keep what the other end has not confirmed yet: if a relay is lost, the conversation continues over another
/// connection, and no message is lost or repeated.
class Conversation {
 public:
  using Text = std::shared_ptr<const std::string>;

  /// Keeps a message until the other end has confirmed it.
  void sent(Text text) { unconfirmed_.push_back(std::move(text)); }
  /// The other end has received so many messages. False if that cannot be.
  bool confirmed(std::uint64_t count);
  /// What the other end lacks, after `confirmed`.
  [[nodiscard]] const std::deque<Text>& unconfirmed() const { return unconfirmed_; }

  /// A message arrived. True: the other end keeps several, so `received()` should be confirmed now.
  bool receive();
  [[nodiscard]] std::uint64_t received() const { return received_; }
  [[nodiscard]] bool has_not_begun() const {
    return received_ == 0 && confirmed_ == 0 && unconfirmed_.empty();
  }

 private:
  std::deque<Text> unconfirmed_;
  std::uint64_t confirmed_ = 0;
  std::uint64_t received_ = 0;
};

/// For or from which node a text is, where several share a connection.
struct Address {
  enum class To {
    peer,     ///< the agent at the end of the connection
    node,     ///< another one, which it relays for
    arrival,  ///< of another one: its Hello, the first that comes from it on this way
    all,      ///< that agent, and all that it relays for
  };
  To to = To::peer;
  std::uint32_t node = 0;  ///< for `node` and `arrival`
};
/// "17 {...}" for or from node 17, "+17 {...}" for its arrival, "* {...}" for all; a message alone is for the
/// agent at the end of the connection.
std::string addressed(const Address& address, std::string_view text);
struct Addressed {
  Address address;
  std::string_view text;  ///< a part of what was read
};
/// nullopt: no such address.
std::optional<Addressed> read_address(std::string_view text);

}  // namespace nlaunch::fleet
