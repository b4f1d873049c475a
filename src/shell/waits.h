#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace nlaunch::shell {

/// Counts commands in a row that only query or wait: after very many, a script only waits for something that
/// does not come here.
class Waits {
 public:
  /// `most`: in a row that are enough.
  explicit Waits(std::size_t most = kMost) : most_(most) {}

  /// A command on this line (0: unknown) only queries or waits.
  void asked(std::uint32_t line) {
    ++count_;
    last_line_ = count_ == 1 ? line : std::max(last_line_, line);
  }
  /// Another command.
  void acted() { count_ = 0; }

  [[nodiscard]] std::size_t in_a_row() const { return count_; }
  [[nodiscard]] bool too_many() const { return count_ > most_; }
  /// The last line of those in a row.
  [[nodiscard]] std::uint32_t last_line() const { return last_line_; }

  /// For a script that is started node by node: true if the shell of the current node only waits and has to
  /// be killed. What it waited for does not come for the next nodes either, which get less time for it.
  bool ends_node() {
    if (count_ <= (last_line_ == endless_line_ ? kMostAgain : most_)) return false;
    count_ = 0;
    endless_line_ = last_line_;
    ends_node_ = true;
    return true;
  }
  /// The shell of a node was killed when it was at this line. Returns whether that was because it only
  /// waited.
  bool node_killed(std::uint32_t line) {
    if (!std::exchange(ends_node_, false)) return false;
    last_line_ = line;
    node_waited_ = true;
    return true;
  }
  /// True if a node was killed because it only waited.
  [[nodiscard]] bool node_waited() const { return node_waited_; }

 private:
  static constexpr std::size_t kMost = 500;
  static constexpr std::size_t kMostAgain = 50;  ///< where another node waited without success

  std::size_t most_;
  std::size_t count_ = 0;
  std::uint32_t last_line_ = 0;
  std::optional<std::uint32_t> endless_line_;  ///< the last line of a node that only waited; 0: unknown
  bool ends_node_ = false;                     ///< a shell is about to be killed
  bool node_waited_ = false;
};

}  // namespace nlaunch::shell
