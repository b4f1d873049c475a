#include "supervise/child_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "sys/sweep.h"

namespace nlaunch::supervise {
namespace {

using namespace std::chrono_literals;

TEST(ChildWatch, KnowsWhatAServerCannotDoWithout) {
  for (const auto* title :
       {"VLLM::EngineCore_DP0", "VLLM::Worker_TP1", "sglang::scheduler_TP0", "raylet", "gcs_server"})
    EXPECT_TRUE(is_part_of_server(title)) << title;
  for (const auto* title : {"ray::WorkerDict.step", "vLLM API server", "python3", "train.py"})
    EXPECT_FALSE(is_part_of_server(title)) << title;
}

TEST(ChildWatch, KnowsWhatComesAndGoes) {
  for (const auto* title : {"ray::IDLE", "ray::DashboardAgent", "ray::RuntimeEnvAgent"})
    EXPECT_TRUE(comes_and_goes(title)) << title;
  for (const auto* title : {"ray::WorkerDict", "raylet", "VLLM::Worker"})
    EXPECT_FALSE(comes_and_goes(title)) << title;
}

/// A shell with a child of its own, which is called as a part of vLLM is; the shell reaps it.
class Server {
 public:
  Server() {
    pid_ = ::fork();
    if (pid_ == 0) {
      ::execl("/bin/bash", "bash", "-c", "(exec -a VLLM::EngineCore sleep 60) & wait; sleep 60", nullptr);
      ::_exit(127);
    }
  }
  ~Server() {
    sys::kill_subtrees({{pid_}});
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// 0 before it is there.
  [[nodiscard]] pid_t part() const {
    for (const auto& info : sys::descendants(pid_)) {
      const auto arguments = sys::command_line(info.pid);
      if (!arguments.empty() && arguments.front() == "VLLM::EngineCore") return info.pid;
    }
    return 0;
  }

 private:
  pid_t pid_ = -1;
};

TEST(ChildWatch, TellsOfAGrandchildThatWasKilled) {
  const Server server;
  sys::Loop loop;
  pid_t killed = 0;
  std::optional<Child> told;
  std::optional<sys::WaitStatus> how;
  const ChildWatch watch(
      loop,
      [&] {
        return std::map<ProcessIndex, pid_t>{{3, server.pid()}};
      },
      [&](ProcessIndex root, const Child& child, std::optional<sys::WaitStatus> status) {
        if (child.title != "VLLM::EngineCore") return;
        EXPECT_EQ(root, 3);
        told = child;
        how = status;
        loop.stop();
      });
  // Two looks, a second apart, and it is watched.
  loop.after(3s, [&] {
    killed = server.part();
    ::kill(killed, SIGKILL);
  });
  loop.after(30s, [&] { loop.stop(); });
  loop.run();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->pid, killed);
  EXPECT_EQ(told->str(), "VLLM::EngineCore (pid " + std::to_string(killed) + ")");
  // Older kernels do not tell how; see sys/pidfd.h.
  if (how) {
    EXPECT_EQ(how->signal(), SIGKILL);
  }
}

TEST(ChildWatch, TellsOnRequestOfThoseThatHaveEnded) {
  const Server server;
  sys::Loop loop;
  std::vector<std::string> told;
  ChildWatch watch(
      loop,
      [&] {
        return std::map<ProcessIndex, pid_t>{{3, server.pid()}};
      },
      [&](ProcessIndex, const Child& child, auto) { told.push_back(child.title); });
  loop.after(3500ms, [&] { loop.stop(); });  // two looks and more
  loop.run();
  ::kill(server.part(), SIGKILL);
  for (int i = 0; i < 500 && server.part() != 0; ++i) ::usleep(10000);
  watch.tell_of_ended(4);
  EXPECT_TRUE(told.empty());
  watch.tell_of_ended(3);
  EXPECT_EQ(told, std::vector<std::string>{"VLLM::EngineCore"});
}

TEST(ChildWatch, OneThatHasEndedKeepsItsName) {
  // Its parent does not ask how it ended: its arguments are gone, and it is still listed.
  const pid_t parent = ::fork();
  if (parent == 0) {
    ::execl("/bin/bash", "bash", "-c", "(exec -a VLLM::EngineCore sleep 2.5) & exec sleep 60", nullptr);
    ::_exit(127);
  }
  sys::Loop loop;
  std::vector<std::string> told;
  const ChildWatch watch(
      loop,
      [&] {
        return std::map<ProcessIndex, pid_t>{{3, parent}};
      },
      [&](ProcessIndex, const Child& child, auto) { told.push_back(child.title); });
  loop.after(5s, [&] { loop.stop(); });
  loop.run();
  sys::kill_subtrees({{parent}});
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  EXPECT_EQ(told, std::vector<std::string>{"VLLM::EngineCore"});
}

}  // namespace
}  // namespace nlaunch::supervise
