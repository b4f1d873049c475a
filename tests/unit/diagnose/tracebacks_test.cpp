#include <gtest/gtest.h>

#include <fmt/format.h>

#include "unit/diagnose/logs.h"

namespace nlaunch::diagnose {
namespace {

TEST(Tracebacks, TheFirstExceptionThatNobodyKnowsIsToldWithItsRank) {
  const std::string_view text =
      "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"a.py\", line 1, in <module>\n[rank3]:  "
      "   f()\n"
      "[rank3]: my.package.StrangeFailure: so it is\n";
  EXPECT_EQ(cause_of(text), "python-exception 4: rank 3");
}

TEST(Tracebacks, OneThatASignatureKnowsIsThatSignatures) {
  EXPECT_EQ(cause_of("Traceback (most recent call last):\n  File \"a.py\", line 1, in "
                     "<module>\nModuleNotFoundError: No module named 'x'\n"),
            "import-error 3");
}

constexpr std::string_view kHeading = "Traceback (most recent call last):\n";
constexpr std::string_view kFrame = "  File \"a.py\", line 1, in f\n    g()\n";

TEST(Tracebacks, WhatPythonIgnoresIsNoFailure) {
  const auto ignored = fmt::format(
      "0: Exception ignored in atexit callback: <function f at 0x7f>\n0: {}0:   File "
      "\"a.py\", line 1, in f\n0:     g()\n",
      kHeading);
  const std::string missing = "0: FileNotFoundError: [Errno 2] No such file or directory: '/a'\n";
  EXPECT_EQ(cause_of(ignored + missing), "healthy");
  EXPECT_EQ(
      cause_of(fmt::format("0: [rank3]: {}0: [rank3]:   File \"a.py\", line 1, in f\n0: [rank3]: ValueError: "
                           "28 heads\n{}{}",
                           kHeading, ignored, missing)),
      "python-exception 3: rank 3");
  EXPECT_EQ(cause_of(missing), "file-missing 1: rank 0");
}

TEST(Tracebacks, TheTimeOfEachLineIsNoPartOfIt) {
  EXPECT_EQ(
      cause_of("2025-11-21T16:07:13.555304178Z [2025-11-21 16:07:13] Scheduler hit an exception: Traceback "
               "(most recent call last):\n2025-11-21T16:07:13.555324165Z   File \"a.py\", line 1, in f\n"
               "2025-11-21T16:07:13.555327251Z     g()\n"
               "2025-11-21T16:07:13.555351446Z AssertionError: so it is\n"),
      "python-exception 4");
}

TEST(Tracebacks, OneThatAWorkerOfRayLogsIsNoFailure) {
  EXPECT_EQ(cause_of("(Worker pid=7) ERROR:2026-03-26 21:59:41,526:Traceback (most recent call last):\n"
                     "(Worker pid=7)   File \"a.py\", line 1, in f\n(Worker pid=7) TypeError: so it is\n"),
            "healthy");
}

TEST(Tracebacks, RayShowsTheFramesOfTheOtherProcessBelowItsName) {
  EXPECT_EQ(cause_of(fmt::format(
                "{}{}TimeoutError: The read operation timed out\n\nDuring handling of the "
                "above exception, another exception occurred:\n\nray::WorkerDict.init() (pid=4952, "
                "ip=192.0.2.1, actor_id=45)\n{}StrangeError: so it is\n",
                kHeading, kFrame, kFrame)),
            "python-exception 11: WorkerDict on 192.0.2.1 (pid 4952)");
}

TEST(Tracebacks, AHintThatNothingCaughtIsTheCause) {
  const std::string_view line =
      "requests.exceptions.ReadTimeout: (ReadTimeoutError(\"HTTPSConnectionPool(host="
      "'huggingface.co', port=443): Read timed out.\n";
  EXPECT_EQ(cause_of(fmt::format("{}{}{}", kHeading, kFrame, line)), "hub-unreachable 4");
  EXPECT_EQ(cause_of(line), "healthy");
}

TEST(Tracebacks, ANotebookNamesTheExceptionAboveItsFrames) {
  EXPECT_EQ(
      cause_of("NotImplementedError                       Traceback (most recent call last)\n"
               "Cell In[4], line 5\n      1 # a comment\n----> 5 import a\n\nFile /a/b.py:218, in f()\n"
               "--> 218     raise NotImplementedError(\"so it is\")\n\nNotImplementedError: so it is\n"),
      "python-exception 9");
}

TEST(Tracebacks, AnAssertionWithoutAMessageIsToldByItsLine) {
  const auto findings =
      findings_of(fmt::format("{}  File \"a.py\", line 1, in f\n    assert a == b\n"
                              "           ^^^^^^\nAssertionError\n",
                              kHeading));
  EXPECT_EQ(findings.front().why,
            "Python raised AssertionError in f (a.py:1) and nothing caught it: assert a == b");
}

TEST(Tracebacks, AMessageThatBeginsBelowTheNameIsTold) {
  const auto findings = findings_of(
      fmt::format("{}{}TrainerError: \n        The step before\n        has no end.\n", kHeading, kFrame));
  EXPECT_EQ(findings.front().why,
            "Python raised TrainerError in f (a.py:1) and nothing caught it: The step before");
}

TEST(Tracebacks, ThePlaceIsNeitherAnEntryPointNorCompiledCode) {
  const auto findings = findings_of(fmt::format(
      "{}  File \"/venv/bin/vllm\", line 4, in <module>\n    main()\n"
      "  File \"/venv/lib/python3.12/site-packages/a.py\", line 7, in load\n    open()\n"
      "  File \"python/b.pxi\", line 9, in b.call\n  File \"src/c.cc\", line 2, in void c::load(int)\n"
      "RuntimeError: no luck\n",
      kHeading));
  EXPECT_EQ(findings.front().why, "Python raised RuntimeError in load (a.py:7) and nothing caught it");
}

TEST(Tracebacks, AWeightThatDoesNotFitIsAMismatchOfShapes) {
  const auto text = [&](std::string_view source) {
    return fmt::format(
        "(Worker pid=7) {}(Worker pid=7)   File \"a.py\", line 1, in f\n(Worker pid=7)     {}\n"
        "(Worker pid=7)   File \"b.py\", line 2, in g\n(Worker pid=7)     assert a.numel() == "
        "b.numel()\n(Worker pid=7) AssertionError\n",
        kHeading, source);
  };
  EXPECT_EQ(cause_of(text("param.data.copy_(loaded_weight)")), "shape-mismatch 6: Worker (pid 7)");
  EXPECT_EQ(cause_of(text("param.data.copy_(other)")), "python-exception 6: Worker (pid 7)");
}

TEST(Tracebacks, OneThatTellsOfAnotherProcessIsNone) {
  EXPECT_EQ(
      cause_of(
          "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nKeyboardInterrupt\n"),
      "healthy");
}

constexpr std::string_view kDuring =
    "\nDuring handling of the above exception, another exception occurred:\n\n";
constexpr std::string_view kCaused =
    "\nThe above exception was the direct cause of the following exception:\n\n";

/// Four lines, of which the last names the exception.
std::string raised(std::string_view exception) {
  return fmt::format("{}{}{}\n", kHeading, kFrame, exception);
}

/// "LINE TYPE" of the exception that is told; "" where none is.
std::string told_of(std::string_view text) {
  for (const auto& finding : findings_of(text)) {
    if (finding.signature != "tracebacks") continue;
    const std::string_view why = finding.why;
    const auto from = std::string_view("Python raised ").size();
    return fmt::format("{} {}", finding.position.line, why.substr(from, why.find(' ', from) - from));
  }
  return "";
}

TEST(Tracebacks, AnExceptionIsToldAsAWhole) {
  const auto findings = findings_of(raised("my.package.StrangeFailure: so it is"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].category, "python-exception");
  EXPECT_EQ(findings[0].signature, "tracebacks");
  EXPECT_EQ(findings[0].text, "my.package.StrangeFailure: so it is");
  EXPECT_EQ(findings[0].why, "Python raised my.package.StrangeFailure in f (a.py:1) and nothing caught it");
  EXPECT_EQ(findings[0].fix, "the traceback above this line shows where");
  EXPECT_EQ(findings[0].weight, 50);
  EXPECT_EQ(findings[0].confidence, Confidence::likely);
}

TEST(Tracebacks, AnExceptionThatPythonNamesOftenIsToldByItsTraceback) {
  const auto findings = findings_of(raised("ValueError: so it is"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].signature, "tracebacks");
  EXPECT_EQ(findings[0].weight, 50);
}

TEST(Tracebacks, OneThatTellsOfAServerWeighsLess) {
  EXPECT_EQ(findings_of(raised("requests.exceptions.ConnectTimeout: no answer")).at(0).weight, 42);
  EXPECT_EQ(findings_of(raised("RemoteDisconnected: no answer")).at(0).weight, 42);
  EXPECT_EQ(findings_of(raised("mine.OtherTimeout: no answer")).at(0).weight, 50);
}

TEST(Tracebacks, WhatFollowsOfAnotherProcessIsNoReason) {
  for (const auto* exception :
       {"torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated", "SystemExit: 1",
        "KeyboardInterrupt", "UserWarning: so it is", "concurrent.futures._base.CancelledError",
        "my.TaskCancelledError(x.y): it was"})
    EXPECT_EQ(told_of(raised(exception)), "") << exception;
}

TEST(Tracebacks, OneOfAKnownConsequenceIsNoReasonByItself) {
  const auto findings =
      findings_of(raised("RuntimeError: NCCL error: remote process exited or there was a network error"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].category, "peer-process-died");
}

TEST(Tracebacks, OneOfAKnownReasonIsLeftToIt) {
  EXPECT_EQ(told_of(raised("RuntimeError: CUDA error: out of memory")), "");
  EXPECT_EQ(told_of(raised("RuntimeError: CUDA error: operation not permitted")), "");
  EXPECT_EQ(told_of(raised("RuntimeError: CUDA error: out of memory") + std::string(kCaused) +
                    raised("my.StrangeFailure: it was so")),
            "");
}

TEST(Tracebacks, AChainLeadsToTheOneThatExplainsTheOthers) {
  const std::string first = raised("my.FirstFailure: so it is");
  const std::string second = raised("my.SecondFailure: so it is");
  const std::string third = raised("my.ThirdFailure: so it is");
  const std::string follows = raised("EOFError: at its end");
  const std::string during(kDuring);
  const std::string caused(kCaused);
  EXPECT_EQ(told_of(first + during + second), "11 my.SecondFailure");
  EXPECT_EQ(told_of(first + caused + second), "4 my.FirstFailure");
  EXPECT_EQ(told_of(first + caused + second + caused + third), "4 my.FirstFailure");
  EXPECT_EQ(told_of(first + caused + second + during + third), "18 my.ThirdFailure");
  EXPECT_EQ(told_of(first + during + second + caused + third), "11 my.SecondFailure");
  EXPECT_EQ(told_of(first + during + follows), "4 my.FirstFailure");
  EXPECT_EQ(told_of(first + caused + follows + caused + third), "4 my.FirstFailure");
  EXPECT_EQ(told_of(first + caused + follows + during + third), "18 my.ThirdFailure");
  EXPECT_EQ(told_of(first + during + follows + caused + third), "18 my.ThirdFailure");
  EXPECT_EQ(told_of(follows + caused + second), "11 my.SecondFailure");
  EXPECT_EQ(told_of(follows + during + follows), "");
}

TEST(Tracebacks, AChainGoesOnWhereTheNextTracebackBeginsAlone) {
  const std::string first = raised("my.FirstFailure: so it is");
  const std::string second = raised("my.SecondFailure: so it is");
  // Words in place of the second heading end the chain.
  EXPECT_EQ(told_of(first + std::string(kDuring) + "other words\n" + second), "4 my.FirstFailure");
  // Two that are not linked are two chains: the first counts.
  EXPECT_EQ(told_of(first + second), "4 my.FirstFailure");
  EXPECT_EQ(told_of(first + "\n\n" + second), "4 my.FirstFailure");
}

TEST(Tracebacks, WordsAmongTheFramesEndIt) {
  EXPECT_EQ(told_of(fmt::format("{}{}these are words\nmy.StrangeFailure: so it is\n", kHeading, kFrame)), "");
  EXPECT_EQ(told_of(fmt::format("{}{}\nmy.StrangeFailure: so it is\n", kHeading, kFrame)),
            "5 my.StrangeFailure");
  EXPECT_EQ(told_of(fmt::format("{}{}my.StrangeFailure\n", kHeading, kFrame)), "4 my.StrangeFailure");
  EXPECT_EQ(told_of(fmt::format("{}{}  | \n{}my.StrangeFailure: x\n", kHeading, kFrame, kFrame)),
            "7 my.StrangeFailure");
}

TEST(Tracebacks, ALinkIsLookedForInTheLinesOfTheMessage) {
  const std::string first = raised("my.FirstFailure: so it is");
  const std::string second = raised("my.SecondFailure: so it is");
  EXPECT_EQ(told_of(first + nothing(8) + std::string(kDuring).substr(1) + second), "18 my.SecondFailure");
  EXPECT_EQ(told_of(first + nothing(9) + std::string(kDuring).substr(1) + second), "4 my.FirstFailure");
}

TEST(Tracebacks, AKnownReasonInTheLinesOfTheMessageIsTheReason) {
  const std::string first = raised("my.FirstFailure: so it is");
  EXPECT_EQ(told_of(first + nothing(7) + "[Errno 28] No space left on device\n"), "");
  EXPECT_EQ(told_of(first + nothing(8) + "[Errno 28] No space left on device\n"), "4 my.FirstFailure");
  EXPECT_EQ(told_of(first + "wandb: ERROR no\n"), "4 my.FirstFailure");
  EXPECT_EQ(told_of(first + "sample_tokens timed out\n"), "4 my.FirstFailure");
}

TEST(Tracebacks, AMessageOfItsOwnIsNotReplaced) {
  const auto why = [](std::string_view text) { return findings_of(text).at(0).why; };
  EXPECT_EQ(why(raised("my.Failure: so it is") + "  more of it\n"),
            "Python raised my.Failure in f (a.py:1) and nothing caught it");
  EXPECT_EQ(why(raised("my.Failure") + "words at the beginning\n"),
            "Python raised my.Failure in f (a.py:1) and nothing caught it: g()");
  EXPECT_EQ(why(raised("my.Failure:") + "\n  the first\n  the second\n"),
            "Python raised my.Failure in f (a.py:1) and nothing caught it: the first");
}

TEST(Tracebacks, TheLineOfTheProgramIsThatOfTheLastFrame) {
  const auto why = [](std::string_view frames) {
    return findings_of(fmt::format("{}{}my.Failure\n", kHeading, frames)).at(0).why;
  };
  EXPECT_EQ(why("  File \"a.py\", line 1, in f\n    first()\n  File \"b.py\", line 2, in g\n    second()\n   "
                " ^^^^^\n"),
            "Python raised my.Failure in g (b.py:2) and nothing caught it: second()");
  EXPECT_EQ(why("  File \"a.py\", line 1, in f\n    first()\n  File \"b.py\", line 2, in g\n"),
            "Python raised my.Failure in g (b.py:2) and nothing caught it");
}

TEST(Tracebacks, ThePlaceIsTheLastFrameOfTheUsersOwn) {
  const auto place = [](std::string_view frames) {
    const auto why = findings_of(fmt::format("{}{}my.Failure: x\n", kHeading, frames)).at(0).why;
    return why.substr(0, why.find(" and nothing"));
  };
  EXPECT_EQ(place("  File \"/home/u/a.py\", line 1, in f\n  File \"/v/site-packages/b.py\", line 2, in g\n"),
            "Python raised my.Failure in f (a.py:1)");
  EXPECT_EQ(place("  File \"/usr/lib/python3.12/b.py\", line 2, in g\n"),
            "Python raised my.Failure in g (b.py:2)");
  EXPECT_EQ(place("  File \"b.pyx\", line 9, in b.call\n"), "Python raised my.Failure in b.call (b.pyx:9)");
  EXPECT_EQ(place("  File \"/v/lib/python3/a.py\", line 2, in g\n  File \"b.cpp\", line 9, in call\n"),
            "Python raised my.Failure in g (a.py:2)");
  EXPECT_EQ(place("  File \"a.py\", line 1, in f\n  File \"<frozen runpy>\", line 3, in _run\n"),
            "Python raised my.Failure in f (a.py:1)");
  EXPECT_EQ(place("  some words\n"), "Python raised my.Failure");
}

TEST(Tracebacks, OfEachFileTheFirstIsTold) {
  const auto later = raised("my.SecondFailure: x");
  // That of rank 1 is over first, that of rank 0 is above it.
  const std::string text = "[rank0]: " + std::string(kHeading) + "[rank0]:   File \"a.py\", line 1, in f\n" +
                           "[rank0]: my.FirstFailure: x\n" + later + raised("KeyboardInterrupt");
  EXPECT_EQ(told_of(text), "3 my.FirstFailure");
  const auto findings = findings_of({{raised("my.FirstFailure: x"), Origin()}, {later, Origin()}});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].count, 2U);
}

