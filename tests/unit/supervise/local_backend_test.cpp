#include "supervise/local_backend.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "sys/proc.h"
#include "sys/tcp_sockets.h"
#include "unit/run_until.h"
#include "unit/supervise/folder.h"

namespace nlaunch::supervise {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

/// Two shells on this node, which are the processes 5 and 7 of the plan; another one is elsewhere.
class Local : public testing::Test {
 protected:
  Local() {
    sys::become_subreaper();
    fs::create_directories(folder / "work");
    node.masker.add("hunter2");
    for (const std::uint32_t index : {5U, 7U}) {
      auto& process = node.processes.emplace_back();
      process.process = index;
      process.name = index == 5 ? "learner.0" : "engine.0";
      process.env = {{"PATH", "/usr/bin:/bin"}, {"WHO", process.name}};
      process.workdir = (folder / "work").string();
    }
    rules.processes.resize(3);
    rules.processes[0].process = 5;
    rules.processes[1].process = 6;
    rules.processes[2].process = 7;
    rules.processes[0].role = "learner";
    rules.processes[2].role = "engine";
  }
  ~Local() override {
    if (backend) finish();
    backend.reset();
  }

  void make() {
    backend = std::make_unique<LocalBackend>(
        loop, rules,
        LocalBackend::Options{
            .node = node, .logs = folder / "logs", .hooks = hooks, .watch = watch, .saved = saved},
        [this](const ProcessEvent& process_event) { told.push_back(process_event); });
  }
  /// Starts the shell of the learner (0) or the engine (2).
  void start(const std::string& script, ProcessIndex process = 0) {
    bound(process).argv = {"/bin/sh", "-c", script};
    if (!backend) make();
    backend->perform(action::Start{process});
  }
  plan::BoundProcess& bound(ProcessIndex process) { return node.processes[process == 0 ? 0 : 1]; }

  /// All that was told of this kind.
  template <class What>
  [[nodiscard]] std::vector<What> all() const {
    std::vector<What> found;
    for (const auto& event : told) {
      if (const auto* what = std::get_if<What>(&event.what)) found.push_back(*what);
    }
    return found;
  }
  template <class What>
  std::vector<What> await(std::size_t count = 1) {
    run_until(loop, [&] { return all<What>().size() >= count; });
    return all<What>();
  }
  [[nodiscard]] Lines troubles() const {
    Lines sentences;
    for (const auto& trouble : all<process_event::Trouble>()) sentences.push_back(trouble.sentence);
    return sentences;
  }
  [[nodiscard]] std::string log(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder / "logs" / (name + ".log")).rdbuf();
    return text.str();
  }
  /// What it recorded of its exception.
  [[nodiscard]] std::string record(const std::string& name) const {
    std::ifstream file(folder / "errors" / (name + ".log"));
    std::ostringstream text;
    text << file.rdbuf();
    return file ? text.str() : "(none)";
  }
  void await_log(const std::string& name, const std::string& text) {
    run_until(loop, [&] { return log(name) == text; });
  }
  void let_pass(Duration time) {
    loop.after(time, [this] { loop.stop(); });
    loop.run();
  }
  BackendEnd finish(std::optional<ProcessIndex> of = {}) {
    BackendEnd end;
    backend->finish(of, [&](const BackendEnd& all_of_it) { end = all_of_it; });
    return end;
  }

  Folder made;
  fs::path folder = made.path();
  plan::BoundNode node;
  Rules rules;
  Hooks hooks;
  std::optional<plan::Watch> watch;
  std::string saved;
  sys::Loop loop;
  std::vector<ProcessEvent> told;
  std::unique_ptr<LocalBackend> backend;
};

TEST_F(Local, StartsAProcessAndTellsOfItsEnd) {
  std::vector<std::pair<std::uint32_t, pid_t>> hooked;
  hooks.on_started = [&](std::uint32_t process, pid_t pid) { hooked.emplace_back(process, pid); };
  start("echo $WHO in $(pwd), tracer $NLAUNCH_TRACER; exit 3", 2);
  const auto started = all<process_event::Started>();
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].process, 2U);
  EXPECT_GT(started[0].pid, 0);
  EXPECT_EQ(hooked, (std::vector<std::pair<std::uint32_t, pid_t>>{{7, started[0].pid}}));
  const auto ended = await<process_event::Ended>();
  EXPECT_EQ(ended[0].process, 2U);
  EXPECT_EQ(ended[0].status.str(), "exited with code 3");
  backend->perform(action::CleanUp{2, false});
  const auto cleaned = await<process_event::CleanedUp>();
  EXPECT_EQ(cleaned[0].process, 2U);
  EXPECT_EQ(cleaned[0].killed, Lines{});
  EXPECT_EQ(log("engine.0"), "engine.0 in " + (folder / "work").string() + ", tracer\n");
  EXPECT_EQ(log("learner.0"), "");
  EXPECT_EQ(troubles(), Lines{});
  EXPECT_GE(told.back().at, 0ms);
  EXPECT_LE(told.back().at, 10s);
}

