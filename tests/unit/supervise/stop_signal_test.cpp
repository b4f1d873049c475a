#include "supervise/stop_signal.h"

#include <gtest/gtest.h>

#include <csignal>

namespace nlaunch::supervise {
namespace {

TEST(StopSignal, IsNoneThatSomebodyElseSends) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
    EXPECT_NE(stop_signal(), signal);
  EXPECT_GE(stop_signal(), SIGRTMIN) << "it queues";
}

TEST(StopSignal, HasTheNameOfTheCommandAndTheCodeOfAnInterrupt) {
  EXPECT_EQ(name_of_stop(stop_signal()), "`nlaunch stop`");
  EXPECT_EQ(exit_code_of_stop(stop_signal()), 130);
  EXPECT_EQ(name_of_stop(SIGTERM), "SIGTERM");
  EXPECT_EQ(exit_code_of_stop(SIGTERM), 143);
  EXPECT_EQ(name_of_stop(SIGINT), "SIGINT");
  EXPECT_EQ(exit_code_of_stop(SIGINT), 130);
}

}  // namespace
}  // namespace nlaunch::supervise
