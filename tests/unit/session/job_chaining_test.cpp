#include "session/job_chaining.h"

#include <gtest/gtest.h>

#include <csignal>

#include "supervise/outcome.h"

namespace nlaunch::session {
namespace {

using namespace std::chrono_literals;
using supervise::Cause;
using Then = Walltime::Then;

Next after(Then then, const Cause& cause, Duration took) {
  Walltime walltime;
  walltime.then = then;
  walltime.min_runtime = 15min;
  return next_after(walltime, then == Then::chain, supervise::name_of(cause), took);
}

TEST(NextAfter, IsDecidedByTheCauseAndNotByAnExitCodeThatProgramsShare) {
  const Cause walltime = supervise::WalltimeNear{};
  const Cause exited_75 = supervise::ProcessFailed{0, sys::WaitStatus(75 << 8)};
  const Cause killed_by_term = supervise::ProcessFailed{0, sys::WaitStatus(SIGTERM)};
  EXPECT_EQ(after(Then::requeue, walltime, 1min), Next::requeue);
  EXPECT_EQ(after(Then::requeue, exited_75, 20h), Next::nothing);
  EXPECT_EQ(after(Then::stop, walltime, 20h), Next::nothing);
  EXPECT_EQ(after(Then::chain, walltime, 1min), Next::successor);
  EXPECT_EQ(after(Then::chain, exited_75, 1min), Next::cancel_successor);
  EXPECT_EQ(after(Then::chain, exited_75, 20h), Next::successor);
  EXPECT_EQ(after(Then::chain, killed_by_term, 1min), Next::cancel_successor);
  EXPECT_EQ(after(Then::chain, killed_by_term, 20h), Next::successor);
  EXPECT_EQ(after(Then::chain, supervise::NodeLost{}, 20h), Next::successor);
  EXPECT_EQ(after(Then::chain, supervise::Finished{}, 20h), Next::cancel_successor);
  for (const int by_a_person : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    EXPECT_EQ(after(Then::chain, supervise::StoppedBySignal{by_a_person}, 20h), Next::cancel_successor);
}

}  // namespace
}  // namespace nlaunch::session
