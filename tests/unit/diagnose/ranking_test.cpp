#include "diagnose/ranking.h"

#include <gtest/gtest.h>

#include <map>

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

constexpr std::string_view kFull = "OSError: [Errno 28] No space left on device\n";
constexpr std::string_view kError = "RuntimeError: CUDA error: out of memory\n";
constexpr std::string_view kUnhandled =
    "RuntimeError: NCCL error in: x.cpp:825, unhandled system error, NCCL version\n";
constexpr std::string_view kExited = "srun: error: n1: task 0: Exited with exit code 1\n";
constexpr std::string_view kKilled = "srun: error: n3: task 2: Killed\n";

/// "CLASS ROLE WEIGHT" of each.
std::vector<std::string> roles_of(const std::vector<Finding>& findings) {
  const std::map<Role, std::string> names{{Role::cause, "cause"},
                                          {Role::other, "other"},
                                          {Role::consequence, "consequence"},
                                          {Role::note, "note"}};
  std::vector<std::string> all;
  for (const auto& finding : findings)
    all.push_back(finding.category + " " + names.at(finding.role) + " " + std::to_string(finding.weight));
  return all;
}

using Roles = std::vector<std::string>;

TEST(Ranked, GivesEachFindingItsRoleAndSeverity) {
  const auto findings = findings_of(text_of({"n1:1:2 [0] NCCL INFO Using network Socket\n", kClosed, kError,
                                             "OSError: [Errno 98] Address already in use\n"}));
  EXPECT_EQ(roles_of(findings), (Roles{"cuda-oom cause 70", "port-in-use other 70",
                                       "peer-process-died consequence 30", "slow-network note 0"}));
  EXPECT_EQ(findings[0].severity, Severity::error);
  EXPECT_EQ(findings[1].severity, Severity::error);
  EXPECT_EQ(findings[2].severity, Severity::warning);
  EXPECT_EQ(findings[3].severity, Severity::note);
  EXPECT_EQ(findings[0].confidence, Confidence::sure);
  EXPECT_EQ(findings[2].confidence, Confidence::likely);
}

TEST(Ranked, AFindingOfWeightFortyIsAConsequence) {
  EXPECT_EQ(roles_of(findings_of(text_of({kError, kUnhandled}))),
            (Roles{"cuda-oom cause 70", "nccl-error consequence 40"}));
  EXPECT_EQ(roles_of(findings_of(text_of({kError, "sample_tokens timed out\n"}))),
            (Roles{"cuda-oom cause 70", "vllm-engine-died other 42"}));
}

TEST(Ranked, TakesTheSignaturesOfAClassForOneFinding) {
  auto findings =
      findings_of(text_of({"[rank1]: torch.cuda.OutOfMemoryError: CUDA out of memory.\n", kOom, kError}));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].position.line, 2U);
  EXPECT_EQ(findings[0].weight, 70);
  EXPECT_GE(findings[0].count, 3U);
  findings = findings_of(text_of({kError, kOom}));
  EXPECT_EQ(cause_of(findings), "cuda-oom 1: rank 1 (GPU 1)");
  findings = findings_of(text_of({"[rank2]: torch.cuda.OutOfMemoryError: CUDA out of memory.\n", kOom}));
  EXPECT_EQ(cause_of(findings), "cuda-oom 2: rank 1 (GPU 1)");
}

TEST(Ranked, NamesOfAClassThoseOfTheWeakerLineWhereTheStrongerNamesNobody) {
  EXPECT_EQ(cause_of(findings_of({{std::string(kError), {}},
                                  {"[rank2]: torch.cuda.OutOfMemoryError: CUDA out of memory.\n", {}}})),
            "cuda-oom 1: rank 2");
}

TEST(Ranked, NamesAllThatTellOfAReasonAndTheFirstOfThoseThatTellOfAConsequence) {
  const auto twice = [](std::string_view line) {
    return "[rank1]: " + std::string(line) + "[rank2]: " + std::string(line);
  };
  EXPECT_EQ(cause_of(twice(kFull)), "disk-full 1: ranks 1 and 2");
  EXPECT_EQ(cause_of(twice("RuntimeError: CUDA error: operation not permitted\n")),
            "cuda-error 1: ranks 1 and 2");
  EXPECT_EQ(cause_of(twice(kUnhandled)), "nccl-error 1: rank 1");
}

