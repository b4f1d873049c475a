#pragma once
#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "preflight/observations.h"

namespace nlaunch::preflight {

/// How far the nodes' clocks are from the one of who decides, as NTP has it: with the times t0 (asked, here),
/// t1 and t2 (received and answered, there) and t3 (heard, here) the offset is ((t1-t0) + (t2-t3)) / 2, and
/// wrong by half the round trip at most. A node is asked three times; the fastest answer counts.
class ClockExchange {
 public:
  explicit ClockExchange(std::size_t nodes) : nodes_(nodes) {}

  /// The question, for one node: {"clock": [t0]}, in nanoseconds since 1970. Send it at once.
  [[nodiscard]] static nlohmann::json question();
  /// What the node says to that: {"clock": [t0, t1, t2]}.
  [[nodiscard]] static nlohmann::json answer(const nlohmann::json& question);

  /// Takes a node's answer in the moment in which it is heard: true when the node is to be asked once more.
  /// What is no answer is an exception.
  bool hear(std::uint32_t node, const nlohmann::json& answer);
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