TEST(Tracebacks, ThoseOfSeveralProcessesAreReadApart) {
  const std::string text =
      "0: Traceback (most recent call last):\n"
      "[rank10]: Traceback (most recent call last):\n"
      "1: Traceback (most recent call last):\n"
      "[rank3]: Traceback (most recent call last):\n"
      "0:   File \"a.py\", line 1, in f\n"
      "1:   File \"b.py\", line 2, in g\n"
      "[rank3]:   File \"c.py\", line 3, in h\n"
      "[rank10]:   File \"d.py\", line 4, in i\n"
      "1: KeyboardInterrupt\n"
      "[rank10]: KeyboardInterrupt\n";
  auto findings = findings_of(text + "[rank3]: my.ThirdFailure: x\n0: EOFError\n");
  EXPECT_EQ(cause_of(findings), "python-exception 11: rank 3");
  EXPECT_EQ(findings[0].why, "Python raised my.ThirdFailure in h (c.py:3) and nothing caught it");
  findings = findings_of(text + "[rank3]: KeyboardInterrupt\n0: my.FirstFailure: x\n");
  EXPECT_EQ(cause_of(findings), "python-exception 12: rank 0");
  EXPECT_EQ(findings[0].why, "Python raised my.FirstFailure in f (a.py:1) and nothing caught it");
}

