#pragma once
#include <gtest/gtest.h>

#include "sys/loop.h"

namespace nlaunch {

/// Runs the loop until something is true, for five seconds at most.
template <class True>
void run_until(sys::Loop& loop, True&& is_true) {
  using namespace std::chrono_literals;
  for (int i = 0; i < 500 && !is_true(); ++i) {
    loop.after(10ms, [&loop] { loop.stop(); });
    loop.run();
  }
  ASSERT_TRUE(is_true());
}

}  // namespace nlaunch