TEST_F(Local, WhatIsPreloadedMayAskForTheTracer) {
  bound(0).preload = {"/no/lib.so"};
  start("echo tracer $NLAUNCH_TRACER");
  run_until(loop, [&] { return log("learner.0").contains(fmt::format("tracer {}\n", ::getpid())); });
}

TEST_F(Local, WhyAProcessCouldNotBeStartedHasNoSecrets) {
  bound(0).argv = {"/no/hunter2/program"};
  bound(2).argv = {"/bin/true"};
  bound(2).ready.tcp = "n1";
  make();
  for (const ProcessIndex process : {0U, 2U}) backend->perform(action::Start{process});
  const auto failed = all<process_event::NotStarted>();
  ASSERT_EQ(failed.size(), 2U);
  EXPECT_EQ(failed[0].process, 0U);
  EXPECT_TRUE(failed[0].reason.contains("/no/***/program")) << failed[0].reason;
  EXPECT_EQ(failed[1].process, 2U);
  EXPECT_EQ(failed[1].reason, "readiness check: 'n1' is not HOST:PORT with a port from 1 to 65535");
  EXPECT_TRUE(all<process_event::Started>().empty());
}

TEST_F(Local, ALogFolderThatCannotBeMadeIsATrouble) {
  std::ofstream(folder / "logs") << "a file";
  make();
  ASSERT_EQ(troubles().size(), 2U);
  EXPECT_TRUE(troubles()[0].contains((folder / "logs").string())) << troubles()[0];
  EXPECT_TRUE(troubles()[1].starts_with("cannot write '")) << troubles()[1];
  start("echo 12345");
  await<process_event::Ended>();
  EXPECT_EQ(finish().lost_bytes, 6U);
}

TEST_F(Local, IsReadyByALineOfItsOutput) {
  bound(2).ready.log = "is ready";
  start("echo server is ready; sleep 60", 2);
  await_log("engine.0", "server is ready\n");
  EXPECT_TRUE(all<process_event::Ready>().empty()) << "nobody has asked";
  backend->perform(action::AwaitReady{2});
  EXPECT_EQ(await<process_event::Ready>()[0].process, 2U);
}

TEST_F(Local, IsReadyByAFileOfItsWorkingFolderThatIsNew) {
  bound(2).ready.file = "up";
  bound(0).ready.file = (folder / "other").string();
  std::ofstream(folder / "work" / "up") << "";
  start("while ! test -e go; do sleep 0.01; done; rm up; touch up; sleep 60", 2);
  start("touch ../other; sleep 60");
  for (const ProcessIndex process : {0U, 2U}) backend->perform(action::AwaitReady{process});
  EXPECT_EQ(await<process_event::Ready>()[0].process, 0U);
  let_pass(20ms);
  EXPECT_EQ(all<process_event::Ready>().size(), 1U) << "it is from before";
  std::ofstream(folder / "work" / "go") << "";
  EXPECT_EQ(await<process_event::Ready>(2)[1].process, 2U);
}

TEST_F(Local, IsReadyByAProgramThatIsStartedAsItIs) {
  bound(2).ready.exec = {"/bin/sh", "-c", "test $WHO = engine.0 && test -e here"};
  start("touch here; sleep 60", 2);
  backend->perform(action::AwaitReady{2});
  EXPECT_EQ(await<process_event::Ready>()[0].process, 2U);
}

TEST_F(Local, WhatWasWaitedForInVainHasNoSecrets) {
  bound(2).ready.file = "/no/hunter2";
  bound(2).ready.timeout = 10ms;
  start("sleep 60", 2);
  backend->perform(action::AwaitReady{2});
  const auto vain = await<process_event::NotReady>();
  EXPECT_EQ(vain[0].process, 2U);
  EXPECT_EQ(vain[0].waited, "file '/no/***': does not exist");
}

TEST_F(Local, WhoHasEndedOrWasAskedToIsNotWaitedFor) {
  bound(0).ready.file = bound(2).ready.file = "/no/file";
  for (const ProcessIndex process : {0U, 2U}) bound(process).ready.timeout = 30ms;
  make();
  backend->perform(action::AwaitReady{2});  // not started
  let_pass(80ms);
  start("exit 0");
  await<process_event::Ended>();
  backend->perform(action::AwaitReady{0});
  start("trap '' TERM; echo set; sleep 60", 2);
  await_log("engine.0", "set\n");
  backend->perform(action::AwaitReady{2});
  backend->perform(action::SignalGroup{2, SIGTERM});
  let_pass(80ms);
  EXPECT_TRUE(all<process_event::NotReady>().empty());
}

