#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "unit/evidence/ranks.h"

// Learners and engines: who is to blame by what the engines say of themselves.
namespace nlaunch::evidence {
namespace {

Member process(const char* role, int index, Stack python, const char* wait_channel) {
  Member member;
  member.process = fmt::format("{}.{}", role, index);
  member.role = role;
  member.host = "node0";
  member.pid = 100 + index;
  member.state = 'S';
  member.python = std::move(python);
  member.wait_channel = wait_channel;
  return member;
}

Member learner(Stack python, const char* wait_channel = "wait_woken", int rank = 0) {
  auto member = process("learner", rank, std::move(python), wait_channel);
  member.rank = rank;
  return member;
}

Server idle() {
  Server server;
  server.idle = true;
  return server;
}

/// vLLM's API server, with its worker.
Member engine(const Server& server, Stack worker = {{"Poller.poll", "zmq/sugar/poll.py", 106}}) {
  auto member = process("engine", 0, {{"Runner.run", "asyncio/runners.py", 118}}, "ep_poll");
  member.server = server;
  member.parts = {{210, "VLLM::EngineCore", 'S', {{"Queue.get", "queue.py", 171}}, {}},
                  {211, "VLLM::Worker", 'S', std::move(worker), {}}};
  return member;
}

const Stack kReward{{"share_of_e", "learner.py", 84}, {"train", "trl/trainer/grpo_trainer.py", 1626}};
const Stack kRequest{{"SocketIO.readinto", "socket.py", 706},
                     {"HTTPResponse.begin", "http/client.py", 318},
                     {"urlopen", "urllib/request.py", 216},
                     {"ask", "learner.py", 40}};
const Stack kBroadcast{{"broadcast", kC10d, 3151}, {"<module>", "sync.py", 29}};
const Stack kSleep{{"generate", "sync.py", 17}, {"<module>", "sync.py", 22}};

void connect(Member& client, Member& server) {
  client.connections = {{"127.0.0.1:40001", "127.0.0.1:8000"}};
  server.connections = {{"127.0.0.1:8000", "127.0.0.1:40001"}};
}

TEST(Servers, TheOnlyClientOfIdleEnginesIsNamedThoughNothingShowsItsStack) {
  auto evidence = of({engine(idle()), learner({}, "futex_do_wait")});
  connect(evidence.members[1], evidence.members[0]);
  EXPECT_EQ(judge(evidence).sentence,
            "unsure: learner.0 (rank 0) on node0 may be the culprit: it waits (futex_do_wait) and requests "
            "nothing, while engine.0 has nothing to do");
  // It may wait for an answer, or for the other one.
  evidence.members[1].wait_channel = "wait_woken";
  EXPECT_EQ(judge(evidence).sentence, "unsure: nothing shows which process is to blame");
  EXPECT_EQ(
      judge(of({engine(idle()), learner({}, "futex_do_wait"), learner({}, "futex_do_wait", 1)})).sentence,
      "unsure: nothing shows which process is to blame");
}

TEST(Servers, AnEngineThatIsPausedIsTheCulprit) {
  auto server = idle();
  server.idle = false;
  server.paused = true;
  auto evidence = of({engine(server), learner(kRequest)});
  connect(evidence.members[1], evidence.members[0]);
  const auto verdict = judge(evidence);
  EXPECT_EQ(verdict.sentence,
            "engine.0 on node0 is the culprit: it is paused (GET /is_paused), and nothing has resumed it; "
            "learner.0 waits for it");
  EXPECT_EQ(to_json(verdict, evidence)["culprits"][0]["doing"], "paused");
}

// A worker that waits for the weights is where it ought to be.
TEST(Servers, APausedEngineThatWaitsForTheWeightsIsNoCulprit) {
  auto server = idle();
  server.paused = true;
  const auto broadcast =
      Stack{{"PyNcclCommunicator.broadcast", "vllm/distributed/device_communicators/pynccl.py", 9}};
  EXPECT_EQ(judge(of({engine(server, broadcast), learner(kBroadcast, "")})).sentence,
            "unsure: nothing shows which process is to blame; learner.0 waits for it");
}

// A learner pauses the engine, sends weights and resumes it.
TEST(Servers, WhoMayBeAboutToResumeAPausedEngineIsNamedToo) {
  auto server = idle();
  server.paused = true;
  const auto verdict = judge(of({engine(server), learner(kReward)}));
  EXPECT_EQ(verdict.sentence,
            "unsure: engine.0 on node0 and learner.0 (rank 0) on node0 may be the culprits");
}

TEST(Servers, AnEngineThatHasLostAPartIsTheCulpritThoughAnotherOneIsPaused) {
  Server paused;
  paused.paused = true;
  auto other = engine(paused);
  other.process = "engine.1";
  Server silent;
  silent.health = "does not answer on its health path: Connection refused";
  auto lost = engine(silent);
  lost.parts.clear();
  lost.killed_parts = {"VLLM::EngineCore (pid 210) was killed by SIGKILL 69.7s into the run"};
  const auto evidence = of({learner(kRequest), lost, other});
  EXPECT_EQ(
      judge(evidence).sentence,
      "engine.0 on node0 is the culprit: it has lost a process: VLLM::EngineCore (pid 210) was killed by "
      "SIGKILL 69.7s into the run");
  const auto both = of({learner(kRequest), lost, [&] {
                          auto second = lost;
                          second.process = "engine.1";
                          return second;
                        }()});
  EXPECT_FALSE(judge(both).sure);
}

TEST(Servers, ALostPartIsNoReasonWhereItIsBackOrTheServerAnswers) {
  Server silent;
  silent.health = "does not answer on its health path: Connection refused";
  const auto with_lost = [](Server server) {
    auto one = engine(server);
    one.killed_parts = {"VLLM::EngineCore (pid 9) was killed by SIGKILL 69.7s into the run"};
    return one;
  };
  const auto accused = [](const Member& one, const Member& client) {
    const auto evidence = of({client, one});
    const auto verdict = judge(evidence);
    return std::ranges::any_of(verdict.culprits,
                               [](const Accused& culprit) { return culprit.why.starts_with("has lost"); });
  };
  EXPECT_FALSE(accused(with_lost(silent), learner(kRequest))) << "another EngineCore runs";
  auto answers = with_lost(Server());
  answers.parts.clear();
  EXPECT_FALSE(accused(answers, learner(kRequest)));
  auto lost = with_lost(silent);
  lost.parts.clear();
  EXPECT_TRUE(accused(lost, learner(kRequest)));
  auto gone = learner({}, "");
  gone.state = 'X';
  gone.ended = "exited with code 1";
  EXPECT_FALSE(accused(lost, gone)) << "a rank that has ended is named before";
}

TEST(Servers, AnEngineWithRequestsThatGeneratesNothingIsTheCulprit) {
  Server server;
  server.stalled = 4;
  server.counts_at_once = true;
  auto evidence = of({engine(server), learner(kRequest)});
  connect(evidence.members[1], evidence.members[0]);
  EXPECT_EQ(judge(evidence).sentence,
            "engine.0 on node0 is the culprit: it has 4 requests in flight and generates nothing; learner.0 "
            "waits for it");
  evidence.members[0].server->counts_at_once = false;
  EXPECT_EQ(judge(evidence).sentence,
            "unsure: engine.0 on node0 may be the culprit: it has 4 requests in flight and generates "
            "nothing; learner.0 waits for it");
}

// It waits for the weights, whatever requests it has.
TEST(Servers, AnEngineWhoseWorkerWaitsForTheLearnerIsNoCulprit) {
  Server server;
  server.stalled = 4;
  server.counts_at_once = true;
  server.core_silent = true;
  const auto evidence = of({engine(server, kBroadcast), learner(kSleep, "hrtimer_nanosleep")});
  EXPECT_EQ(judge(evidence).sentence,
            "learner.0 (rank 0) on node0 is the culprit: it sleeps in generate (sync.py:17), outside of any "
            "collective");
}

TEST(Servers, AServerThatIsNotWellIsACandidate) {
  Server server;
  server.health = "does not answer on its health path: no answer in time";
  EXPECT_EQ(judge(of({engine(server), learner(kReward)})).sentence,
            "unsure: engine.0 on node0 may be the culprit: it does not answer on its health path: no answer "
            "in time");
  server.health.clear();
  server.core_silent = true;
  EXPECT_EQ(judge(of({engine(server), learner(kReward)})).sentence,
            "unsure: engine.0 on node0 may be the culprit: it answers on its health path, but not GET "
            "/is_paused: the engine behind it does not answer");
}

TEST(Servers, WhoLeavesTheEnginesIdleIsTheCulprit) {
  auto evidence = of({engine(idle()), learner(kReward)});
  connect(evidence.members[1], evidence.members[0]);  // kept open from the last request
  EXPECT_EQ(
      judge(evidence).sentence,
      "learner.0 (rank 0) on node0 is the culprit: it waits in share_of_e (learner.py:84), while engine.0 "
      "has nothing to do");
  auto two = of({engine(idle()), learner(kReward), learner(kReward, "wait_woken", 1)});
  EXPECT_EQ(judge(two).sentence,
            "unsure: learner.0 (rank 0) on node0 and learner.1 (rank 1) on node0 may be the culprits");
}

// Its engine's counts are those of the last step that it has done.
TEST(Servers, AnEngineIsNotClearedWhereOneOfItsProcessesIsStopped) {
  auto evidence = of({engine(idle()), learner(kReward)});
  evidence.members[0].parts[1].state = 'T';
  EXPECT_EQ(
      judge(evidence).sentence,
      "engine.0 on node0 is the culprit: it has a process that is stopped (state T): VLLM::Worker (pid 211)");
}

TEST(Servers, WhoWaitsForAnAnswerOfAnIdleEngineIsOneOfTwoCandidates) {
  auto evidence = of({engine(idle()), learner(kRequest)});
  connect(evidence.members[1], evidence.members[0]);
  EXPECT_EQ(judge(evidence).sentence,
            "unsure: engine.0 on node0 and learner.0 (rank 0) on node0 may be the culprits");
  // Without a connection to the engine it waits for somebody else.
  evidence.members[1].connections.clear();
  EXPECT_EQ(judge(evidence).sentence,
            "learner.0 (rank 0) on node0 is the culprit: it waits in ask (learner.py:40), while engine.0 has "
            "nothing to do");
}

// The main thread of a service may sleep while others serve.
TEST(Servers, WhereNothingTellsWhatOneDoesNobodyIsTheCulpritForSure) {
  auto unknown = learner({}, "futex_do_wait");
  EXPECT_FALSE(judge(of({engine(idle()), process("judge", 0, kSleep, "hrtimer_nanosleep"), unknown})).sure);
}

// What its other threads do is not known.
TEST(Servers, WhoWaitsForAThreadOfItsOwnIsNotAccused) {
  const auto verdict =
      judge(of({engine(idle()), learner({{"Condition.wait", "threading.py", 320}, {"train", "l.py", 3}})}));
  EXPECT_EQ(verdict.sentence, "unsure: nothing shows which process is to blame");
}

TEST(Roles, WhoHasNotEnteredTheCollectiveOfTheOtherRoleIsTheCulprit) {
  const auto syncing =
      of({process("engine", 0, kSleep, "hrtimer_nanosleep"), process("learner", 0, kBroadcast, "")});
  EXPECT_EQ(
      judge(syncing).sentence,
      "engine.0 on node0 is the culprit: it sleeps in generate (sync.py:17), outside of any collective; "
      "learner.0 waits for it");
  const auto generating =
      of({process("engine", 0, kBroadcast, ""), process("learner", 0, kSleep, "hrtimer_nanosleep")});
  EXPECT_EQ(judge(generating).culprits[0].member, 1U);
  EXPECT_TRUE(judge(generating).sure);
}

TEST(Roles, RanksThatMayWaitForEachOtherDoNotProveIt) {
  const auto evidence = of({process("engine", 0, kSleep, "hrtimer_nanosleep"), learner(kBroadcast, ""),
                            learner(kBroadcast, "", 1)});
  const auto verdict = judge(evidence);
  EXPECT_FALSE(verdict.sure);
  ASSERT_EQ(verdict.culprits.size(), 1U);
  EXPECT_EQ(verdict.culprits[0].member, 0U);
}

TEST(Roles, AServerThatWaitsForRequestsIsNotAccused) {
  EXPECT_EQ(judge(of({engine(idle()), learner(kBroadcast, "")})).sentence,
            "unsure: nothing shows which process is to blame; learner.0 waits for it");
}

TEST(Verdict, WhoShutsDownIsNoHang) {
  const auto ending = learner({{"_shutdown", "threading.py", 1624}}, "futex_do_wait");
  EXPECT_EQ(
      judge(of({engine(idle()), ending})).sentence,
      "unsure: learner.0 (rank 0) on node0 may be the culprit: it is exiting: its Python is shutting down");
  auto done = learner({}, "");
  done.state = 'D';
  done.last_step = "1000/1000";
  EXPECT_EQ(
      judge(of({engine(idle()), done})).sentence,
      "unsure: learner.0 (rank 0) on node0 may be the culprit: it is exiting: its last step, 1000/1000, "
      "is done");
}

TEST(Verdict, DuringTheEndOnlyWhoCannotEndIsNamed) {
  auto evidence =
      of({process("engine", 0, kSleep, "hrtimer_nanosleep"), process("learner", 0, kBroadcast, "")});
  evidence.ending = "learner.0 exited with code 1 after 12.4s";
  EXPECT_EQ(judge(evidence).sentence, "the run is ending: learner.0 exited with code 1 after 12.4s");
  EXPECT_TRUE(judge(evidence).culprits.empty());
  evidence.members[0].state = 'D';
  evidence.members[0].python.clear();
  EXPECT_EQ(
      judge(evidence).sentence,
      "the run is ending: learner.0 exited with code 1 after 12.4s; engine.0 on node0 cannot exit: it is in "
      "uninterruptible sleep (state D)");
}

}  // namespace
}  // namespace nlaunch::evidence
