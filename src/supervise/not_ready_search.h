#pragma once
#include <sys/types.h>

#include <functional>
#include <memory>
#include <vector>

#include "plan/plan.h"
#include "supervise/explanation.h"
#include "sys/loop.h"
#include "sys/net_check.h"

namespace nlaunch::supervise {

/// Looks around a process whose check has timed out: where it listens, and whether a usual health path
/// answers there. Does not block the loop, and takes two seconds at most.
class NotReadySearch {
 public:
  using Done = std::function<void(NotReadySeen)>;

  /// `ready`: with its references resolved. `tree`: the process and its descendants. `seen`: what is known so
  /// far. `done` is called once, not from within this call; never after this is destroyed.
  NotReadySearch(sys::Loop& loop, const plan::Ready& ready, const std::vector<pid_t>& tree, NotReadySeen seen,
                 Done done);
  ~NotReadySearch();
  NotReadySearch(const NotReadySearch&) = delete;
  NotReadySearch& operator=(const NotReadySearch&) = delete;

 private:
  struct Question {
    std::string url;
    bool answered = false;  ///< with 2xx
    std::unique_ptr<sys::NetCheck> check{};
  };
  void ask(const std::string& host, const std::string& port, const std::string& without);
  void finish();

  sys::Loop& loop_;
  NotReadySeen seen_;
  Done done_;
  std::vector<std::unique_ptr<Question>> questions_;  ///< in the order of preference
  std::size_t open_ = 0;
  sys::Loop::TimerId end_ = 0;
};

/// Whether a server at `host`, as a check names it, is one of this machine.
bool is_this_machine(const std::string& host);

}  // namespace nlaunch::supervise