/// This process listens on a port of its own machine.
class WithAStranger : public Local {
 protected:
  void SetUp() override {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    ASSERT_EQ(::listen(fd.get(), 9), 0);
    ASSERT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port = ntohs(address.sin_port);
    if (sys::port_owner("127.0.0.1", port, {}).of != sys::PortOwner::Of::other)
      GTEST_SKIP() << "who listens cannot be seen here";
  }
  /// What frees the port.
  [[nodiscard]] static std::string remedy() { return fmt::format("stop it with `kill {}`", ::getpid()); }
  [[nodiscard]] static bool is_this_process(const std::string& holder) {
    return holder.ends_with(fmt::format(" (pid {}, user {})", ::getpid(), sys::user_name()));
  }
  /// The port that is reported as taken once the engine has ended with this.
  std::optional<PortTaken> taken(const std::string& script) {
    start(script, 2);
    await<process_event::Ended>();
    backend->perform(action::CleanUp{2, false});
    return await<process_event::CleanedUp>()[0].port;
  }

  sys::UniqueFd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  std::uint16_t port = 0;
};

TEST_F(WithAStranger, ItIsATroubleOfTheRole) {
  bound(2).ready.tcp = fmt::format("127.0.0.1:{}", port);
  start("sleep 60", 2);
  backend->perform(action::AwaitReady{2});
  await<process_event::Trouble>();
  EXPECT_TRUE(troubles()[0].starts_with(fmt::format("engine is not ready: port {} is held by ", port)))
      << troubles()[0];
  EXPECT_TRUE(all<process_event::Ready>().empty());
}

TEST_F(WithAStranger, ItIsWhyTheCheckTimedOut) {
  bound(2).ready.tcp = fmt::format("localhost:{}", port);
  bound(2).ready.timeout = 100ms;
  start("sleep 60", 2);
  backend->perform(action::AwaitReady{2});
  const auto seen = await<process_event::NotReady>()[0].seen;
  EXPECT_TRUE(is_this_process(seen.stranger)) << seen.stranger;
  EXPECT_EQ(seen.remedy, remedy());
}

TEST_F(WithAStranger, OnAnotherAddressItIsNoReason) {
  bound(2).ready.tcp = fmt::format("127.0.0.2:{}", port);
  bound(2).ready.timeout = 100ms;
  start("sleep 60", 2);
  backend->perform(action::AwaitReady{2});
  const auto seen = await<process_event::NotReady>()[0].seen;
  EXPECT_EQ(seen.last, "Connection refused");
  EXPECT_EQ(seen.stranger, "");
}

TEST_F(WithAStranger, APortThatAFailedProcessWantedIsNamed) {
  bound(2).ports = {1, port};
  const auto port_taken = taken("echo 'OSError: [Errno 98] Address already in use'; exit 1");
  ASSERT_TRUE(port_taken);
  EXPECT_EQ(port_taken->port, port);
  EXPECT_EQ(port_taken->index, 1);
  EXPECT_TRUE(is_this_process(port_taken->holder)) << port_taken->holder;
  EXPECT_EQ(port_taken->remedy, remedy());
}

TEST_F(WithAStranger, APortThatWasNotNeededIsNoReason) {
  EXPECT_FALSE(taken(fmt::format("echo 'Port {} is already in use, trying port 1'; echo OOM; exit 1", port)));
}

TEST_F(Local, APortOfAnotherProcessOfTheRunNeedsNoRemedy) {
  // A child of the learner's shell listens.
  bound(0).env = {{"PATH", ::getenv("PATH")}};
  start(
      "python3 -c 'import socket, time; s = socket.create_server((\"127.0.0.1\", 0)); "
      "print(s.getsockname()[1], flush=True); time.sleep(60)'; true");
  run_until(loop, [&] { return log("learner.0").ends_with("\n"); });
  const auto port = std::stoi(log("learner.0"));
  if (sys::port_owner("127.0.0.1", static_cast<std::uint16_t>(port), {}).of != sys::PortOwner::Of::other)
    GTEST_SKIP() << "who listens cannot be seen here";
  start(fmt::format("echo 'Address already in use: port {}'; exit 1", port), 2);
  await<process_event::Ended>();
  backend->perform(action::CleanUp{2, false});
  const auto taken = await<process_event::CleanedUp>()[0].port;
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->port, port);
  EXPECT_EQ(taken->index, -1);
  EXPECT_EQ(taken->holder, "learner.0 of this run");
  EXPECT_EQ(taken->remedy, "");
}

