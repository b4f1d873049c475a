#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/units.h"

namespace nlaunch::supervise {

/// Writes to a terminal (or pipe, or file) from a thread of its own, so that one that blocks never stops the
/// caller: what does not fit into the bounded queue is skipped and counted, and said there later.
class Terminal {
 public:
  struct Skipped {
    std::size_t lines = 0;
    std::size_t bytes = 0;
  };
  static constexpr std::size_t kQueue = 4U << 20U;  ///< bytes

  /// `fd` stays the caller's and is to stay open until this is gone.
  explicit Terminal(int fd, std::size_t queue = kQueue);
  /// Does `finish`, for half a second at most.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// What follows goes there instead; what is not written yet to the one before is skipped.
  void reopen(int fd);
  /// Queues whole lines. Never waits for a terminal that blocks.
  void write(std::string_view text, std::size_t lines);
  /// Waits until everything queued is written, or `limit` is over. False in the second case.
  bool flush(Duration limit);
  /// As `flush`; what is not written by then is skipped, whole lines of it, and nothing is written any more.
  void finish(Duration limit);
  /// All that was skipped so far. Its lines are those that were given to be written.
  [[nodiscard]] Skipped skipped() const;

 private:
  struct Queue;
  static std::shared_ptr<Queue> begin(int fd, std::size_t limit);
  std::shared_ptr<Queue> queue_;
};

}  // namespace nlaunch::supervise