TEST(Tracebacks, OneWithoutAPrefixTakesNoLineOfAnother) {
  const std::string plain(kHeading);
  const std::string other = "[rank3]: " + plain;
  const std::string rest =
      "[rank3]:   File \"a.py\", line 1, in f\n[rank3]: my.FirstFailure: x\n  File \"b.py\", line 1, in g\n"
      "KeyboardInterrupt\n";
  EXPECT_EQ(cause_of(plain + other + rest), "python-exception 4: rank 3");
  EXPECT_EQ(cause_of(other + plain + rest), "python-exception 4: rank 3");
}

TEST(Tracebacks, ThePrefixMayDifferInItsDigitsAlone) {
  const auto text = [](std::string_view second) {
    return fmt::format("12:00:01x> {}12:00:02x>   File \"a.py\", line 1, in f\n{}my.FirstFailure: x\n",
                       kHeading, second);
  };
  EXPECT_EQ(told_of(text("12:00:03x> ")), "3 my.FirstFailure");
  EXPECT_EQ(told_of(text("12:00:037> ")), "");
  EXPECT_EQ(told_of(text("12:00:0ax> ")), "");
  EXPECT_EQ(told_of(text("12:00:03y> ")), "");
}

TEST(Tracebacks, BehindWordsOfItsOwnItHasItsFramesAtTheBeginning) {
  const auto told = [](std::string_view words, std::string_view lead) {
    return told_of(fmt::format("{}{}{}  File \"a.py\", line 1, in f\n{}my.FirstFailure: x\n", words, kHeading,
                               lead, lead));
  };
  EXPECT_EQ(told("an exception in the scheduler: ", ""), "3 my.FirstFailure");
  EXPECT_EQ(told("12:00:01 in the scheduler: ", "12:00:02 "), "3 my.FirstFailure");
  EXPECT_EQ(told("12:00:01 in the scheduler: ", "12:00:0x "), "");
  EXPECT_EQ(told("[rank1]: in the scheduler: ", "[rank1]: "), "");
  EXPECT_EQ(told("short: ", "longer than that: "), "");
  // Once it has frames, no other line is taken for one.
  EXPECT_EQ(told_of(fmt::format("x: {}x:   File \"a.py\", line 1, in f\n  File \"b.py\", line 2, in g\n"
                                "x: my.FirstFailure: x\n",
                                kHeading)),
            "4 my.FirstFailure");
}