TEST_F(Local, TheStopSignalReachesAStoppedGroup) {
  start("trap 'echo asked; exit 4' TERM; echo set; kill -STOP $$");
  await_log("learner.0", "set\n");
  backend->perform(action::SignalGroup{0, SIGTERM});
  EXPECT_EQ(await<process_event::Ended>()[0].status.str(), "exited with code 4");
  await_log("learner.0", "set\nasked\n");
}

TEST_F(Local, AnotherSignalReachesTheProcessAlone) {
  start("trap 'exit 5' USR1; (trap 'echo child' USR1; while :; do sleep 0.01; done) & echo set; wait");
  await_log("learner.0", "set\n");
  let_pass(30ms);
  backend->perform(action::SignalProcess{0, SIGUSR1});
  EXPECT_EQ(await<process_event::Ended>()[0].status.str(), "exited with code 5");
  backend->perform(action::SignalProcess{0, SIGUSR1});  // nobody
  let_pass(30ms);
  EXPECT_EQ(log("learner.0"), "set\n");
}

TEST_F(Local, WhatIsNotStartedGetsNoSignal) {
  make();
  int arrived = 0;
  // A signal to process 0 would be one to this process and its group.
  for (const int signal : {SIGUSR1, SIGCONT}) loop.on_signal(signal, [&] { ++arrived; });
  backend->perform(action::SignalGroup{0, SIGUSR1});
  backend->perform(action::SignalProcess{0, SIGUSR1});
  let_pass(20ms);
  EXPECT_EQ(arrived, 0);
}

TEST_F(Local, ATreeIsKilledAndWhatLeftItIsNamed) {
  start("(sleep 60; sleep 60) & echo set; sleep 60; true");
  start("sleep 60", 2);
  await_log("learner.0", "set\n");
  backend->perform(action::KillTree{0});
  EXPECT_EQ(await<process_event::Ended>()[0].status.str(), "was killed by SIGKILL");
  backend->perform(action::CleanUp{0, false});
  await<process_event::CleanedUp>();
  EXPECT_EQ(all<process_event::Ended>().size(), 1U) << "the other one goes on";
  start("setsid sleep 60 & exit 0");
  await<process_event::Ended>(2);
  backend->perform(action::CleanUp{0, false});
  const auto cleaned = await<process_event::CleanedUp>(2);
  ASSERT_EQ(cleaned[1].killed.size(), 1U);
  EXPECT_TRUE(cleaned[1].killed[0].contains(" (pid ")) << cleaned[1].killed[0];
}

TEST_F(Local, AllAreKilled) {
  start("sleep 60");
  start("sleep 60", 2);
  backend->perform(action::KillAll{});
  for (const auto& ended : await<process_event::Ended>(2)) EXPECT_EQ(ended.status.signal(), SIGKILL);
}

TEST_F(Local, WhatIsLeftOnPurposeLivesUntilTheEnd) {
  start("sleep 60 & echo $!; exit 0");
  await<process_event::Ended>();
  backend->perform(action::CleanUp{0, true});
  const auto cleaned = all<process_event::CleanedUp>();
  ASSERT_EQ(cleaned.size(), 1U) << "at once";
  EXPECT_TRUE(cleaned[0].killed.empty());
  run_until(loop, [&] { return log("learner.0").ends_with("\n"); });
  const auto left = static_cast<pid_t>(std::stoi(log("learner.0")));
  EXPECT_EQ(::kill(left, 0), 0);
  const auto end = finish();
  ASSERT_EQ(end.left_behind.size(), 1U);
  EXPECT_TRUE(end.left_behind[0].ends_with(fmt::format(" (pid {})", left))) << end.left_behind[0];
  EXPECT_EQ(end.survivors, Lines{});
}

TEST_F(Local, ARestartedProcessIsAliveAgain) {
  std::vector<std::size_t> alive;
  hooks.before_stop = [&](const LivePids& pids) { alive.push_back(pids.size()); };
  start("exit 1");
  await<process_event::Ended>();
  backend->ending();
  backend->perform(action::CleanUp{0, false});
  await<process_event::CleanedUp>();
  backend->ending();
  start("sleep 60");
  backend->ending();
  EXPECT_EQ(alive, (std::vector<std::size_t>{0, 0, 1}));
}

