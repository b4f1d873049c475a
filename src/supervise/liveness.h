#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/units.h"
#include "plan/plan.h"
#include "sys/exec_check.h"
#include "sys/loop.h"
#include "sys/net_check.h"
#include "sys/spawn.h"

namespace nlaunch::supervise {

/// Asks a process that is ready, again and again, whether it still answers; nothing of it blocks the loop.
/// Destroyed, it asks no more and calls nothing.
class Liveness {
 public:
  /// Called once: "http://n1:8000/health: no answer within 10s, 3 times in a row".
  using Silent = std::function<void(const std::string& reason)>;

  /// `like`: how the process is started, and so the program of `exec`.
  Liveness(sys::Loop& loop, plan::Alive alive, sys::SpawnRequest like, Silent silent);
  ~Liveness();
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

 private:
  void look_after(Duration pause);
  void look();
  void judge(const sys::CheckResult& result);

  sys::Loop& loop_;
  plan::Alive alive_;
  sys::SpawnRequest program_;
  Silent silent_;
  unsigned failures_ = 0;                          ///< one after the other
  std::chrono::steady_clock::time_point begun_{};  ///< the look that goes on, or the last
  sys::Loop::TimerId next_ = 0;
  sys::Loop::TimerId deadline_ = 0;  ///< of a program
  std::unique_ptr<sys::NetCheck> check_;
  std::unique_ptr<sys::ExecCheck> asked_;
};

}  // namespace nlaunch::supervise
