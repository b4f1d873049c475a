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

/// Repeatedly checks whether a process that is ready still answers, without blocking the loop. Once
/// destroyed, it stops checking and calls nothing.
class Liveness {
 public:
  /// Called once: "http://n1:8000/health: no answer within 10s, 3 times in a row".
  using Silent = std::function<void(const std::string& reason)>;

  /// `like`: how the process is started; the program of `exec` is started in the same way.
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
  unsigned failures_ = 0;                          ///< consecutive
  std::chrono::steady_clock::time_point begun_{};  ///< start of the current or the last check
  sys::Loop::TimerId next_ = 0;
  sys::Loop::TimerId deadline_ = 0;  ///< of an `exec` program
  std::unique_ptr<sys::NetCheck> check_;
  std::unique_ptr<sys::ExecCheck> asked_;
};

}  // namespace nlaunch::supervise