TEST_F(Local, ReportsTheProgressThatItsOutputTells) {
  watch.emplace();
  watch->progress = R"(step (?P<step>\d+)(?:/(?P<total>\d+) took (?P<seconds>[\d.]+))?)";
  bound(2).heartbeat = "beat";
  start("echo step 3/40 took 2.5; sleep 60");
  start("echo step 9; sleep 60", 2);
  auto progress = await<process_event::Progress>();
  EXPECT_EQ(progress[0].process, 0U);
  EXPECT_EQ(progress[0].step, 3);
  EXPECT_EQ(progress[0].total, 40);
  EXPECT_EQ(progress[0].seconds, 2.5);
  backend->perform(action::KillTree{0});
  await<process_event::Ended>();
  backend->perform(action::CleanUp{0, false});
  await<process_event::CleanedUp>();
  start("printf 'step 4'; exit 0");
  await<process_event::Ended>(2);
  backend->perform(action::CleanUp{0, false});
  await<process_event::CleanedUp>(2);
  progress = all<process_event::Progress>();
  ASSERT_EQ(progress.size(), 2U) << "one with a heartbeat tells nothing by its output";
  EXPECT_EQ(progress[1].step, 4);
  EXPECT_EQ(progress[1].total, -1);
  EXPECT_EQ(progress[1].seconds, -1);
}

TEST_F(Local, AHeartbeatIsProgress) {
  watch.emplace();
  bound(2).heartbeat = "beat";
  std::ofstream(folder / "work" / "beat") << "before";
  bound(0).heartbeat = (folder / "none").string();
  start("while ! test -e go; do sleep 0.01; done; rm beat; touch beat; sleep 60", 2);
  std::ofstream(folder / "none") << "not started, nobody's";
  let_pass(300ms);
  EXPECT_TRUE(all<process_event::Progress>().empty());
  std::ofstream(folder / "work" / "go") << "";
  const auto progress = await<process_event::Progress>();
  EXPECT_EQ(progress[0].process, 2U);
  EXPECT_EQ(progress[0].step, -1);
  let_pass(300ms);
  EXPECT_EQ(all<process_event::Progress>().size(), 1U) << "it beat once";
}

TEST_F(Local, WithoutAWatchRemarksAloneAreTold) {
  start("echo Guessing device ID based on global rank; echo step 3; sleep 60");
  await<process_event::Trouble>();
  EXPECT_EQ(troubles(), Lines{std::string(remarks()[1].sentence)});
  EXPECT_TRUE(all<process_event::Progress>().empty());
}

TEST_F(Local, WhoeverLooksEachPeriodMayEndTheRun) {
  std::vector<LivePids> seen;
  hooks.period = 10ms;
  hooks.tick = [&](const LivePids& pids) -> std::optional<Hooks::Abort> {
    seen.push_back(pids);
    if (seen.size() < 2) return std::nullopt;
    return Hooks::Abort{"wrong libnccl", 73};
  };
  start("sleep 60");
  const auto aborts = await<process_event::Abort>(2);
  EXPECT_EQ(aborts[0].reason, "wrong libnccl");
  EXPECT_EQ(aborts[0].exit_code, 73);
  EXPECT_FALSE(aborts[0].process);
  EXPECT_EQ(seen[0], (LivePids{{5, all<process_event::Started>()[0].pid}}));
}

TEST_F(Local, WhenTheEndIsDecidedTheLogsAreMeasured) {
  LivePids alive;
  int called = 0;
  hooks.before_stop = [&](const LivePids& pids) {
    alive = pids;
    ++called;
  };
  start("echo 12345; while ! test -e go; do sleep 0.01; done; echo more");
  start("exit 0", 2);
  await<process_event::Ended>();
  await_log("learner.0", "12345\n");
  backend->ending();
  EXPECT_EQ(called, 1);
  EXPECT_EQ(alive, (LivePids{{5, all<process_event::Started>()[0].pid}}));
  std::ofstream(folder / "work" / "go") << "";
  await<process_event::Ended>(2);
  const auto end = finish(0);
  EXPECT_EQ(end.log_when_decided, (std::map<std::string, std::uint64_t>{{"engine.0", 0}, {"learner.0", 6}}));
  EXPECT_EQ(log("learner.0"), "12345\nmore\n");
  EXPECT_EQ(end.last_lines, (Lines{"12345", "more"}));
  EXPECT_EQ(end.lost_bytes, 0U);
  EXPECT_EQ(end.left_behind, Lines{});
}

TEST_F(Local, TheLastLinesAreTwentyAndNotEndless) {
  start("i=0; while [ $i -lt 30 ]; do echo $i; i=$((i+1)); done; printf '%0600d' 7");
  await<process_event::Ended>();
  const auto end = finish(0);
  ASSERT_EQ(end.last_lines.size(), 20U);
  EXPECT_EQ(end.last_lines[0], "11");
  EXPECT_EQ(end.last_lines[19], std::string(500, '0'));
  for (const auto& of : {std::optional<ProcessIndex>(), std::optional<ProcessIndex>(1)})
    EXPECT_EQ(finish(of).last_lines, Lines{}) << "of nobody here";
}

