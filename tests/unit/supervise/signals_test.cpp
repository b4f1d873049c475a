#include "supervise/signals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "sys/spawn.h"
#include "sys/sweep.h"
#include "sys/wait_status.h"

namespace nlaunch::supervise {
namespace {

/// A shell in a session of its own, with a child.
class Shell {
 public:
  Shell() {
    sys::SpawnRequest request;
    request.argv = {"/bin/sh", "-c", "sleep 1000; exit 3"};
    request.env = {"PATH=/usr/bin:/bin"};
    pid_ = sys::spawn(request).value_or(0);
    for (int i = 0; i < 500 && !child(); ++i) ::usleep(10000);
  }
  ~Shell() {
    if (pid_ > 0) ::kill(-pid_, SIGKILL);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::optional<sys::ProcessInfo> child() const {
    for (const auto& info : sys::descendants(pid_)) {
      if (info.name == "sleep") return info;
    }
    return std::nullopt;
  }
  std::string ended() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return sys::WaitStatus(status).str();
  }

 private:
  pid_t pid_ = 0;
};

TEST(SignalGroup, ReachesWhatAShellHasStarted) {
  Shell shell;
  ASSERT_TRUE(shell.child());
  signal_group(shell.pid(), {}, SIGTERM);
  EXPECT_EQ(shell.ended(), "was terminated by SIGTERM");
}

TEST(SignalProcess, ReachesTheProcessAlone) {
  Shell shell;
  const auto child = shell.child();
  ASSERT_TRUE(child);
  signal_process(shell.pid(), {}, SIGKILL);
  const auto leader = shell.pid();
  EXPECT_EQ(shell.ended(), "was killed by SIGKILL");
  EXPECT_EQ(::kill(-leader, SIGKILL), 0) << "the child lived";
}

TEST(Signals, OfAContainerAreForTheProgramInside) {
  for (const bool group : {true, false}) {
    Shell tool;
    ASSERT_TRUE(tool.child());
    if (group) {
      signal_group(tool.pid(), {"bwrap"}, SIGTERM);
    } else {
      signal_process(tool.pid(), {"bwrap"}, SIGTERM);
    }
    EXPECT_EQ(tool.ended(), "exited with code 3") << "the tool itself was not asked";
  }
}

TEST(Signals, OfAContainerWithoutAProgramYetAreForTheTool) {
  for (const bool group : {true, false}) {
    sys::SpawnRequest request;
    request.argv = {"/bin/sleep", "1000"};
    const auto tool = sys::spawn(request).value_or(0);
    ASSERT_GT(tool, 0);
    if (group) {
      signal_group(tool, {"bwrap"}, SIGTERM);
    } else {
      signal_process(tool, {"bwrap"}, SIGTERM);
    }
    int status = 0;
    ::waitpid(tool, &status, 0);
    EXPECT_EQ(sys::WaitStatus(status).str(), "was terminated by SIGTERM");
  }
}

}  // namespace
}  // namespace nlaunch::supervise
