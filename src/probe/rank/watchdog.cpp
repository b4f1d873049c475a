#include "probe/rank/watchdog.h"

#include <unistd.h>

namespace nlaunch::probe {

Watchdog::Watchdog() : thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::expect(Duration within, std::function<void()> tell) {
  const std::lock_guard lock(mutex_);
  deadline_ = std::chrono::steady_clock::now() + within;
  tell_ = std::move(tell);
  changed_.notify_all();
}

void Watchdog::done() {
  const std::lock_guard lock(mutex_);
  deadline_.reset();
  changed_.notify_all();
}

void Watchdog::watch() {
  constexpr int kTooLate = 3;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (!deadline_) {
      changed_.wait(lock);
    } else if (std::chrono::steady_clock::now() >= *deadline_) {
      tell_();
      ::_exit(kTooLate);
    } else {
      const auto until = *deadline_;  // wait_until must not see it change
      changed_.wait_until(lock, until);
    }
  }
}

}  // namespace nlaunch::probe