TEST_F(Local, AProgramBesideIsNoLeftover) {
  hooks.beside.emplace();
  hooks.beside->argv = {"/bin/sh", "-c", "touch " + (folder / "beside").string() + "; exec sleep 60"};
  make();
  run_until(loop, [&] { return fs::exists(folder / "beside"); });
  EXPECT_EQ(finish().left_behind, Lines{});
}

TEST_F(Local, EvidenceIsCollectedByTheProgramThatIsNamed) {
  std::vector<std::pair<LivePids, std::string>> asked;
  Ends ends;
  std::string script = "exit 0";
  hooks.collect = [&](const LivePids& pids, const Ends& so_far,
                      const std::string& where) -> std::optional<sys::SpawnRequest> {
    asked.emplace_back(pids, where);
    ends = so_far;
    if (script.empty()) return std::nullopt;
    sys::SpawnRequest request;
    request.argv = {"/bin/sh", "-c", script};
    return request;
  };
  start("sleep 60");
  start("exit 3", 2);
  await<process_event::Ended>();
  backend->perform(action::Collect{"/evidence"});
  auto collected = await<process_event::Collected>();
  EXPECT_EQ(collected[0].trouble, "");
  EXPECT_EQ(asked[0].first, (LivePids{{5, all<process_event::Started>()[0].pid}}));
  EXPECT_EQ(asked[0].second, "/evidence");
  ASSERT_EQ(ends.processes.size(), 1U);
  EXPECT_EQ(ends.processes.at(7).status.code(), 3);
  EXPECT_LE(ends.processes.at(7).at, 10s);
  EXPECT_TRUE(ends.killed_parts.empty());
  script = "echo no py-spy; exit 3";
  backend->perform(action::Collect{"/evidence"});
  EXPECT_EQ(await<process_event::Collected>(2)[1].trouble, "exited with code 3: no py-spy");
  script = "";
  backend->perform(action::Collect{"/evidence"});
  EXPECT_EQ(all<process_event::Collected>().at(2).trouble, "nothing could be collected on this node");
}

TEST_F(Local, WithoutACollectorNothingIsCollected) {
  make();
  backend->perform(action::Collect{"/evidence"});
  EXPECT_EQ(all<process_event::Collected>().at(0).trouble, "nothing could be collected on this node");
}

TEST_F(Local, OfChildrenThatEndThoseAreToldOfThatFailedAndPartsOfServers) {
  bound(0).argv = {"/bin/bash", "-c",
                   "sleep 3.4 & (exec -a VLLM::EngineCore sleep 3.4) & (sleep 3.4; exit 3) & sleep 3.8"};
  make();
  backend->perform(action::Start{0});
  await<process_event::Ended>();
  std::map<std::string, std::string> ended;
  for (const auto& child : all<process_event::ChildEnded>())
    ended[child.title] = child.status ? child.status->str() : "";
  EXPECT_EQ(ended, (std::map<std::string, std::string>{{"VLLM::EngineCore", "exited with code 0"},
                                                       {"bash -c", "exited with code 3"}}));
}

TEST_F(Local, AServerThatHasLostAPartIsKnownToTheEvidence) {
  Ends ends;
  hooks.collect = [&](const LivePids&, const Ends& so_far, const std::string&) {
    ends = so_far;
    return std::optional<sys::SpawnRequest>();
  };
  bound(0).argv = {
      "/bin/bash", "-c",
      "(exec -a VLLM::EngineCore sleep 60) & (exec -a VLLM::Worker sleep 60) & sleep 2.4; kill -9 %1; "
      "kill %2; sleep 60"};
  make();
  backend->perform(action::Start{0});
  const auto children = await<process_event::ChildEnded>(2);
  backend->perform(action::Collect{"/evidence"});
  const auto core = std::ranges::find(children, "VLLM::EngineCore", &process_event::ChildEnded::title);
  ASSERT_NE(core, children.end());
  if (!core->status) GTEST_SKIP() << "this kernel does not tell how a process of another parent ended";
  ASSERT_EQ(ends.killed_parts.size(), 1U);
  const auto& parts = ends.killed_parts.begin()->second;
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_TRUE(
      parts[0].starts_with(fmt::format("VLLM::EngineCore (pid {}) was killed by SIGKILL ", core->pid)))
      << parts[0];
}

