#include "sys/sweep.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <thread>

#include "sys/spawn.h"

namespace nlaunch::sys {
namespace {

using namespace std::chrono_literals;

class Sweep : public ::testing::Test {
 protected:
  void SetUp() override { become_subreaper(); }
  void TearDown() override { sweep({}, 5s); }

  /// Starts a shell script and waits for its end.
  static Subtree run(const std::string& script, std::uint64_t mark) {
    SpawnRequest request;
    request.argv = {"/bin/sh", "-c", script};
    request.env = {"PATH=/usr/bin:/bin"};
    request.mark = mark;
    const auto pid = spawn(request);
    EXPECT_TRUE(pid.has_value());
    ::waitpid(*pid, nullptr, 0);
    std::this_thread::sleep_for(100ms);  // for setsid
    return {*pid, mark};
  }

  static std::size_t alive() {
    std::size_t count = 0;
    for (const auto& process : descendants(::getpid())) count += process.state != 'Z' ? 1 : 0;
    return count;
  }
};

TEST_F(Sweep, TellsADaemonByItsMarkWhenItsParentIsGone) {
  const auto first = run("setsid env -i /bin/sleep 100 &", 4711);
  const auto second = run("setsid env -i /bin/sleep 100 &", 4712);
  const auto killed = kill_subtrees({first});
  ASSERT_EQ(killed.size(), 1U);
  EXPECT_EQ(killed[0].process.name, "sleep");
  EXPECT_NE(killed[0].process.session, first.leader);
  while (!kill_subtrees({first}).empty()) ::waitpid(killed[0].process.pid, nullptr, 0);
  EXPECT_EQ(alive(), 1U) << "the daemon of the other one is not touched";
  EXPECT_EQ(kill_subtrees({first, second}).size(), 1U);
}

TEST_F(Sweep, LeavesNoChildBehind) {
  run("sleep 100 & setsid sleep 100 &", 1);
  const auto report = sweep({}, 5s);
  EXPECT_EQ(report.killed.size(), 2U);
  EXPECT_TRUE(report.survivors.empty());
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "zombies would be children still";
}

TEST_F(Sweep, LeavesAloneWhatWasThereBefore) {
  run("sleep 100 &", 1);
  const auto before = own_descendants();
  ASSERT_EQ(before.size(), 1U);
  run("sleep 100 &", 1);
  EXPECT_EQ(sweep(before, 5s).killed.size(), 1U);
  EXPECT_EQ(own_descendants(), before);
}

TEST(Spawn, AFailedExecLeavesNothingAndSaysWhy) {
  const std::string script = ::testing::TempDir() + "no-interpreter";
  {
    const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(script.c_str(), "w"), &std::fclose);
    std::fputs("#!/no/such/interpreter\n", file.get());
  }
  ASSERT_EQ(::chmod(script.c_str(), 0700), 0);
  SpawnRequest request;
  request.argv = {script};
  const auto pid = spawn(request);
  ASSERT_FALSE(pid.has_value());
  EXPECT_EQ(pid.error().first_message(),
            "cannot start " + script +
                ": its first line names the interpreter '/no/such/interpreter', which does not exist");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  ::unlink(script.c_str());
}

}  // namespace
}  // namespace nlaunch::sys