/// How the culprits are named that these lines are about, which tell of one failure.
std::string joined(const std::vector<Origin>& whos) {
  std::vector<Log> logs;
  for (const auto& who : whos) logs.push_back({std::string(kFull), who});
  return names_of(findings_of(logs).at(0).culprits);
}

Origin with(std::initializer_list<std::pair<std::string_view, std::string_view>> parts) {
  Origin origin;
  for (const auto& [part, value] : parts) EXPECT_TRUE(origin.set(part, value)) << part;
  return origin;
}

TEST(Culprits, OfTwoDescriptionsOfOneProcessAreOne) {
  EXPECT_EQ(joined({with({{"rank", "3"}}), with({{"rank", "3"}, {"host", "n1"}})}), "rank 3 on n1");
  EXPECT_EQ(joined({with({{"rank", "3"}, {"host", "n1"}}), with({{"rank", "3"}, {"pid", "7"}})}),
            "rank 3 on n1 (pid 7)");
  EXPECT_EQ(joined({with({{"pid", "7"}, {"host", "n1"}}), with({{"pid", "7"}, {"actor", "W"}})}),
            "W on n1 (pid 7)");
  EXPECT_EQ(joined({with({{"host", "n1"}, {"task", "3"}}), with({{"host", "n1"}, {"rank", "3"}})}),
            "rank 3 on n1 (task 3)");
  EXPECT_EQ(joined({with({{"host", "n1"}, {"rank", "3"}}), with({{"host", "n1"}, {"task", "3"}})}),
            "rank 3 on n1 (task 3)");
  EXPECT_EQ(
      joined({with({{"host", "n1"}, {"rank", "3"}, {"pid", "7"}}), with({{"host", "n1"}, {"task", "3"}})}),
      "rank 3 on n1 (task 3, pid 7)");
  EXPECT_EQ(joined({with({{"peer", "n1:5"}}), with({{"peer", "n1:5"}, {"host", "n2"}})}),
            "n1:5 (as seen by n2)");
  EXPECT_EQ(joined({with({{"host", "n1"}, {"device", "0"}}), with({{"host", "n1"}, {"actor", "W"}})}),
            "W on n1 (GPU 0)");
  EXPECT_EQ(joined({with({{"host", "n1"}}), with({{"host", "n1"}, {"rank", "3"}})}), "rank 3 on n1");
}

TEST(Culprits, OfTwoProcessesAreTwo) {
  EXPECT_EQ(joined({with({{"rank", "3"}, {"host", "n1"}}), with({{"rank", "3"}, {"host", "n2"}})}),
            "rank 3 on n1 and rank 3 on n2");
  EXPECT_EQ(joined({with({{"pid", "7"}, {"host", "n1"}}), with({{"pid", "7"}, {"host", "n2"}})}),
            "n1 (pid 7) and n2 (pid 7)");
  EXPECT_EQ(joined({with({{"rank", "3"}, {"pid", "7"}}), with({{"rank", "4"}, {"pid", "7"}})}),
            "ranks 3 and 4");
  EXPECT_EQ(joined({with({{"rank", "3"}, {"peer", "n1"}}), with({{"rank", "3"}, {"peer", "n2"}})}),
            "n1 (as seen by rank 3) and n2 (as seen by rank 3)");
  EXPECT_EQ(joined({with({{"host", "n1"}, {"task", "3"}}), with({{"host", "n2"}, {"rank", "3"}})}),
            "task 3 on n1 and rank 3 on n2");
  EXPECT_EQ(joined({with({{"host", "n1"}, {"task", "3"}}), with({{"host", "n1"}, {"rank", "4"}})}),
            "task 3 on n1 and rank 4 on n1");
  EXPECT_EQ(
      joined({with({{"host", "n1"}, {"rank", "4"}, {"pid", "7"}}), with({{"host", "n1"}, {"task", "3"}})}),
      "rank 4 on n1 (pid 7) and task 3 on n1");
  EXPECT_EQ(joined({with({{"host", "n1"}, {"pid", "7"}}), with({{"host", "n1"}, {"actor", "W"}})}),
            "n1 (pid 7) and W on n1");
}