TEST_F(Local, HowEachIsToldThatAddressesHaveChanged) {
  const action::Notify notify{0, "engine", 2, {"n1:80", "n2:80"}, {"n2:80"}, {"n3:80"}};
  bound(0).on_change.emplace();
  bound(0).on_change->signal = SIGUSR1;
  start("trap 'echo told' USR1; echo ready; while sleep 0.05; do :; done");
  await_log("learner.0", "ready\n");
  backend->perform(notify);
  await_log("learner.0", "ready\ntold\n");
  bound(0).on_change =
      plan::OnChange{.of = {},
                     .signal = 0,
                     .post = "",
                     .exec = {"/bin/sh", "-c", "env | grep ^NLAUNCH_CHANGE | sort > told; exit 3"}};
  backend->perform(notify);
  run_until(loop, [this] { return !troubles().empty(); });
  std::ostringstream text;
  text << std::ifstream(folder / "work" / "told").rdbuf();
  EXPECT_EQ(text.str(),
            "NLAUNCH_CHANGE_ADDED=n2:80\nNLAUNCH_CHANGE_ADDRESSES=n1:80 n2:80\nNLAUNCH_CHANGE_GENERATION=2\n"
            "NLAUNCH_CHANGE_REMOVED=n3:80\nNLAUNCH_CHANGE_ROLE=engine\n");
  EXPECT_EQ(troubles(), Lines{"the on_change program of learner.0 did not accept the new addresses of "
                              "'engine': exited with code 3"});
  bound(0).on_change = plan::OnChange{.of = {}, .signal = 0, .post = "http://127.0.0.1:1/", .exec = {}};
  backend->perform(notify);
  run_until(loop, [this] { return troubles().size() == 2; });
  EXPECT_EQ(troubles()[1],
            "http://127.0.0.1:1/ (on_change of learner.0) did not accept the new addresses of "
            "'engine': Connection refused");
}

TEST_F(Local, ALineSaysThatOneHasTheWeights) {
  bound(0).fresh = plan::Fresh{.http = "", .log = "weights of step \\d+"};
  bound(0).ready.log = "ready";
  start("echo ready; sleep 0.2; echo weights of step 7; sleep 10");
  backend->perform(action::AwaitReady{0});
  await<process_event::Ready>();
  EXPECT_TRUE(all<process_event::Fresh>().empty());
  backend->perform(action::AwaitFresh{0});
  EXPECT_EQ(await<process_event::Fresh>()[0].process, 0U);
}

// --- for another who decides ---

TEST_F(Local, OfAProcessThatRunsItIsToldThatItWasStarted) {
  start("echo up; sleep 60");
  const auto first = await<process_event::Started>();
  await_log("learner.0", "up\n");
  backend->replay_events();
  backend->perform(action::Start{0});
  const auto again = await<process_event::Started>(2);
  EXPECT_EQ(again[1].pid, first[0].pid);
  EXPECT_TRUE(all<process_event::Ended>().empty());
  EXPECT_EQ(log("learner.0"), "up\n");
  backend->perform(action::SignalGroup{0, SIGTERM});
  EXPECT_EQ(await<process_event::Ended>()[0].status.signal(), SIGTERM);
  backend->perform(action::CleanUp{0});
  await<process_event::CleanedUp>();
}

TEST_F(Local, OfOneThatHasEndedItIsToldHow) {
  start("exit 7");
  await<process_event::Ended>();
  backend->perform(action::CleanUp{0});
  await<process_event::CleanedUp>();
  backend->replay_events();
  backend->perform(action::Start{0});
  EXPECT_EQ(await<process_event::Ended>(2)[1].status.code(), 7);
  backend->perform(action::CleanUp{0});
  await<process_event::CleanedUp>(2);
  // From then on a start is a start.
  backend->perform(action::Start{0});
  const auto started = await<process_event::Started>(3);
  EXPECT_EQ(started[1].pid, started[0].pid);
  EXPECT_NE(started[2].pid, started[0].pid);
}

TEST_F(Local, OneThatWasNeverStartedIsStarted) {
  start("sleep 60");
  backend->replay_events();
  start("echo up", 2);
  await_log("engine.0", "up\n");
}

TEST_F(Local, OneThatRunsIsReadyForWhoeverAsks) {
  bound(0).ready.log = "serving";
  start("echo serving; sleep 60");
  backend->perform(action::AwaitReady{0});
  await<process_event::Ready>();
  backend->replay_events();
  backend->perform(action::Start{0});
  backend->perform(action::AwaitReady{0});
  EXPECT_EQ(await<process_event::Ready>(2).size(), 2U);
}