TEST(Tracebacks, OneThatTheProgramGotOverIsNotTold) {
  const std::string first = raised("my.FirstFailure: so it is");
  const std::string second = raised("my.SecondFailure: so it is");
  EXPECT_EQ(told_of(first + nothing(39) + second), "4 my.FirstFailure");
  EXPECT_EQ(told_of(first + nothing(40) + second), "48 my.SecondFailure");
  EXPECT_EQ(told_of(first + nothing(40) + raised("my.FirstFailure: again")), "4 my.FirstFailure");
  EXPECT_EQ(told_of(first + nothing(40) + raised("KeyboardInterrupt")), "4 my.FirstFailure");
  EXPECT_EQ(told_of(first + nothing(40) + "Exception ignored in: <x>\n" + second), "4 my.FirstFailure");
}

TEST(Tracebacks, WhatAnotherProcessRaisesLaterDoesNotMakeUpForIt) {
  const auto of_rank = [](int rank, std::string_view type) {
    return fmt::format("[rank{0}]: {1}[rank{0}]:   File \"a.py\", line 1, in f\n[rank{0}]: {2}: x\n", rank,
                       kHeading, type);
  };
  const auto first = of_rank(0, "my.FirstFailure");
  EXPECT_EQ(told_of(first + nothing(60) + of_rank(1, "my.SecondFailure")), "3 my.FirstFailure");
  EXPECT_EQ(told_of(first + nothing(60) + of_rank(0, "my.SecondFailure")), "66 my.SecondFailure");
  const auto findings =
      findings_of({{first, Origin()}, {nothing(60) + of_rank(0, "my.SecondFailure"), Origin()}});
  EXPECT_EQ(findings.at(0).position, (LogPosition{0, 3}));
}

