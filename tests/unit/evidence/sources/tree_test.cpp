#include "evidence/sources/tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace nlaunch::evidence {
namespace {

/// A shell that runs a script, ended at the end.
class Shell {
 public:
  explicit Shell(const char* script) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::setpgid(0, 0);
    ::execl("/bin/sh", "sh", "-c", script, nullptr);
    ::_exit(127);
  }
  ~Shell() {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// Of a shell in a loop it would else be taken for the process itself, which would be "gone".
TEST(LookAtTree, LeavesOutAHelperThatEndsMeanwhile) {
  const Shell shell("while :; do sleep 0.1; done");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (int i = 0; i < 3; ++i) {
    const auto tree = look_at_tree(shell.pid());
    ASSERT_EQ(tree.size(), 1U);
    EXPECT_EQ(tree[0].pid, shell.pid());
    EXPECT_TRUE(tree[0].state == 'S' || tree[0].state == 'R') << tree[0].state;
  }
}

TEST(LookAtTree, KeepsTheRootThatEndsMeanwhile) {
  const Shell shell("exec sleep 0.2");
  const auto tree = look_at_tree(shell.pid());
  ASSERT_EQ(tree.size(), 1U);
  EXPECT_EQ(tree[0].state, 'X');
}

// Who reads a large file from a disk is in state D at most looks, and gets on.
TEST(LookAtTree, TakesNobodyForStuckWhoUsesTheCpu) {
  EXPECT_EQ(state_of_looks('D', 'D', 0), 'D');
  EXPECT_EQ(state_of_looks('D', 'D', 0.14), 'S');
  EXPECT_EQ(state_of_looks('S', 'D', 0), 'S');
  EXPECT_EQ(state_of_looks('D', 'R', 0), 'R');
}

}  // namespace
}  // namespace nlaunch::evidence
