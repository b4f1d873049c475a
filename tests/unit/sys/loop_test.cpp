#include "sys/loop.h"

#include <gtest/gtest.h>

#include <csignal>
#include <memory>

namespace nlaunch::sys {
namespace {

volatile std::sig_atomic_t noted = 0;

TEST(Loop, LeavesASignalToWhoHadItBefore) {
  struct sigaction own {};
  struct sigaction before {};
  own.sa_handler = [](int signal) { noted = signal; };
  ASSERT_EQ(::sigaction(SIGUSR1, &own, &before), 0);
  int heard = 0;
  {
    Loop loop;
    loop.on_signal(SIGUSR1, [&] {
      ++heard;
      loop.stop();
    });
    loop.post([] { ::raise(SIGUSR1); });
    loop.run();
  }
  EXPECT_EQ(heard, 1);
  EXPECT_EQ(noted, 0);
  ::raise(SIGUSR1);  // would end this program where the default is left behind
  EXPECT_EQ(noted, SIGUSR1);
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST(Loop, TakesNoSignalFromAnotherOneThatGoesOn) {
  auto first = std::make_unique<Loop>();
  first->on_signal(SIGUSR2, [] {});
  Loop second;
  int heard = 0;
  second.on_signal(SIGUSR2, [&] {
    ++heard;
    second.stop();
  });
  first.reset();
  second.post([] { ::raise(SIGUSR2); });
  second.run();
  EXPECT_EQ(heard, 1);
}

}  // namespace
}  // namespace nlaunch::sys
