#include "diagnose/ranking.h"

#include <gtest/gtest.h>

#include "unit/diagnose/logs.h"

namespace nlaunch::diagnose {
namespace {

constexpr std::string_view kTimeLimit =
    "slurmstepd: error: *** STEP 7.0 ON n9 CANCELLED AT 2025-01-27T14:51:17 DUE TO TIME LIMIT ***\n";
constexpr std::string_view kCancelled =
    "slurmstepd: error: *** STEP 7.0 ON n9 CANCELLED AT 2025-01-27T14:51:17 ***\n";
constexpr std::string_view kClosed =
    "n2:5:6 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer n1.lan<45074>\n";
constexpr std::string_view kOom =
    "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has\n";

std::string text_of(std::initializer_list<std::string_view> lines) {
  std::string text;
  for (const auto line : lines) text += line;
  return text;
}

TEST(Ranked, AReasonComesBeforeTheTimeLimitThatFollowedIt) {
  EXPECT_EQ(cause_of(text_of({kOom, kTimeLimit})), "cuda-oom 1: rank 1 (GPU 1)");
  EXPECT_EQ(cause_of(kTimeLimit), "slurm-time-limit 1");
}

TEST(Ranked, WhatFollowsACancelIsNoReasonForIt) {
  EXPECT_EQ(cause_of(text_of({kCancelled, kClosed, "srun: error: n1: task 0: Exited with exit code 1\n"})),
            "slurm-cancelled-by-user 1");
}

TEST(Ranked, OfProcessesThatLostAPeerThePeerIsTheCulprit) {
  const auto findings = findings_of(text_of({kClosed, "srun: error: n2: task 1: Exited with exit code 134\n",
                                             "srun: error: n1: task 0: Exited with exit code 1\n"}));
  EXPECT_EQ(cause_of(findings), "peer-process-died 1: task 0 on n1");
}

TEST(Ranked, TheEarliestOfEqualsIsTheCause) {
  EXPECT_EQ(cause_of("2025-01-01 10:00:05 RuntimeError: CUDA error: out of memory\n"
                     "2025-01-01 10:00:01 [Errno 98] Address already in use\n"),
            "port-in-use 2");
}

TEST(Ranked, AWarningNobodyKnowsIsNoFailureByItself) {
  EXPECT_EQ(cause_of("n1:1:2 [0] x.cc:1 NCCL WARN what nobody has seen\n"), "healthy");
  EXPECT_EQ(findings_of("n1:1:2 [0] x.cc:1 NCCL WARN what nobody has seen\n").front().role, Role::note);
}

TEST(Ranked, WhatAProgramGotOverIsANote) {
  constexpr std::string_view kDone = "Training completed\n";
  EXPECT_EQ(cause_of(text_of({kOom, kDone})), "healthy");
  EXPECT_EQ(cause_of(text_of({kOom, kDone, "srun: error: n1: task 0: Exited with exit code 1\n"})),
            "cuda-oom 1: rank 1 (GPU 1)");
  EXPECT_EQ(cause_of(text_of({kDone, kClosed})), "healthy");
  EXPECT_EQ(cause_of(text_of({kDone, kOom})), "cuda-oom 2: rank 1 (GPU 1)");
}

TEST(Ranked, AnExceptionIsToldAtItsOwnLineAndNotWhereItIsMentioned) {
  EXPECT_EQ(
      cause_of(text_of(
          {"Failed to load model (original error: CUDA out of memory. Tried to allocate 2.00 GiB)\n", kOom})),
      "cuda-oom 2: rank 1 (GPU 1)");
}

TEST(Ranked, OfTwoDescriptionsOfACulpritTheOneThatSaysMoreIsKept) {
  EXPECT_EQ(cause_of(findings_of({{"(Worker pid=7) OSError: [Errno 28] No space left on device\n"
                                   "\n\n\n\n\n\n\n\n\nOSError: [Errno 28] No space left on device\n",
                                   [] {
                                     Origin engine;
                                     engine.process = "engine.0";
                                     return engine;
                                   }()}})),
            "disk-full 1: engine.0 (Worker, pid 7)");
}

TEST(Ranked, OfTwoHintsForALineTheHeavierCounts) {
  // "hub.retry" weighs 33, "hub.http" 34; the first stands earlier in the line.
  const auto findings = findings_of(
      text_of({kOom, "HTTPSConnectionPool(host='huggingface.co', port=443): Read timed out. huggingface\n"}));
  EXPECT_EQ(findings.at(1).signature, "hub.http");
}

TEST(Ranked, ASourceLineAndAFileThatNobodyNeedsAreNoFailure) {
  EXPECT_EQ(
      cause_of("--> 218     raise NotImplementedError(\"Unsloth cannot find any torch accelerator?\")\n"),
      "healthy");
  constexpr std::string_view kMissing = "OSError: a/b does not appear to have a file named ";
  EXPECT_EQ(cause_of(text_of({kMissing, "generation_config.json. Checkout\n"})), "healthy");
  EXPECT_EQ(cause_of(text_of({kMissing, "config.json. Checkout\n"})), "model-not-found 1");
}

TEST(Ranked, AWarningTellsWhyOnlyWhereItsFailureFollows) {
  constexpr std::string_view kWarning =
      "WARNING 02-28 20:57:36 x.py:1] Failed to import from vllm._C with ImportError('libx.so: cannot "
      "open')\n";
  constexpr std::string_view kFailure =
      "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'\n";
  EXPECT_EQ(cause_of(kWarning), "healthy");
  EXPECT_EQ(cause_of(text_of({kWarning, kOom})), "cuda-oom 2: rank 1 (GPU 1)");
  EXPECT_EQ(cause_of(text_of({kWarning, kFailure})), "extension-not-loaded 1");
  EXPECT_EQ(cause_of(kFailure), "extension-not-loaded 1");
}

TEST(Ranked, WhatEndsBehindAForcedEndIsNoFailure) {
  constexpr std::string_view kForced = "srun: forcing job termination\n";
  constexpr std::string_view kKilled = "srun: error: n1: task 0: Killed\n";
  EXPECT_EQ(cause_of(text_of({kForced, kKilled})), "healthy");
  EXPECT_EQ(cause_of(text_of({kKilled, kForced})), "process-killed 1: task 0 on n1");
}

TEST(Ranked, OfRayTheProcessIsNamedThatASignalEnded) {
  EXPECT_EQ(cause_of("2026-11-23 12:32:26,368 ERR scripts.py:87 -- raylet [exit code=-9]\n"),
            "process-killed 1: raylet");
  const std::string died =
      "Traceback (most recent call last):\n  File \"a.py\", line 33, in <module>\n"
      "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
      "\tclass_name: WorkerDict\n\tactor_id: 2d6a\n\tpid: 5740\n\tip: 192.0.2.2\n"
      "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit "
      "detail: ";
  EXPECT_EQ(
      cause_of(died + "Worker unexpectedly exits with a connection error code 2. End of file. Some common "
                      "causes include: (1) the process was killed by the OOM killer\n"),
      "ray-worker-died 3: WorkerDict on 192.0.2.2 (pid 5740)");
  EXPECT_EQ(
      cause_of(died +
               "Worker exits unexpectedly by a signal. Exit code: 1. The process receives a SIGTERM.\n"),
      "process-terminated 3: WorkerDict on 192.0.2.2 (pid 5740)");
}

TEST(Ranked, AnEngineThatDidNotStartIsWhatHappened) {
  EXPECT_EQ(cause_of("(EngineCore_DP0 pid=7) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
                     "2.00 GiB. GPU 0 has\n"
                     "RuntimeError: Engine core initialization failed. See root cause above.\n"),
            "vllm-enginecore-start-failure 1: EngineCore_DP0 (pid 7, GPU 0)");
}

TEST(Ranked, AFileTellsWhoseItIs) {
  Origin learner;
  learner.process = "learner.1";
  EXPECT_EQ(
      cause_of(findings_of({{"nothing\n", {}}, {"OSError: [Errno 28] No space left on device\n", learner}})),
      "disk-full 1: learner.1");
}

}  // namespace
}  // namespace nlaunch::diagnose
