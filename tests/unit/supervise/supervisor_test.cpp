#include "unit/supervise/supervised.h"

namespace nlaunch::supervise {
namespace {

TEST_F(Supervised, AMessageThatATerminalCannotTakeIsALineThatIsMissing) {
  terminal_queue = 0;
  run([this] {
    end(0, 0);
    end(1, 0);
  });
  EXPECT_EQ(skipped.lines, 1U);
  EXPECT_EQ(skipped.bytes, std::string_view("nlaunch: engine: 1 of 1 ready after 50ms\n").size());
}

TEST_F(Supervised, ARunThatEndsWell) {
  backend.end.lost_bytes = 5;
  backend.end.oom_kills = 2;
  backend.end.last_lines = {"last words"};
  backend.end.log_when_decided = {{"learner.1", 17}};
  const auto outcome = run([this] {
    end(0, 0);
    end(1, 0, 2500ms);
  });
  EXPECT_EQ(backend.performed, (Lines{"start 2", "await 2", "start 0", "start 1", "clean 0", "clean 1",
                                      "ending", "SIGTERM to group 2", "clean 2", "finish"}));
  EXPECT_TRUE(std::holds_alternative<Finished>(outcome.cause));
  EXPECT_FALSE(outcome.first || outcome.next);
  EXPECT_TRUE(outcome.decided && *outcome.decided <= outcome.took);
  EXPECT_EQ(outcome.lost_bytes, 5U);
  EXPECT_EQ(outcome.oom_kills, 2U);
  EXPECT_EQ(outcome.last_lines, Lines{"last words"});
  EXPECT_TRUE(outcome.watch.is_null());
  EXPECT_TRUE(fits(outcome.started_at, R"(\d{4}-.*Z)"));
  EXPECT_GE(outcome.ended_at, outcome.started_at);
  ASSERT_EQ(outcome.processes.size(), 3U);
  const auto& learner = outcome.processes[1];
  EXPECT_EQ(learner.name, "learner.1");
  EXPECT_EQ(learner.host, "");
  EXPECT_EQ(learner.rank, 1);
  EXPECT_EQ(learner.program, "train.py");
  EXPECT_EQ(learner.pid, 101);
  EXPECT_EQ(learner.started, 200ms);
  EXPECT_EQ(learner.ready, 200ms);
  EXPECT_EQ(learner.ended, 2500ms);
  EXPECT_EQ(learner.status->str(), "exited with code 0");
  EXPECT_FALSE(learner.stopped);
  EXPECT_EQ(learner.log, (folder / "attempt-0" / "logs" / "learner.1.log").string());
  EXPECT_EQ(learner.log_when_decided, 17U);
  const auto& engine = outcome.processes[2];
  EXPECT_EQ(engine.rank, -1);
  EXPECT_EQ(engine.ready, 350ms);
  EXPECT_TRUE(engine.stopped);
  EXPECT_FALSE(engine.log_when_decided);
  EXPECT_EQ(said(), Lines{"engine: 1 of 1 ready after 50ms"});
  auto events = recorded();
  EXPECT_EQ(events.front(),
            fmt::format(R"({{"event":"attempt-started","attempt":0,"guardian":{0},"supervisor":{0}}})",
                        ::getpid()));
  events.erase(events.begin());
  ASSERT_EQ(events.size(), 10U);
  EXPECT_TRUE(events[6].starts_with(R"({"event":"run-ending","outcome":"finished","what":"finished after )"))
      << events[6];
  EXPECT_TRUE(
      fits(events[9],
           R"(\{"event":"attempt-ended","outcome":"finished","exit_code":0,"what":"finished after .*"\})"))
      << events[9];
  for (const std::size_t with_time : {9U, 6U})
    events.erase(events.begin() + static_cast<std::ptrdiff_t>(with_time));
  EXPECT_EQ(
      events,
      (Lines{
          R"({"event":"process-started","process":"engine.0","pid":102,"restarts":0})",
          R"({"event":"process-ready","process":"engine.0","after_ms":50})",
          R"({"event":"process-started","process":"learner.0","pid":100,"restarts":0})",
          R"({"event":"process-started","process":"learner.1","pid":101,"restarts":0})",
          R"({"event":"process-ended","process":"learner.0","pid":100,"how":"exited with code 0"})",
          R"({"event":"process-ended","process":"learner.1","pid":101,"how":"exited with code 0"})",
          R"({"event":"process-signalled","process":"engine.0","signal":"SIGTERM"})",
          R"({"event":"process-ended","process":"engine.0","pid":102,"how":"was terminated by SIGTERM"})",
      }));
}

TEST_F(Supervised, TheProcessThatFailsFirstDecidesAndTheNextIsNamed) {
  backend.signal = [](ProcessIndex, int) {};  // they fail by themselves meanwhile
  const auto outcome = run([this] {
    tell(2s, process_event::Ended{1, sys::WaitStatus(SIGSEGV)});
    // Learner 0 has its stop signal: how it ends is no news. The engine goes on for a moment.
    tell(2100ms, process_event::Ended{0, sys::WaitStatus::exited(1)});
    tell(2200ms, process_event::Ended{2, sys::WaitStatus::exited(1)});
  });
  EXPECT_EQ(std::get<ProcessFailed>(outcome.cause).process, 1U);
  EXPECT_EQ(outcome.first, 1U);
  EXPECT_FALSE(outcome.next) << "all the others were asked to end";
  EXPECT_TRUE(outcome.processes[0].stopped && outcome.processes[2].stopped);
  EXPECT_FALSE(outcome.processes[1].stopped);
  EXPECT_EQ(backend.performed.back(), "finish 1");
  ASSERT_EQ(said().size(), 2U);
  EXPECT_TRUE(fits(said()[1], "learner.1 was terminated by SIGSEGV after .*; stopping the others"))
      << said()[1];
}

TEST_F(Supervised, TheNextOneIsTheFirstOfThoseThatEndedOnTheirOwnAfterwards) {
  plan.roles[0].count = 4;
  for (std::uint32_t i = 2; i < 4; ++i) {
    plan.processes.push_back(plan.processes[0]);
    plan.processes.back().index = i;
  }
  backend.signal = [](ProcessIndex, int) {};
  const auto outcome = run([this] {
    end(0, 0, 2300ms);
    end(3, 0, 2100ms);
    end(4, 0, 2100ms);
    end(2, 1, 2s);  // the engine, by an earlier clock
    end(1, 1, 2050ms);
  });
  EXPECT_EQ(outcome.first, 2U);
  EXPECT_EQ(outcome.next, 3U) << "1 was asked to end";
  EXPECT_TRUE(recorded_as("attempt-ended").at(0).contains("100ms before learner.2 exited with code 0"));
}

TEST_F(Supervised, TheProcessThatRaisedFirstFailedFirst) {
  // Its teardown takes longer than that of the one that lost its connection to it.
  backend.signal = [](ProcessIndex, int) {};
  const auto outcome = run([this] {
    tell(2s, process_event::Raised{0, "RuntimeError", "Connection closed by peer", 50ms});
    end(0, 1, 2s);
    tell(3s, process_event::Raised{1, "ValueError", "a NaN", 1200ms});
    end(1, 1, 3s);
    tell(3s, process_event::Raised{2, "SystemExit", "stopped", 10ms});
    end(2, 1, 3s);
  });
  EXPECT_EQ(std::get<ProcessFailed>(outcome.cause).process, 0U);
  EXPECT_EQ(outcome.first, 1U);
  EXPECT_EQ(backend.performed.back(), "finish 1") << "its last lines are wanted";
  EXPECT_EQ(outcome.processes[1].exception->at, 1800ms);
  EXPECT_TRUE(fits(said()[1],
                   "learner.0 exited with code 1 after .*; learner.0 raised RuntimeError: Connection "
                   "closed by peer; stopping the others"))
      << said()[1];
  EXPECT_TRUE(
      recorded_as("attempt-ended")
          .at(0)
          .contains("learner.1 raised ValueError 1.8s into the run, 200ms before learner.0 exited with "
                    "code 1: a NaN"))
      << recorded_as("attempt-ended").at(0);
  EXPECT_EQ(
      recorded_as("process-raised").at(1),
      R"({"event":"process-raised","process":"learner.1","exception":"ValueError: a NaN","raised_ms":1800})");
}

TEST_F(Supervised, AnExceptionOfAnEarlierStartIsForgotten) {
  plan.roles[0].restart = {true, 1, 10ms};
  int starts = 0;
  backend.start = [&](ProcessIndex p) {
    tell(100ms, process_event::Started{p, 100 + static_cast<pid_t>(p)});
    if (p != 0 || ++starts < 2) return;
    end(0, 3, 4s);
  };
  const auto outcome = run([this] {
    tell(2s, process_event::Raised{0, "ValueError", "a NaN"});
    end(0, 1, 2s);
  });
  EXPECT_EQ(outcome.first, 0U);
  EXPECT_FALSE(outcome.processes[0].exception);
}

TEST_F(Supervised, PagesOfTrackersAreRecordedOnce) {
  const auto outcome = run([this] {
    for (ProcessIndex p = 0; p < 2; ++p)
      tell(1s, process_event::Linked{p, "wandb", "https://wandb.ai/a/b/runs/c"});
    tell(1s, process_event::Linked{1, "wandb", "javascript:alert(1)"});
    end(0, 0);
    end(1, 0);
  });
  ASSERT_EQ(outcome.links.size(), 1U);
  EXPECT_EQ(outcome.links[0].str(), "wandb: https://wandb.ai/a/b/runs/c (learner.0)");
  EXPECT_EQ(
      recorded_as("link"),
      Lines{R"({"event":"link","process":"learner.0","kind":"wandb","url":"https://wandb.ai/a/b/runs/c"})"});
}

TEST_F(Supervised, OneThatEndedBeforeIsNotTheNext) {
  backend.signal = [](ProcessIndex, int) {};
  const auto outcome = run([this] {
    end(0, 0, 1999ms);
    end(2, 1, 2s);
    end(1, 1, 2200ms);
  });
  EXPECT_EQ(outcome.first, 2U);
  EXPECT_FALSE(outcome.next);
}

TEST_F(Supervised, AProgramThatCannotBeStarted) {
  backend.start = [this](ProcessIndex p) {
    tell(100ms, process_event::NotStarted{p, "cannot start 'serve'"});
  };
  const auto outcome = run([] {});
  EXPECT_EQ(backend.performed, (Lines{"start 2", "ending", "finish 2"}));
  EXPECT_EQ(outcome.first, 2U);
  EXPECT_EQ(said(), Lines{"engine.0: cannot start 'serve'; stopping the others"});
  EXPECT_EQ(recorded_as("process-not-started"),
            Lines{R"({"event":"process-not-started","process":"engine.0","reason":"cannot start 'serve'"})"});
  EXPECT_TRUE(recorded().back().contains(R"("outcome":"not-started","exit_code":127)"));
}

TEST_F(Supervised, AStartThatFailedSparesTheOthersOfItsStage) {
  plan.stages.clear();
  backend.start = [this](ProcessIndex p) { tell(100ms, process_event::NotStarted{p, "no"}); };
  run([] {});
  EXPECT_EQ(backend.performed, (Lines{"start 0", "ending", "finish 0"}));
}

TEST_F(Supervised, OneThatIsNotReadyInTime) {
  backend.await = [this](ProcessIndex p) {
    tell(600s, process_event::NotReady{p, "127.0.0.1:80: Connection refused"});
  };
  const auto outcome = run([] {});
  EXPECT_EQ(outcome.not_ready, "127.0.0.1:80: Connection refused");
  EXPECT_EQ(said(),
            Lines{"engine.0 was not ready in time (127.0.0.1:80: Connection refused); stopping the others"});
  EXPECT_FALSE(outcome.processes[2].ready);
  ASSERT_TRUE(outcome.explanation);
  EXPECT_EQ(outcome.explanation->category, "not-ready");
  EXPECT_TRUE(advice(outcome).starts_with("its check: ")) << advice(outcome);
}

TEST_F(Supervised, OneThatIsReadyOrStoppedIsNotReportedAsNotReady) {
  const auto outcome = run([this] {
    tell(5s, process_event::NotReady{2, "127.0.0.1:80: Connection refused"});
    end(2, 1, 6s);
    tell(7s, process_event::NotReady{0, "127.0.0.1:81: Connection refused"});
  });
  ASSERT_EQ(outcome.first, 2U);
  EXPECT_EQ(outcome.not_ready, "");
  EXPECT_FALSE(outcome.explanation);
  ASSERT_EQ(said().size(), 2U);
  EXPECT_EQ(said()[0], "engine: 1 of 1 ready after 50ms");
  EXPECT_TRUE(fits(said()[1], "engine.0 exited with code 1 after .*; stopping the others")) << said()[1];
}

TEST_F(Supervised, ARestartIsRecordedAndItsProcessIsANewOne) {
  plan.roles[1].restart = {true, 1, 10ms};
  int started = 0;
  backend.start = [&, this](ProcessIndex p) {
    ++started;
    tell(1s * started, process_event::Started{p, 100 * started});
  };
  backend.await = [&, this](ProcessIndex p) {
    if (started < 4) return tell(5s, process_event::Ready{p});
    EXPECT_EQ(p, 2U);
    loop.post([this] {
      for (const ProcessIndex learner : {0U, 1U}) end(learner, 0);
    });
  };
  const auto outcome = run([this] {
    tell(3500ms, process_event::CleanedUp{2, {}});  // of before: nothing
    end(2, 1, 6s);
  });
  const auto& engine = outcome.processes[2];
  EXPECT_EQ(engine.restarts, 1U);
  EXPECT_EQ(engine.pid, 400);
  EXPECT_EQ(engine.started, 4s);
  EXPECT_FALSE(engine.ready) << "of the start before";
  EXPECT_EQ(recorded_as("process-restart"),
            Lines{R"({"event":"process-restart","process":"engine.0","in_ms":10})"});
  EXPECT_EQ(recorded_as("process-started").back(),
            R"({"event":"process-started","process":"engine.0","pid":400,"restarts":1})");
  EXPECT_EQ(said(),
            (Lines{"engine: 1 of 1 ready after 4.0s", "engine.0 exited with code 1; it restarts in 10ms"}));
  EXPECT_EQ(outcome.processes[0].restarts, 0U);
}

TEST_F(Supervised, ARoleIsReadyWhenTheLastOfItIs) {
  plan.roles[0].ready.tcp = "127.0.0.1:81";
  plan.stages.clear();
  backend.await = [](ProcessIndex) {};
  const auto outcome = run([this] {
    tell(1s, process_event::Ready{0});
    tell(2s, process_event::Ready{2});
    tell(4s, process_event::Ready{1});
    for (const ProcessIndex learner : {0U, 1U}) end(learner, 0);
  });
  EXPECT_EQ(said(), (Lines{"engine: 1 of 1 ready after 1.7s", "learner: 2 of 2 ready after 3.9s"}));
  EXPECT_EQ(recorded_as("process-ready"),
            (Lines{R"({"event":"process-ready","process":"learner.0","after_ms":900})",
                   R"({"event":"process-ready","process":"engine.0","after_ms":1700})",
                   R"({"event":"process-ready","process":"learner.1","after_ms":3800})"}));
}

TEST_F(Supervised, OneThatPreparesIsReadyByItsEnd) {
  plan.roles[1].ready = {};
  plan.roles[1].ready.exited = true;
  backend.await = [](ProcessIndex) {};
  backend.start = [this](ProcessIndex p) {
    tell(100ms, process_event::Started{p, 100 + static_cast<pid_t>(p)});
    if (p == 2) end(2, 0, 700ms);
  };
  const auto outcome = run([this] {
    for (const ProcessIndex learner : {0U, 1U}) end(learner, 0);
  });
  EXPECT_EQ(outcome.processes[2].ready, 700ms);
  EXPECT_EQ(said(), Lines{"engine: 1 of 1 done after 600ms"});
  EXPECT_TRUE(std::holds_alternative<Finished>(outcome.cause));
}

TEST_F(Supervised, OneThatPreparesAndFailsIsNeverReady) {
  plan.roles[1].ready = {};
  plan.roles[1].ready.exited = true;
  backend.await = [](ProcessIndex) {};
  backend.start = [this](ProcessIndex p) {
    tell(100ms, process_event::Started{p, 100 + static_cast<pid_t>(p)});
    end(p, 4, 700ms);
  };
  const auto outcome = run([] {});
  EXPECT_FALSE(outcome.processes[2].ready);
  EXPECT_TRUE(recorded_as("process-ready").empty());
}

TEST_F(Supervised, OneThatPreparesAndIsStoppedIsNotReady) {
  plan.roles[1].ready = {};
  plan.roles[1].ready.exited = true;
  backend.await = [](ProcessIndex) {};
  backend.signal = [this](ProcessIndex p, int) { end(p, 0, 900ms); };
  const auto outcome = run([this] { tell(800ms, process_event::Signal{SIGINT}); });
  EXPECT_FALSE(outcome.processes[2].ready);
  EXPECT_TRUE(recorded_as("process-ready").empty());
}

TEST_F(Supervised, SignalsAreRecordedAndWhatTheyDo) {
  plan.signals[SIGUSR1] = {SignalRule::Action::forward, {"learner"}};
  const auto outcome = run([this] {
    tell(1s, process_event::Signal{SIGUSR1});
    tell(2s, process_event::Signal{SIGINT});
  });
  EXPECT_EQ(recorded_as("signal"),
            (Lines{R"({"event":"signal","signal":"SIGUSR1"})", R"({"event":"signal","signal":"SIGINT"})"}));
  EXPECT_EQ(recorded_as("signal-forwarded"),
            (Lines{R"({"event":"signal-forwarded","process":"learner.0","signal":"SIGUSR1"})",
                   R"({"event":"signal-forwarded","process":"learner.1","signal":"SIGUSR1"})"}));
  EXPECT_EQ(exit_code(outcome), 130);
}

TEST_F(Supervised, WithoutItsGuardianAllIsKilled) {
  auto channel = sys::make_pipe();
  ASSERT_TRUE(channel);
  guardian = GuardianLink(std::move(channel->read), 4711);
  const auto outcome = run([&] { channel->write.reset(); });
  EXPECT_TRUE(recorded().front().contains(R"("guardian":4711)"));
  EXPECT_EQ(recorded_as("guardian-lost").size(), 1U);
  EXPECT_EQ(recorded_as("all-killed").size(), 1U);
  EXPECT_EQ(exit_code(outcome), 70);
  for (const auto& process : outcome.processes) EXPECT_TRUE(process.stopped) << process.name;
}

TEST_F(Supervised, OneThatHadEndedWasNotStopped) {
  backend.kill_all = [this] {
    for (const ProcessIndex p : {1U, 2U}) tell(3s, process_event::Ended{p, sys::WaitStatus(SIGKILL)});
  };
  const auto outcome = run([this] {
    end(0, 0);
    tell(2s, process_event::Signal{SIGQUIT});
  });
  EXPECT_FALSE(outcome.processes[0].stopped);
  EXPECT_TRUE(outcome.processes[1].stopped);
  EXPECT_EQ(exit_code(outcome), 131);
}

TEST_F(Supervised, OnesThatOutliveTheirGraceAreKilledAndNamed) {
  for (auto& role : plan.roles) role.stop.grace = 10ms;
  backend.signal = [](ProcessIndex, int) {};
  backend.kill = [this](ProcessIndex p) { tell(3s, process_event::Ended{p, sys::WaitStatus(SIGKILL)}); };
  run([this] { end(0, 3); });
  EXPECT_EQ(recorded_as("process-killed"),
            (Lines{R"({"event":"process-killed","process":"learner.1","why":"its grace period expired"})",
                   R"({"event":"process-killed","process":"engine.0","why":"its grace period expired"})"}));
  EXPECT_EQ(said().back(), "killed after the grace period: learner.1 and 1 more");
}

TEST_F(Supervised, WhoDoesNotEndIsNamedAndWhatKillsIt) {
  plan.roles[0].stop.grace = plan.roles[1].stop.grace = 2500ms;
  backend.signal = [](ProcessIndex, int) {};
  backend.kill = [this](ProcessIndex p) { tell(3s, process_event::Ended{p, sys::WaitStatus(SIGKILL)}); };
  run([this] { end(0, 3); });
  EXPECT_EQ(said()[2], "waiting up to 2s500ms for learner.1; press Ctrl-C twice to kill");
}

TEST_F(Supervised, SoonIsWithinTenSecondsOfTheStart) {
  plan.roles[1].restart = {true, 5, 10ms};
  int failures = 0;
  backend.await = [&, this](ProcessIndex p) {
    tell(5200ms, process_event::Ready{p});
    loop.post([&, this] {
      if (++failures <= 3) tell(15s, process_event::Ended{2, sys::WaitStatus::exited(4)});
    });
  };
  backend.start = [this](ProcessIndex p) { tell(5100ms, process_event::Started{p, 100}); };
  const auto outcome = run([] {});
  EXPECT_EQ(outcome.processes[2].restarts, 2U);
  EXPECT_EQ(std::get<ProcessFailed>(outcome.cause).alike, 3U);
}

TEST_F(Supervised, OneThatCannotBeKilledCountsAsEnded) {
  plan.roles[0].stop.grace = 10ms;
  backend.signal = [this](ProcessIndex p, int signal) {
    if (p == 2) tell(3s, process_event::Ended{p, sys::WaitStatus(signal)});
  };
  backend.kill = [this](ProcessIndex p) { tell(23s, process_event::NotKillable{p}); };
  backend.end.survivors = {"python (pid 9, state D)"};
  backend.end.left_behind = {"sh (pid 8)"};
  const auto outcome = run([this] { end(0, 3); });
  EXPECT_EQ(recorded_as("process-not-killable"),
            Lines{R"({"event":"process-not-killable","process":"learner.1"})"});
  EXPECT_EQ(recorded_as("not-killable"),
            Lines{R"json({"event":"not-killable","processes":["python (pid 9, state D)"]})json"});
  EXPECT_EQ(recorded_as("leftovers-killed"),
            Lines{R"json({"event":"leftovers-killed","killed":["sh (pid 8)"]})json"});
  EXPECT_EQ(outcome.survivors, backend.end.survivors);
  EXPECT_EQ(outcome.left_behind, backend.end.left_behind);
  EXPECT_EQ(said().back(), "killed after the grace period: learner.1");
}

TEST_F(Supervised, WhatAProcessLeftIsItsOwn) {
  backend.clean = [this](ProcessIndex p) {
    tell(4s, process_event::CleanedUp{p, p == 0 ? Lines{"a (pid 1)", "b (pid 2)"} : Lines{}});
  };
  const auto outcome = run([this] { end(0, 3); });
  EXPECT_EQ(
      recorded_as("leftovers-killed"),
      Lines{
          R"json({"event":"leftovers-killed","process":"learner.0","killed":["a (pid 1)","b (pid 2)"]})json"});
  EXPECT_EQ(outcome.processes[0].left_behind, (Lines{"a (pid 1)", "b (pid 2)"}));
  EXPECT_TRUE(outcome.left_behind.empty());
}

TEST_F(Supervised, ALostNodeEndsWhatWasThere) {
  hosts = {"n0", "n1"};
  plan.processes[1].node = 1;
  const auto outcome = run([this] {
    end(0, 0, 1s);
    tell(2s, process_event::NodeLost{"n1", "no answer", {0, 1}});
  });
  EXPECT_EQ(outcome.processes[1].host, "n1");
  EXPECT_EQ(outcome.processes[0].ended, 1s) << "it had ended before";
  EXPECT_EQ(outcome.processes[1].ended, 2s);
  EXPECT_FALSE(outcome.first);
  EXPECT_EQ(recorded_as("node-lost"), Lines{R"({"event":"node-lost","host":"n1","why":"no answer"})"});
  EXPECT_TRUE(recorded_as("process-started").back().ends_with(R"("restarts":0,"host":"n1"})"));
  EXPECT_EQ(exit_code(outcome), 137);
}

TEST_F(Supervised, OfALostNodeWhatWasNotStartedHasNotEnded) {
  backend.await = [this](ProcessIndex) { tell(2s, process_event::NodeLost{"n0", "no answer", {0, 1, 2}}); };
  const auto outcome = run([] {});
  EXPECT_FALSE(outcome.processes[0].ended);
  EXPECT_EQ(outcome.processes[2].ended, 2s);
}

TEST_F(Supervised, ATroubleIsSaidOnce) {
  const auto outcome = run([this] {
    for (const auto* sentence : {"the disk is full", "another", "the disk is full"})
      tell(1s, process_event::Trouble{sentence});
    end(0, 0);
    end(1, 0);
  });
  EXPECT_EQ(outcome.troubles, (Lines{"the disk is full", "another"}));
  EXPECT_EQ(said(), (Lines{"engine: 1 of 1 ready after 50ms", "the disk is full", "another"}));
  EXPECT_EQ(recorded_as("trouble"), (Lines{R"({"event":"trouble","what":"the disk is full"})",
                                           R"({"event":"trouble","what":"another"})"}));
}

TEST_F(Supervised, TheLastChildrenAreKept) {
  const auto outcome = run([this] {
    tell(1s, process_event::ChildEnded{0, 7, "worker\n", std::nullopt});
    for (pid_t pid = 1; pid <= 32; ++pid)
      tell(1s, process_event::ChildEnded{0, pid, "worker", sys::WaitStatus::exited(2)});
    end(0, 0);
    end(1, 0);
  });
  const auto& children = outcome.processes[0].children;
  ASSERT_EQ(children.size(), 32U);
  EXPECT_EQ(children.front().child.pid, 1);
  EXPECT_EQ(children.back().child.pid, 32);
  EXPECT_EQ(children.back().at, 1s);
  const auto events = recorded_as("child-ended");
  ASSERT_EQ(events.size(), 33U);
  EXPECT_EQ(events[0],
            R"({"event":"child-ended","process":"learner.0","pid":7,"child":"worker\\n","how":"ended"})");
  EXPECT_EQ(
      events[1],
      R"({"event":"child-ended","process":"learner.0","pid":1,"child":"worker","how":"exited with code 2"})");
}

/// Where the logs stood when the run was decided, after a part of the engine was ended by a signal.
class WithAPart : public Supervised {
 protected:
  std::vector<std::optional<std::uint64_t>> logs_after(int signal) {
    backend.end.log_when_decided = {{"learner.0", 100}, {"learner.1", 100}, {"elsewhere", 1}};
    const auto outcome = run([&] {
      tell(0ms, process_event::ChildEnded{
                    2, 7, "raylet", sys::WaitStatus(signal), {{"learner.0", 60}, {"engine.0", 40}}});
      end(0, 3);
    });
    std::vector<std::optional<std::uint64_t>> logs;
    for (const auto& process : outcome.processes) logs.push_back(process.log_when_decided);
    return logs;
  }
  using Sizes = std::vector<std::optional<std::uint64_t>>;
};

TEST_F(WithAPart, WhatFollowedOneThatSaidNothingBeginsWhereItEnded) {
  EXPECT_EQ(logs_after(SIGKILL), (Sizes{60, 100, 40}));
}

TEST_F(WithAPart, OneThatMayHaveSaidWhyDoesNotCutTheLogs) {
  EXPECT_EQ(logs_after(SIGSEGV), (Sizes{100, 100, std::nullopt}));
}

TEST_F(Supervised, WhoEndsBeforeTheLastStepIsNamed) {
  plan.watch.emplace();
  const auto step = [this](ProcessIndex process, std::int64_t done) {
    tell(1s, process_event::Progress{process, done, -1, 40});
  };
  const auto outcome = run([&] {
    step(0, 3);
    step(1, 40);
    end(0, 0);
    end(1, 0);
  });
  EXPECT_EQ(outcome.processes[0].ended_early, "exited with code 0 at step 3 of 40");
  EXPECT_EQ(outcome.processes[1].ended_early, "");
  EXPECT_EQ(outcome.troubles, Lines{"learner.0 exited with code 0 at step 3 of 40"});
  EXPECT_EQ(recorded_as("trouble"),
            Lines{R"({"event":"trouble","what":"learner.0 exited with code 0 at step 3 of 40"})"});
  EXPECT_EQ(outcome.watch["totals"]["learner.0"], 40);
}

TEST_F(Supervised, WhoFailedOrWasStoppedDidNotEndEarly) {
  plan.watch.emplace();
  backend.signal = [this](ProcessIndex p, int) { end(p, 0, 3s); };
  const auto outcome = run([this] {
    for (const ProcessIndex process : {0U, 1U}) tell(1s, process_event::Progress{process, 3, -1, 40});
    end(0, 1);
  });
  EXPECT_EQ(outcome.processes[0].ended_early + outcome.processes[1].ended_early, "");
  EXPECT_EQ(outcome.troubles, Lines{});
}

TEST_F(Supervised, WithoutATerminalNothingIsSaid) {
  EventLog none;
  supervisor = std::make_unique<Supervisor>(
      loop, Supervisor::Options{plan, 3, folder / "logs", {}, none, guardian, nullptr, {}});
  loop.post([this] { end(0, 3); });
  const auto outcome = supervisor->run(backend);
  EXPECT_EQ(outcome.skipped.lines, 0U);
  EXPECT_EQ(outcome.first, 0U);
}

TEST_F(Supervised, EvidenceThatNobodyAskedForIsNothing) {
  const auto outcome = run([this] {
    tell(1s, process_event::Collected{"late"});
    tell(1s, process_event::Progress{0, 3, 1, 40});
    end(0, 0);
    end(1, 0);
  });
  EXPECT_EQ(said().size(), 1U);
  EXPECT_TRUE(outcome.watch.is_null());
}

// Both are looked for every two seconds.
TEST_F(Supervised, EvidenceIsCollectedOnRequestAndThoseThatAreAwaitedAreNamed) {
  std::ofstream(folder / "attempt-0" / "evidence-wanted") << "";
  plan.stages.clear();
  plan.roles[0].stop.grace = 90s;
  judge = [](const std::string&, const watch::Progress& progress) {
    EXPECT_FALSE(progress.last_step) << "nothing is watched";
    Judgement judgement;
    judgement.sentence = "learner.1 sleeps";
    return judgement;
  };
  std::string evidence;
  backend.collect = [&](const std::string& where) {
    evidence = where;
    loop.post([this] {
      tell(2s, process_event::Collected{});
      tell(2s, process_event::Signal{SIGINT});
      loop.after(2200ms, [this] { tell(5s, process_event::Signal{SIGQUIT}); });
    });
  };
  backend.signal = [](ProcessIndex, int) {};
  run([] {});
  EXPECT_TRUE(evidence.starts_with((folder / "attempt-0" / "evidence" / "").string())) << evidence;
  EXPECT_FALSE(fs::exists(folder / "attempt-0" / "evidence-wanted"));
  const auto lines = said();
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines[1], "evidence was requested; collecting it from all processes");
  EXPECT_EQ(lines[2], "learner.1 sleeps");
  EXPECT_EQ(lines[3], "evidence: " + evidence);
  EXPECT_TRUE(lines[4].starts_with("stopped by SIGINT after 2.")) << lines[4];
  EXPECT_EQ(lines[5], "waiting up to 1m30s for learner.0 and 2 more; press Ctrl-C again to kill");
}

TEST_F(Supervised, WhatOthersWereToldByALeaderBeforeIsNotToldAgain) {
  plan.roles[1].ports = {"http"};
  plan.processes[2].ports = {80};
  fs::create_directories(folder / "attempt-0" / "addrs");
  std::ofstream(folder / "attempt-0" / "addrs" / "engine") << "n1:80\n";
  std::ofstream(folder / "attempt-0" / "addrs" / "engine.generation") << "7\n";
  address_of = [](const plan::Process& process) { return fmt::format("n1:{}", process.ports.front()); };
  plan.roles[1].tolerate = 0;
  backend.signal = [this](ProcessIndex p, int signal) {
    tell(3s, process_event::Ended{p, sys::WaitStatus(signal)});
  };
  run([this] {
    end(2, 1);
    loop.after(50ms, [this] {
      end(0, 0);
      end(1, 0);
    });
  });
  EXPECT_EQ(
      recorded_as("addresses"),
      Lines{
          R"({"event":"addresses","role":"engine","generation":8,"addresses":[],"added":[],"removed":["n1:80"]})"});
}

}  // namespace
}  // namespace nlaunch::supervise