TEST(Culprits, ThatNameNobodyAreTheOneProcessThatEnded) {
  EXPECT_EQ(cause_of(text_of({kFull, kExited})), "disk-full 1: task 0 on n1");
  EXPECT_EQ(cause_of(text_of({kFull, kExited, kExited})), "disk-full 1: task 0 on n1");
  EXPECT_EQ(cause_of(text_of({kFull, kExited, kKilled})), "disk-full 1");
  EXPECT_EQ(cause_of(text_of({"[rank5]: ", kFull, kExited})), "disk-full 1: rank 5");
  EXPECT_EQ(cause_of(text_of({kUnhandled, kExited})), "nccl-error 1");
}

TEST(Culprits, AreCompletedByWhatOtherLinesSayOfTheSamePid) {
  const auto named = [&](const Origin& first, const Origin& second) {
    return names_of(findings_of({{std::string(kFull), first}, {std::string(kError), second}}).at(0).culprits);
  };
  EXPECT_EQ(named(with({{"pid", "77"}}), with({{"pid", "77"}, {"rank", "3"}, {"host", "n7"}})),
            "rank 3 on n7 (pid 77)");
  EXPECT_EQ(named(with({{"pid", "77"}, {"host", "n7"}}), with({{"pid", "77"}, {"rank", "3"}})),
            "rank 3 on n7 (pid 77)");
  EXPECT_EQ(
      named(with({{"pid", "77"}, {"host", "n7"}}), with({{"pid", "77"}, {"rank", "3"}, {"host", "n7"}})),
      "rank 3 on n7 (pid 77)");
  EXPECT_EQ(
      named(with({{"pid", "77"}, {"host", "n7"}}), with({{"pid", "77"}, {"rank", "3"}, {"host", "n8"}})),
      "n7 (pid 77)");
  EXPECT_EQ(named(with({{"pid", "78"}}), with({{"pid", "77"}, {"rank", "3"}})), "pid 78");
  EXPECT_EQ(named(with({{"actor", "W"}}), with({{"rank", "3"}})), "W");
  EXPECT_EQ(named(with({{"pid", "77"}}), with({{"pid", "77"}, {"peer", "n9"}})), "pid 77");
}

TEST(LostPeer, IsTheOneOnTheHostThatOthersLost) {
  auto findings =
      findings_of(text_of({kClosed, "srun: error: n2: task 1: Exited with exit code 1\n", kExited}));
  EXPECT_EQ(cause_of(findings), "peer-process-died 1: task 0 on n1");
  EXPECT_EQ(findings[0].why, "a process exited, and others lost their connection to it");
  EXPECT_EQ(findings[0].fix, "read the log of that process: it exited first");
  findings = findings_of(text_of({kClosed, kKilled}));
  EXPECT_EQ(cause_of(findings), "peer-process-died 1: task 2 on n3");
}

TEST(LostPeer, IsElseTheFirstThatEnded) {
  const std::string_view exited = "srun: error: n5: task 4: Exited with exit code 1\n";
  EXPECT_EQ(cause_of(text_of({kClosed, kKilled, exited})), "peer-process-died 1: task 2 on n3");
  EXPECT_EQ(cause_of(text_of({kClosed, exited, kKilled})), "peer-process-died 1: task 4 on n5");
}

TEST(LostPeer, IsToldWhereItsEndIsToldFirst) {
  const std::string_view early = "2025-01-01 10:00:01 srun: error: n3: task 2: Killed\n";
  const std::string late = "2025-01-01 10:00:05 " + std::string(kClosed);
  auto findings = findings_of(text_of({late, early}));
  EXPECT_EQ(cause_of(findings), "peer-process-died 2: task 2 on n3");
  EXPECT_EQ(findings[0].text + "\n", early);
  EXPECT_EQ(findings[0].time, findings[1].time);
  findings = findings_of(text_of({kKilled, kClosed}));
  EXPECT_EQ(cause_of(findings), "peer-process-died 1: task 2 on n3");
}