TEST_F(Local, AnExceptionThatAProcessRecordedIsToldBeforeItsEnd) {
  bound(0).error_file = (folder / "scratch/errors/learner.0.json").string();
  start(R"(printf %s '{"message": {"message": "ValueError: no hunter2", "extraInfo": {"py_callstack": )"
        R"("Traceback:\n  login(hunter2)\nValueError: no hunter2", "timestamp": "'$(date +%s)'"}}}' )"
        "> " +
        bound(0).error_file + "; sleep 0.3; exit 1");
  await<process_event::Ended>();
  const auto raised = all<process_event::Raised>();
  ASSERT_EQ(raised.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<process_event::Raised>(told[told.size() - 2].what));
  EXPECT_EQ(raised[0].process, 0U);
  EXPECT_EQ(raised[0].type, "ValueError");
  EXPECT_EQ(raised[0].message, "no ***");
  EXPECT_GE(raised[0].ago, 250ms);
  EXPECT_LE(raised[0].ago, 20s);
  EXPECT_EQ(raised[0].within, 0ms);
  EXPECT_EQ(record("learner.0"), "Traceback:\n  login(***)\nValueError: no ***\n");
  EXPECT_FALSE(fs::exists(bound(0).error_file)) << "it has the secret";
  backend->replay_events();
  backend->perform(action::Start{0});
  EXPECT_EQ(all<process_event::Raised>().size(), 2U) << "another leader is told, too";
}

TEST_F(Local, WhatAnEarlierStartRecordedDoesNotCount) {
  bound(0).error_file = (folder / "scratch/errors/learner.0.json").string();
  fs::create_directories(folder / "scratch/errors");
  fs::create_directories(folder / "errors");
  for (const auto& file : {fs::path(bound(0).error_file), folder / "errors/learner.0.log"})
    std::ofstream(file) << R"({"message": "ValueError: long ago"})";
  start("exit 1");
  await<process_event::Ended>();
  EXPECT_TRUE(all<process_event::Raised>().empty());
  EXPECT_EQ(record("learner.0"), "(none)");
}

TEST_F(Local, WhatAProcessGotOverIsNotTold) {
  bound(0).error_file = (folder / "scratch/errors/learner.0.json").string();
  start(R"(echo '{"message": "ValueError: of a child process"}' > )" + bound(0).error_file);
  await<process_event::Ended>();
  EXPECT_TRUE(all<process_event::Raised>().empty());
  EXPECT_EQ(record("learner.0"), "(none)");
  EXPECT_FALSE(fs::exists(bound(0).error_file));
}

TEST_F(Local, ATimeThatCannotBeIsThatOfTheEnd) {
  bound(0).error_file = (folder / "scratch/errors/learner.0.json").string();
  start(R"(echo '{"message": "ValueError: x", "timestamp": 1000}' > )" + bound(0).error_file + "; exit 1");
  await<process_event::Ended>();
  const auto raised = all<process_event::Raised>();
  ASSERT_EQ(raised.size(), 1U);
  EXPECT_EQ(raised[0].ago, 0ms);
  EXPECT_EQ(raised[0].within, 0ms);
  EXPECT_EQ(record("learner.0"), "ValueError: x\n");
}

TEST_F(Local, ADirectoryForExceptionsThatIsRemovedIsMadeAgain) {
  bound(0).error_file = (folder / "scratch/errors/learner.0.json").string();
  start("sleep 60");
  EXPECT_EQ(fs::status(folder / "scratch/errors").permissions(), fs::perms::owner_all);
  fs::remove_all(folder / "scratch");
  run_until(loop, [&] { return fs::exists(folder / "scratch/errors"); });
}

TEST_F(Local, PagesOfTrackersAreToldOnceAndToEachLeader) {
  const std::string line = "echo wandb: View run at https://wandb.ai/a/b/runs/";
  start(line + "0; sleep 60");
  await<process_event::Linked>();
  start(line + "0; echo TensorBoard 2.20.0 at http://localhost:6006/; sleep 60", 2);
  const auto links = await<process_event::Linked>(2);
  EXPECT_EQ(links[0].process, 0U);
  EXPECT_EQ(links[0].kind, "wandb");
  EXPECT_EQ(links[0].url, "https://wandb.ai/a/b/runs/0");
  EXPECT_EQ(links[1].process, 2U);
  EXPECT_EQ(links[1].url, "http://localhost:6006/");
  backend->replay_events();
  EXPECT_EQ(all<process_event::Linked>().size(), 4U);
}

TEST_F(Local, ACheckpointThatALearnerNamesIsTold) {
  rules.processes[0].saves = true;
  saved = R"(saved (\S+))";
  start("echo saved ckpt/step_7; echo saved /abs/step_8; sleep 60");
  start("echo saved elsewhere; sleep 60", 2);
  const auto found = await<process_event::Saved>(2);
  EXPECT_EQ(found[0].path, (folder / "work" / "ckpt/step_7").string());
  EXPECT_EQ(found[1].path, "/abs/step_8");
  await_log("engine.0", "saved elsewhere\n");
  let_pass(600ms);
  EXPECT_EQ(all<process_event::Saved>().size(), 2U);
}

}  // namespace
}  // namespace nlaunch::supervise
