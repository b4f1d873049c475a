#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "preflight/observations.h"

namespace nlaunch::preflight {

/// Times of two clocks, in nanoseconds since 1970.
struct ClockQuestion {
  std::int64_t asked = 0;  ///< by the leader's clock
};
struct ClockAnswer {
  std::int64_t asked = 0;     ///< as the question had it
  std::int64_t received = 0;  ///< by the node's clock
  std::int64_t answered = 0;  ///< by the node's clock
};

/// How far the nodes' clocks are from the leader's, as in NTP: with the times t0 (sent, here), t1 and t2
/// (received and answered, there) and t3 (received, here), the offset is ((t1-t0) + (t2-t3)) / 2, with an
/// error of at most half the round trip. Each node is asked three times; the fastest answer counts.
class ClockExchange {
 public:
  explicit ClockExchange(std::size_t nodes) : nodes_(nodes) {}

  /// The question for one node. Send it immediately.
  [[nodiscard]] static ClockQuestion question();
  /// The node's answer to it.
  [[nodiscard]] static ClockAnswer answer(const ClockQuestion& question);

  /// Takes a node's answer at the moment it arrives: true if the node must be asked again.
  bool on_answer(std::uint32_t node, const ClockAnswer& answer);
  [[nodiscard]] bool complete() const;
  /// By node; nothing: it has not answered.
  [[nodiscard]] std::vector<std::optional<ClockOffset>> offsets() const;

 private:
  struct Node {
    int answers = 0;
    std::optional<ClockOffset> best{};
  };
  std::vector<Node> nodes_;
};

}  // namespace nlaunch::preflight