TEST(LostPeer, IsNotKnownWhereNothingEnded) {
  const auto findings = findings_of(kClosed);
  EXPECT_EQ(cause_of(findings), "peer-process-died 1: n1.lan (as seen by n2 (pid 5, GPU 0))");
  EXPECT_EQ(findings[0].why, "the process at the other end of a connection exited: this rank only noticed");
}

TEST(Engine, IsWhatDidNotStartWhateverTheReason) {
  const std::string_view engine =
      "(EngineCore_DP0 pid=7) RuntimeError: Engine core initialization failed. See root cause above.\n";
  auto findings = findings_of(text_of({kError, engine}));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].category, "vllm-enginecore-start-failure");
  EXPECT_EQ(findings[0].why,
            "vLLM's engine did not start: a GPU had no memory left; in the first CUDA call of a program this "
            "means that another process holds the memory, or that the GPU is faulty");
  EXPECT_EQ(findings[0].position.line, 1U);
  findings = findings_of(text_of({"ValueError: so it is\n", engine}));
  EXPECT_EQ(findings[0].why, "vLLM's engine did not start: Python raised an exception");
  // A task of Ray that failed weighs less, and explains nothing.
  findings = findings_of(text_of({"ray.exceptions.RayTaskError: x\n", engine}));
  EXPECT_EQ(roles_of(findings),
            (Roles{"vllm-enginecore-start-failure cause 45", "python-exception consequence 25"}));
}

TEST(Clues, AreOfTheirFileAndBeforeTheFailureAlone) {
  const std::string clue =
      "WARNING 02-28 20:57:36 x.py:1] Failed to import from vllm._C with ImportError('libx')\n";
  const std::string failure = "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'\n";
  EXPECT_EQ(cause_of(nothing(3) + clue + nothing(20) + failure), "extension-not-loaded 4");
  EXPECT_EQ(cause_of(nothing(3) + failure + nothing(20) + clue), "extension-not-loaded 4");
  const auto apart = findings_of({{nothing(3) + clue, {}}, {failure, {}}});
  EXPECT_EQ(apart.at(0).position, (LogPosition{1, 1}));
  const auto findings = findings_of(clue + failure);
  EXPECT_EQ(findings[0].signature, "vllm.extension-why");
  EXPECT_EQ(findings[0].why, "the compiled part of vLLM could not be loaded, for the reason in the line");
  EXPECT_EQ(findings[0].text + "\n", clue);
  EXPECT_EQ(findings[0].weight, 68);
}

TEST(GoodEnd, MakesUpForWhatWasBeforeItAndForWhatFollowsOfOthers) {
  constexpr std::string_view kDone = "Training completed\n";
  constexpr std::string_view kStuck = "sample_tokens timed out\n";  // weighs 42
  EXPECT_EQ(cause_of(text_of({kStuck, kDone})), "healthy");
  EXPECT_EQ(cause_of(text_of({kDone, kStuck})), "vllm-engine-died 2");
  EXPECT_EQ(cause_of(text_of({kDone, kUnhandled})), "healthy");
  EXPECT_EQ(cause_of("Training completed with CUDA error: out of memory\n"), "cuda-oom 1");
  EXPECT_EQ(cause_of(findings_of({{std::string(kStuck), {}}, {std::string(kDone), {}}})),
            "vllm-engine-died 1");
  const auto findings = findings_of(text_of({kStuck, kDone}));
  EXPECT_EQ(roles_of(findings), Roles{"vllm-engine-died note 42"});
  EXPECT_EQ(findings[0].severity, Severity::note);
}

TEST(GoodEnd, DoesNotCountWhereAProcessEndedBadlyOrTheRunFailed) {
  constexpr std::string_view kDone = "Training completed\n";
  EXPECT_EQ(cause_of(text_of({kFull, kDone, kKilled})), "disk-full 1: task 2 on n3");
  Finding end;
  end.category = "process-exited";
  end.weight = kEndOfFirst;
  EXPECT_EQ(cause_of(findings_of({{text_of({kFull, kDone}), {}}}, end)), "disk-full 1");
}