TEST(Tracebacks, WhatIsSaidToBeIgnoredStandsJustBelow) {
  const std::string ignored = "Exception ignored in: <function f at 0x7f>\n";
  const std::string trace = raised("my.FirstFailure: so it is");
  EXPECT_EQ(told_of(ignored + trace), "");
  EXPECT_EQ(told_of(nothing(20) + ignored + nothing(7) + trace), "");
  EXPECT_EQ(told_of(nothing(20) + ignored + nothing(8) + trace), "33 my.FirstFailure");
  EXPECT_EQ(told_of(ignored + trace + trace), "9 my.FirstFailure");
  EXPECT_EQ(told_of("[rank1]: " + ignored + trace), "5 my.FirstFailure");
  const auto findings =
      findings_of({{"nothing\n" + ignored, Origin()}, {"nothing\nnothing\n" + trace, Origin()}});
  EXPECT_EQ(cause_of(findings), "python-exception 6");
}

TEST(Tracebacks, AChainIsReadForSoManyLines) {
  std::string frames;
  for (int i = 0; i < 399; ++i) frames += "    a line\n";
  EXPECT_EQ(told_of(fmt::format("{}{}my.FirstFailure: x\n", kHeading, frames)), "401 my.FirstFailure");
  EXPECT_EQ(told_of(fmt::format("{}{}    a line\nmy.FirstFailure: x\n", kHeading, frames)), "");
}

