#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "sys/loop.h"
#include "sys/spawn.h"

namespace nlaunch::sys {

/// A program that is asked whether all is well, on a Loop, without blocking it. It may take its time. When
/// this is destroyed before the program has ended, the program is killed with its process group, waited
/// for a moment, and `done` is not called.
class ExecCheck {
 public:
  /// Nothing when it ended with 0, else why not: "exited with code 1: 2 of 4 GPUs".
  using Done = std::function<void(std::optional<std::string>)>;
  /// `request` without its outputs, which are kept here. A program that cannot be started is an answer too.
  ExecCheck(Loop& loop, SpawnRequest request, Done done);
  ~ExecCheck();
  ExecCheck(const ExecCheck&) = delete;
  ExecCheck& operator=(const ExecCheck&) = delete;

  /// All that it has written so far, as far as it is no more than a mebibyte.
  [[nodiscard]] std::string said() const;
  /// The last line of that.
  [[nodiscard]] std::string last_line() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nlaunch::sys