TEST(Hints, AreNotesUnlessSomethingFailed) {
  const std::string hint = "n1:1:2 [0] x.cc:1 NCCL WARN what nobody has seen\n";
  EXPECT_EQ(roles_of(findings_of(hint)), Roles{"nccl-warning note 29"});
  EXPECT_EQ(roles_of(findings_of(hint + std::string(kFull))),
            (Roles{"disk-full cause 82", "nccl-warning consequence 29"}));
}

constexpr FileStanding kOfFirst{Standing::failed};
constexpr FileStanding kOfStopped{Standing::stopped};

TEST(FirstToFail, ExplainsMoreThanWhatOthersSaidLater) {
  const std::string full(kFull);
  const std::string raised = "ValueError: so it is\n";
  EXPECT_EQ(roles_of(findings_of({{raised, {}, kOfFirst}, {full, {}, kOfStopped}})),
            (Roles{"python-exception cause 49", "disk-full consequence 40"}));
  EXPECT_EQ(roles_of(findings_of({{raised, {}, kOfFirst}, {full, {}, {}}})),
            (Roles{"disk-full cause 82", "python-exception other 49"}));
  EXPECT_EQ(roles_of(findings_of({{raised, {}, kOfFirst}, {full, {}, {Standing::stopped, 1000}}})),
            (Roles{"disk-full cause 82", "python-exception other 49"}));
}

TEST(FirstToFail, ThatOnlyToldOfAnotherExplainsNothing) {
  const std::string full(kFull);
  const std::string of_peer =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nhttpx.ConnectError: no answer\n";
  EXPECT_EQ(roles_of(findings_of({{of_peer, {}, kOfFirst}, {full, {}, kOfStopped}})),
            (Roles{"disk-full cause 82", "python-exception other 42"}));
  EXPECT_EQ(roles_of(findings_of({{std::string(kUnhandled), {}, kOfFirst}, {full, {}, kOfStopped}})),
            (Roles{"disk-full cause 82", "nccl-error consequence 40"}));
  EXPECT_EQ(roles_of(findings_of({{"sample_tokens timed out\n", {}, kOfStopped}, {full, {}, kOfStopped}})),
            (Roles{"disk-full cause 82", "vllm-engine-died other 42"}));
}

Finding end_of_first(int weight, std::vector<Origin> culprits) {
  Finding end;
  end.category = "process-exited";
  end.signature = "summary";
  end.weight = weight;
  end.culprits = std::move(culprits);
  return end;
}

TEST(EndOfTheFirst, AddsNothingToItsOwnWords) {
  const auto learner = with({{"process", "learner.0"}});
  const std::string full(kFull);
  EXPECT_EQ(roles_of(findings_of({{full, {}, kOfFirst}}, end_of_first(kEndOfFirst, {learner}))),
            Roles{"disk-full cause 82"});
  EXPECT_EQ(roles_of(findings_of({{full, {}, kOfFirst}}, end_of_first(kKilledFirst, {learner}))),
            (Roles{"disk-full cause 82", "process-exited other 46"}));
  EXPECT_EQ(roles_of(findings_of({{full, {}, {}}}, end_of_first(kEndOfFirst, {learner}))),
            (Roles{"disk-full cause 82", "process-exited other 41"}));
  EXPECT_EQ(roles_of(findings_of({{full, {}, {}}}, end_of_first(kEndOfFirst, {}))),
            Roles{"disk-full cause 82"});
  EXPECT_EQ(roles_of(findings_of({{"nothing\n", {}, kOfFirst}}, end_of_first(kEndOfFirst, {}))),
            Roles{"process-exited cause 41"});
}

TEST(Ranked, OfEqualWeightGoesByTimeAndElseByPlace) {
  const std::string port = "[Errno 98] Address already in use\n";
  EXPECT_EQ(cause_of(port + std::string(kError)), "port-in-use 1");
  EXPECT_EQ(cause_of(std::string(kError) + port), "cuda-oom 1");
  EXPECT_EQ(cause_of(findings_of({{nothing(5) + port, {}}, {std::string(kError), {}}})), "port-in-use 6");
}

}  // namespace
}  // namespace nlaunch::diagnose