TEST(Tracebacks, SoManyAreReadAtOnce) {
  const auto begun = [](int count) {
    std::string text;
    for (int rank = 0; rank < count; ++rank) text += fmt::format("[rank{}]: {}", rank, kHeading);
    return text + "[rank0]: my.FirstFailure: x\n";
  };
  EXPECT_EQ(told_of(begun(64)), "65 my.FirstFailure");
  EXPECT_EQ(told_of(begun(65)), "");
}

TEST(Tracebacks, SoManyAreKept) {
  const auto told = [](int before) {
    std::string text;
    for (int i = 0; i < before; ++i) text += std::string(kHeading) + "KeyboardInterrupt\n";
    return told_of(text + raised("my.FirstFailure: x") + std::string(kHeading) + "KeyboardInterrupt\n");
  };
  EXPECT_EQ(told(255), "514 my.FirstFailure");
  EXPECT_EQ(told(256), "");
}

TEST(Tracebacks, SoManyExceptionsOfAChainAreKept) {
  const auto told = [](int before) {
    std::string text;
    for (int i = 0; i < before; ++i)
      text += std::string(kHeading) + "KeyboardInterrupt\n" + std::string(kDuring);
    return told_of(text + raised("my.FirstFailure: x"));
  };
  EXPECT_EQ(told(31), "159 my.FirstFailure");
  EXPECT_EQ(told(32), "");
}

TEST(Tracebacks, ANotebookTellsTheCell) {
  const auto text = [](std::string_view name) {
    return fmt::format(
        "{}                       Traceback (most recent call last)\nCell In[4], line 5\n      1 # a "
        "comment\n"
        "----> 5 import a\n\n{}: so it is\n",
        name, name);
  };
  EXPECT_EQ(findings_of(text("StrangeError")).at(0).why,
            "Python raised StrangeError in cell 4, line 5 and nothing caught it");
  EXPECT_EQ(told_of(text("KeyboardInterrupt")), "");
}

