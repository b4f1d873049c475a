#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "sys/loop.h"
#include "sys/spawn.h"

namespace nlaunch::sys {

/// Runs a check program on a Loop without blocking it. It may take its time. If this is destroyed before the
/// program has exited, the program is killed with its process group and waited for briefly, and `done` is not
/// called.
class ExecCheck {
 public:
  /// Empty if it exited with 0, else the reason: "exited with code 1: 2 of 4 GPUs".
  using Done = std::function<void(std::optional<std::string>)>;
  /// `request` without its outputs, which are captured here. A program that cannot be started is a result,
  /// too.
  ExecCheck(Loop& loop, SpawnRequest request, Done done);
  ~ExecCheck();
  ExecCheck(const ExecCheck&) = delete;
  ExecCheck& operator=(const ExecCheck&) = delete;

  /// Its output so far, up to one mebibyte.
  [[nodiscard]] std::string said() const;
  /// The last line of that output.
  [[nodiscard]] std::string last_line() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nlaunch::sys
