#include "evidence/readers/stacks.h"

#include <gtest/gtest.h>

namespace nlaunch::evidence {
namespace {

std::vector<std::string> texts(const Stack& stack) {
  std::vector<std::string> lines;
  for (const auto& frame : stack) lines.push_back(frame.str());
  return lines;
}

using Lines = std::vector<std::string>;

TEST(Stacks, OfPythonAreThoseOfTheMainThread) {
  const auto stacks = python_stacks(
      "Process 25745: /usr/bin/python3 t.py other 1: 1000\n"
      "Python v3.11.2 (/usr/bin/python3.11)\n"
      "\n"
      "Thread 25750 (idle): \"Thread-1 (_worker)\"\n"
      "    wait (threading.py:324)\n"
      "Thread 25745 (idle): \"MainThread\"\n"
      "    all_reduce (torch/distributed/distributed_c10d.py:1541)\n"
      "    step (a folder (old)/t.py:12)\n"
      "    <module> (t.py)\n"
      "Thread 25760 (active): \"Dummy-2\"\n"
      "    poll (x.py:1)\n"
      "\n"
      "Process 7: python\n"
      "Python v3.12.1 (/usr/bin/python3.12)\n"
      "\n"
      "Thread 0x7F (idle)\n"
      "    alone (y.py:2)\n");
  ASSERT_EQ(stacks.size(), 2U);
  EXPECT_EQ(texts(stacks.at(25745)), (Lines{"all_reduce (torch/distributed/distributed_c10d.py:1541)",
                                            "step (a folder (old)/t.py:12)", "<module> (t.py)"}));
  EXPECT_EQ(texts(stacks.at(7)), Lines{"alone (y.py:2)"});
}

TEST(Stacks, TheMainThreadOfEachProgramCounts) {
  const auto stacks = native_stacks(
      "Process 25745: python t.py\n"
      "TID 25750 (NCCL watchdog):\n"
      "#0  0x00007fb42dfc226f __poll - /usr/lib/libc.so.6\n"
      "TID 25745 (python):\n"
      "#0  0x00007fb42df4bf16 __futex_abstimed_wait_common\n"
      "#1  0x00007fb429ac2843 c10d::Work::wait(std::chrono::duration<long>) - /usr/lib/libtorch_cpu.so.1.13\n"
      "#2  0x00007fb42d3a9b4e - /usr/lib/libcuda.so.1\n"
      "#3  0x00007fb42d3a9b4f\n"
      "(the rest cannot be read: no matching address range)\n"
      "\n"
      "Process 30: sleep 5\n"
      "TID 30 (sleep):\n"
      "(it does not stop)\n"
      "TID 31 (sleep):\n"
      "#0  0x00007fb42dfcef36 clock_nanosleep - /a - folder/libc.so.6\n");
  EXPECT_EQ(texts(stacks.at(25745)),
            (Lines{"__futex_abstimed_wait_common",
                   "c10d::Work::wait(std::chrono::duration<long>) (/usr/lib/libtorch_cpu.so.1.13)",
                   " (/usr/lib/libcuda.so.1)", ""}));
  EXPECT_FALSE(stacks.contains(30));  // the stack of its main thread could not be read
}

TEST(Stacks, OfNonsenseAreNone) {
  EXPECT_TRUE(python_stacks("Process x\nThread 1\n    f (g\n").empty());
  EXPECT_TRUE(native_stacks("#0  0x1 main\nTID 4:\n").empty());
}

}  // namespace
}  // namespace nlaunch::evidence