TEST(Tracebacks, AWeightOfAnotherShapeIsToldAsSuch) {
  const auto text = [](std::string_view source, std::string_view exception) {
    return fmt::format("{}  File \"a.py\", line 1, in f\n    {}\n{}\n", kHeading, source, exception);
  };
  const std::string copies = "param.data.copy_(loaded_weight)";
  const std::string of_a_size =
      "RuntimeError: The size of tensor a (10) must match the size of tensor b (12)";
  const auto findings = findings_of(text(copies, of_a_size));
  EXPECT_EQ(findings.at(0).category, "shape-mismatch");
  EXPECT_EQ(findings.at(0).weight, 72);
  EXPECT_EQ(findings.at(0).why,
            "a weight has a different shape than the parameter of the engine that it is for");
  EXPECT_EQ(findings_of(text("a + b", of_a_size)).at(0).category, "python-exception");
  EXPECT_EQ(findings_of(text(copies, "AssertionError")).at(0).category, "shape-mismatch");
  EXPECT_EQ(findings_of(text(copies, "AssertionError: no such file")).at(0).category, "python-exception");
  EXPECT_EQ(findings_of(text(copies, "StrangeError")).at(0).category, "python-exception");
  // A weight that the first of two exceptions is about is none of the second.
  EXPECT_EQ(
      findings_of(text(copies, "KeyError: 'x'") + std::string(kDuring) + text("assert a", "AssertionError"))
          .at(0)
          .category,
      "python-exception");
}

TEST(Tracebacks, AHintInTheLastLineSaysWhy) {
  const auto findings = findings_of(
      raised("requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='huggingface.co', port=443)"));
  EXPECT_EQ(findings.at(0).category, "hub-unreachable");
  EXPECT_EQ(findings.at(0).weight, 50);
  EXPECT_EQ(findings.at(0).why, "the Hugging Face Hub could not be reached, or only after retries");
  EXPECT_EQ(findings.at(0).source, "huggingface/huggingface_hub");
}

TEST(Tracebacks, AWorkerOfRayThatEndedIsTold) {
  const auto text = [](std::string_view how) {
    return fmt::format(
        "{}  File \"a.py\", line 33, in f\nray.exceptions.ActorDiedError: The actor died.\n"
        "\tclass_name: WorkerDict\n\tpid: 5740\n\tip: 192.0.2.2\n{}",
        kHeading, how);
  };
  auto findings = findings_of(text("The actor is dead because its worker process has died.\n"));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].category, "ray-worker-died");
  EXPECT_EQ(findings[0].why, "a Ray worker exited");
  EXPECT_EQ(findings[0].weight, 30);
  EXPECT_EQ(names_of(findings[0].culprits), "WorkerDict on 192.0.2.2 (pid 5740)");
  EXPECT_EQ(cause_of(text("")), "ray-worker-died 3: WorkerDict on 192.0.2.2 (pid 5740)");
  findings = findings_of(
      text("The actor is dead because its worker process has died. The process receives a SIGTERM.\n"));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(cause_of(findings), "process-terminated 3: WorkerDict on 192.0.2.2 (pid 5740)");
  EXPECT_EQ(findings[0].why, "a Ray worker was terminated (SIGTERM)");
  EXPECT_EQ(findings[0].fix, "find out what sent SIGTERM: a person, the scheduler, or a site script");
}

TEST(Tracebacks, TheProcessIsTheOneThatRayNames) {
  EXPECT_EQ(cause_of(fmt::format(
                "(Main pid=7) {0}(Main pid=7)   File \"a.py\", line 1, in f\n"
                "(Main pid=7) my.StrangeError: ray::Actor.f() (pid=4952, ip=192.0.2.1, actor_id=45)\n",
                kHeading)),
            "healthy");
  EXPECT_EQ(cause_of(fmt::format(
                "(Main pid=7) {0}(Main pid=7)   File \"a.py\", line 1, in f\n"
                "(Main pid=7) ray.exceptions.RayTaskError(my.StrangeError): ray::Actor.f() (pid=4952, "
                "ip=192.0.2.1, actor_id=45)\n(Main pid=7)   File \"b.py\", line 2, in g\n"
                "(Main pid=7) my.StrangeError: so it is\n",
                kHeading)),
            "python-exception 5: Actor on 192.0.2.1 (pid 4952)");
}

}  // namespace
}  // namespace nlaunch::diagnose
