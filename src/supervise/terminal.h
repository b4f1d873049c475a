#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace nlaunch::supervise {

/// Writes to a terminal, pipe or file from its own thread, so that a blocked one never stops the caller: what
/// does not fit into the bounded queue is skipped and counted, and reported there later.
class Terminal {
 public:
  struct Skipped {
    std::size_t lines = 0;
    std::size_t bytes = 0;
  };
  static constexpr std::size_t kQueue = 4U << 20U;  ///< bytes

  /// `fd` belongs to the caller and must stay open until this is destroyed.
  explicit Terminal(int fd, std::size_t queue = kQueue);
  /// Calls `finish` with at most half a second.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// Redirects further output; unwritten output to the old descriptor is skipped.
  void reopen(int fd);
  /// Queues complete lines. Never waits for a blocked terminal.
  void write(std::string_view text, std::size_t lines);
  /// Keeps these rows below everything that is written, from now on; none: removes them. Only for a terminal
  /// that understands ECMA-48, and with no row wider than it.
  void set_footer(const std::vector<std::string>& rows);
  /// From now on, the footer is drawn and removed only while `is_ours`, which the thread calls. Once it is
  /// false, another program has the screen: what was drawn stays there, and is forgotten.
  void draw_while(std::function<bool()> is_ours);
  /// Waits until everything queued is written; false if `limit` passes first.
  bool flush(Duration limit);
  /// Removes the footer. Like `flush`, but whole lines that are not written by then are skipped, and nothing
  /// more is written.
  void finish(Duration limit);
  /// Everything skipped so far. Its lines are those that were passed to `write`.
  [[nodiscard]] Skipped skipped() const;

 private:
  struct Queue;
  static std::shared_ptr<Queue> begin(int fd, std::size_t limit);
  std::shared_ptr<Queue> queue_;
};

/// Where a run writes: the output of its processes to standard output, messages to standard error. Where both
/// are the same file, one Terminal keeps their order.
class RunTerminal {
 public:
  /// Both descriptors belong to the caller and must stay open until this is destroyed.
  RunTerminal(int output, int messages);
  RunTerminal();

  [[nodiscard]] Terminal& output() { return output_; }
  [[nodiscard]] Terminal& messages() { return messages_ ? *messages_ : output_; }
  /// Standard output and standard error are the same file.
  [[nodiscard]] bool is_one() const { return !messages_; }

 private:
  Terminal output_;
  std::unique_ptr<Terminal> messages_;
};

}  // namespace nlaunch::supervise
