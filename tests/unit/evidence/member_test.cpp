#include "evidence/member.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

// What one process does, by its state, its stacks and its log.
namespace nlaunch::evidence {
namespace {

using Doing = Situation::Doing;

constexpr auto kC10d = "torch/distributed/distributed_c10d.py";
const Frame kTrain{"train", "train.py", 12};

Member alive() {
  Member member;
  member.process = "learner.0";
  member.role = "learner";
  member.pid = 100;
  member.state = 'S';
  return member;
}

Member with(Stack python, Stack native = {}) {
  auto member = alive();
  member.python = std::move(python);
  member.native = std::move(native);
  return member;
}

std::string said(const Member& member) {
  return describe(situation_of(member));
}

TEST(Situation, IsThatOfTheStateFirst) {
  const std::vector<std::pair<char, std::string>> expected{
      {'X', "is gone"},
      {'Z', "is gone"},
      {'T', "is stopped (state T): train.py (pid 100) in train (train.py:12)"},
      {'t', "is stopped (state T): train.py (pid 100) in train (train.py:12)"},
      {'D', "is in uninterruptible sleep (state D): train.py (pid 100) in train (train.py:12)"}};
  for (const auto& [state, sentence] : expected) {
    auto member = with({kTrain});
    member.title = "train.py";
    member.state = state;
    member.last_step = state == 'D' ? "" : "8/8";
    EXPECT_EQ(said(member), sentence);
    EXPECT_TRUE(situation_of(member).certain);
  }
}

TEST(Situation, OfOneWhoseTitleNobodyKnowsIsWithoutIt) {
  auto member = alive();
  member.state = 'T';
  EXPECT_EQ(said(member), "is stopped (state T)");
}

TEST(Situation, OfACollectiveHasWhatTheProgramCalledAndWhere) {
  const auto member = with({{"wait", kC10d, 10}, {"all_reduce", kC10d, 20}, kTrain});
  EXPECT_EQ(said(member), "waits in all_reduce, called from train (train.py:12)");
  EXPECT_TRUE(situation_of(member).certain);
  for (const auto* file :
       {"vllm/distributed/device_communicators/pynccl.py", "torch/distributed/_functional_collectives.py",
        "torch/distributed/nn/functional.py"}) {
    EXPECT_EQ(situation_of(with({{"f", file, 1}, kTrain})).doing, Doing::collective) << file;
  }
}

TEST(Situation, OfACollectiveIsKnownByNativeCodeAlone) {
  for (const auto* name : {"c10d::ProcessGroupGloo::AsyncWork::wait", "gloo::transport::tcp::Pair::recv"})
    EXPECT_EQ(said(with({}, {{name, "", 0}})), "waits in a collective") << name;
  for (const auto* file : {"/usr/lib/libgloo.so", "/venv/libnccl.so.2", "/usr/lib/libmpi.so.40"})
    EXPECT_EQ(said(with({kTrain}, {{"poll", file, 0}})),
              "waits in a collective, called from train (train.py:12)");
}

TEST(Situation, OfOneThatWaitsForItsGpu) {
  EXPECT_EQ(said(with({kTrain}, {{"??", "/usr/lib/libcuda.so.1", 0}})),
            "waits for its GPU in train (train.py:12)");
  for (const auto* function : {"cuStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize"})
    EXPECT_EQ(said(with({}, {{function, "", 0}})), "waits for its GPU") << function;
  for (const auto* file : {"torch/cuda/__init__.py", "torch/cuda/streams.py"})
    EXPECT_EQ(said(with({{"synchronize", file, 1}, kTrain})), "waits for its GPU in train (train.py:12)");
  EXPECT_EQ(situation_of(with({{"current_device", "torch/cuda/__init__.py", 1}, kTrain})).doing,
            Doing::elsewhere);
  EXPECT_EQ(situation_of(with({kTrain, {"synchronize", "torch/cuda/__init__.py", 1}})).doing,
            Doing::elsewhere)
      << "it has been left";
}

TEST(Situation, OfOneThatShutsDown) {
  for (const Frame& frame :
       {Frame{"_shutdown", "threading.py", 1}, Frame{"_exit_function", "multiprocessing/util.py", 1},
        Frame{"_run_exitfuncs", "atexit.py", 1}})
    EXPECT_EQ(said(with({frame})), "is exiting: its Python is shutting down") << frame.function;
  EXPECT_EQ(said(with({}, {{"Py_FinalizeEx", "", 0}})), "is exiting: its Python is shutting down");
  auto member = with({kTrain});
  member.last_step = "8/8";
  EXPECT_EQ(said(member), "is exiting: its last step, 8/8, is done");
  member.state = 'D';
  EXPECT_EQ(said(member), "is exiting: its last step, 8/8, is done");
  // One that is still in a collective after its last step is waited for, and waits.
  member.state = 'S';
  member.native = {{"poll", "/venv/libnccl.so.2", 0}};
  EXPECT_EQ(situation_of(member).doing, Doing::collective);
}

TEST(Situation, OfAServerThatIsPaused) {
  auto member = with({{"broadcast", kC10d, 1}, kTrain});
  member.server = Server();
  EXPECT_EQ(situation_of(member).doing, Doing::collective);
  member.server->paused = true;
  EXPECT_EQ(said(member), "is paused (GET /is_paused), and nothing has resumed it");
  EXPECT_TRUE(situation_of(member).certain);
}

TEST(Situation, ElsewhereIsSleepWorkOrWaiting) {
  auto member = with({{"sleep_on", "train.py", 3}});
  const auto place = std::string(" in sleep_on (train.py:3), outside of any collective");
  EXPECT_EQ(said(member), "waits" + place);
  member.cpu = 0.2;
  EXPECT_EQ(said(member), "waits" + place);
  member.cpu = 0.21;
  EXPECT_EQ(said(member), "computes" + place);
  member.cpu = 0;
  member.state = 'R';
  EXPECT_EQ(said(member), "computes" + place);
  member.wait_channel = "hrtimer_nanosleep";
  EXPECT_EQ(said(member), "sleeps" + place);
}

// Its Python may have called CUDA, which waits: only native stacks show that.
TEST(Situation, ElsewhereIsCertainWhereItCannotWaitForAGpu) {
  auto member = with({kTrain});
  EXPECT_TRUE(situation_of(member).certain);
  member.cuda = true;
  EXPECT_FALSE(situation_of(member).certain);
  member.native = {{"poll", "libc.so.6", 0}};
  EXPECT_TRUE(situation_of(member).certain);
  member.native.clear();
  member.wait_channel = "hrtimer_nanosleep";
  EXPECT_TRUE(situation_of(member).certain);
}

TEST(Situation, IsUnknownWithoutAnyStack) {
  EXPECT_EQ(said(alive()), "waits, location unknown");
  EXPECT_FALSE(situation_of(alive()).certain);
  EXPECT_EQ(situation_of(with({}, {{"poll", "libc.so.6", 0}})).doing, Doing::elsewhere);
  EXPECT_EQ(describe(Situation()), "runs, location unknown");
}

TEST(Situation, HasThePlaceInWhatIsTheUsersOwn) {
  const auto place = [](Stack python) { return situation_of(with(std::move(python))).place; };
  for (const auto* file : {"/venv/lib/x/torch/nn.py",
                           "/venv/site-packages/trl/t.py",
                           "/usr/lib/python3.11/ast.py",
                           "<frozen runpy>",
                           "uvloop/loop.pyx",
                           "torch/nn/functional.py",
                           "asyncio/base.py",
                           "concurrent/futures/thread.py",
                           "http/client.py",
                           "multiprocessing/pool.py",
                           "urllib/request.py",
                           "urllib3/pool.py",
                           "requests/api.py",
                           "httpx/_client.py",
                           "httpcore/_sync.py",
                           "aiohttp/client.py",
                           "anyio/_core.py",
                           "zmq/sugar/poll.py",
                           "threading.py",
                           "selectors.py",
                           "socket.py",
                           "ssl.py",
                           "queue.py"})
    EXPECT_EQ(place({{"f", file, 1}, kTrain}), "train (train.py:12)") << file;
  EXPECT_EQ(place({{"f", "my/queue.py", 1}, kTrain}), "f (my/queue.py:1)") << "one of their own";
  EXPECT_EQ(place({{"get", "queue.py", 171}}), "get (queue.py:171)") << "there is no other";
}

TEST(Situation, IsThatOfAPartThatHoldsItUp) {
  for (const char state : {'T', 't', 'D'}) {
    auto member = with({kTrain});
    member.parts = {{8, "helper", 'S'}, {9, "VLLM::EngineCore", state}};
    const auto situation = situation_of(member);
    ASSERT_TRUE(situation.part);
    EXPECT_EQ(situation.part->pid, 9);
    EXPECT_TRUE(situation.certain);
    EXPECT_EQ(describe(situation),
              state == 'D'
                  ? "has a process that is in uninterruptible sleep (state D): VLLM::EngineCore (pid 9)"
                  : "has a process that is stopped (state T): VLLM::EngineCore (pid 9)");
    for (const char own : {'T', 't', 'D', 'X', 'Z'}) {
      member.state = own;
      EXPECT_FALSE(situation_of(member).part) << own;
    }
  }
}

// Nobody has looked whether it has CUDA.
TEST(Situation, OfAPartIsNotCertain) {
  Part part{9, "VLLM::Worker", 'S', {kTrain}, {}};
  EXPECT_EQ(situation_of(part).place, "train (train.py:12)");
  EXPECT_FALSE(situation_of(part).certain);
  part.native = {{"poll", "libc.so.6", 0}};
  EXPECT_TRUE(situation_of(part).certain);
}

TEST(Member, HasItsRankInItsNameWhereTheyDiffer) {
  auto member = alive();
  EXPECT_EQ(member.name(), "learner.0");
  EXPECT_EQ(member.str(), "learner.0");
  member.rank = 0;
  member.host = "nid1";
  EXPECT_EQ(member.name(), "learner.0");
  EXPECT_EQ(member.str(), "learner.0 (rank 0) on nid1");
  member.rank = 3;
  EXPECT_EQ(member.name(), "learner.0 (rank 3)");
}

}  // namespace
}  // namespace nlaunch::evidence
