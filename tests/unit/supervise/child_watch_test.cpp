#include "supervise/child_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <vector>

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

/// A shell, and what it has started.
class Server {
 public:
  explicit Server(const char* script) : pid_(::fork()) {
    if (pid_ == 0) {
      ::execl("/bin/bash", "bash", "-c", script, nullptr);
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
  pid_t pid_;
};

// Two looks, a second apart, and a process is watched: so all that takes them is here.
TEST(ChildWatch, TellsWhichProcessesEndAndHow) {
  // Its shell reaps it.
  constexpr auto* kServes = "(exec -a VLLM::EngineCore sleep 60) & wait; sleep 60";
  const Server server(kServes);
  const Server asked(kServes);
  // Nobody asks how these ended: their arguments are gone, and they are still listed. One ends before it is
  // seen twice, and one gives itself its title late.
  const Server parent(
      "(exec -a VLLM::Worker sleep 1.5) & (exec -a VLLM::EngineCore sleep 2.5) & "
      "(sleep 1.5; exec -a VLLM::Late sleep 1.3) & exec sleep 60");
  struct Told {
    ProcessIndex root;
    Child child;
    std::optional<sys::WaitStatus> status;
  };
  sys::Loop loop;
  std::vector<Told> told;
  std::vector<std::string> told_on_request;
  ChildWatch watch(
      loop,
      [&] {
        return std::map<ProcessIndex, pid_t>{{3, server.pid()}, {4, parent.pid()}};
      },
      [&](ProcessIndex root, const Child& child, std::optional<sys::WaitStatus> status) {
        told.push_back({root, child, status});
      });
  ChildWatch on_request(
      loop,
      [&] {
        return std::map<ProcessIndex, pid_t>{{5, asked.pid()}};
      },
      [&](ProcessIndex root, const Child& child, auto) {
        EXPECT_EQ(root, 5U);
        told_on_request.push_back(child.title);
      });
  pid_t killed = 0;
  loop.after(3s, [&] {
    killed = server.part();
    ::kill(killed, SIGKILL);
  });
  loop.after(3700ms, [&] { loop.stop(); });
  loop.run();

  std::vector<std::string> titles;
  for (const auto& one : told) {
    if (one.root == 4 && is_part_of_server(one.child.title)) titles.push_back(one.child.title);
  }
  EXPECT_EQ(titles, (std::vector<std::string>{"VLLM::Worker", "VLLM::EngineCore", "VLLM::Late"}));
  const auto of_server = std::ranges::find_if(
      told, [](const Told& one) { return one.root == 3 && one.child.title == "VLLM::EngineCore"; });
  ASSERT_NE(of_server, told.end());
  EXPECT_EQ(of_server->child.pid, killed);
  EXPECT_EQ(of_server->child.str(), "VLLM::EngineCore (pid " + std::to_string(killed) + ")");
  // Older kernels do not tell how; see sys/pidfd.h.
  if (of_server->status) {
    EXPECT_EQ(of_server->status->signal(), SIGKILL);
  }

  const auto part = asked.part();
  ::kill(part, SIGKILL);
  // Its arguments are gone before it has ended.
  const auto is_alive = [part] {
    const auto info = sys::process_info(part);
    return info && sys::is_alive(*info);
  };
  for (int i = 0; i < 500 && is_alive(); ++i) ::usleep(10000);
  on_request.report_exited(4);
  EXPECT_TRUE(told_on_request.empty());
  on_request.report_exited(5);
  EXPECT_EQ(told_on_request, std::vector<std::string>{"VLLM::EngineCore"});
  on_request.report_exited(5);
  EXPECT_EQ(told_on_request.size(), 1U);
}

}  // namespace
}  // namespace nlaunch::supervise
