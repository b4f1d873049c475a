#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "preflight/ask/role_library.h"
#include "preflight/examine.h"
#include "preflight/groups/drills.h"
#include "preflight/groups/trials.h"
#include "preflight/report/report_json.h"
#include "sys/proc.h"
#include "unit/preflight/fixture.h"

/// The real nlaunch-probe in real processes, over Gloo on this machine's loopback.
namespace nlaunch::preflight {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
const std::string kProbe = NLAUNCH_BUILD_DIR "/bin/nlaunch-probe";

class RunPreflight : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "nlaunch-preflight.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    if (!fs::exists(kProbe)) GTEST_SKIP() << kProbe << " has not been built";
    if (!fs::exists(NLAUNCH_BUILD_DIR "/lib/libnlaunch-gloo.so")) GTEST_SKIP() << "built without Gloo";
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// A program in the probe's place that does `script` for one rank and is the probe for the others.
  std::string probe_unless(int index, const std::string& script) {
    const auto path = folder_ + "/probe.sh";
    std::ofstream(path) << "#!/bin/sh\nif [ \"$1\" = rank ] && [ \"$5\" = " << index << " ]; then " << script
                        << "; fi\nexec '" << kProbe << "' \"$@\"\n";
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }

  Report run(const Machine& machine, const std::string& probe, Duration join = 20s, Duration op = 20s) {
    Request request{machine.plan, machine.node, folder_, probe};
    request.options.ladder = ladder_;
    request.deadlines = {join, op};
    request.cancelled = [this] { return cancel_ && fs::exists(folder_ + "/preflight/probe.0.err"); };
    return preflight::run(request);
  }

  static std::vector<std::string> rows_of(const Report& report, const std::string& check) {
    std::vector<std::string> out;
    for (const auto& row : report.rows) {
      if (row.check == check)
        out.push_back(fmt::format("{} | {} | {}", name_of(row.status), row.subject, row.value));
    }
    return out;
  }

  std::string folder_;
  bool cancel_ = false;
  bool ladder_ = false;
};

TEST_F(RunPreflight, PassesAllGroupsOverGloo) {
  const auto report = run(Machine(1, 2, false), kProbe);
  EXPECT_EQ(name_of(report.verdict), "pass") << to_json(report).dump(1);
  ASSERT_EQ(report.measurements.size(), 7);
  EXPECT_EQ(report.measurements[0].op, "all_reduce");
  EXPECT_EQ(report.measurements[5].op, "broadcast");
  EXPECT_EQ(report.measurements[5].bytes, 22118400);
  EXPECT_GT(report.measurements[5].busbw, 1e7);
  EXPECT_EQ(report.measurements[6].group + " " + report.measurements[6].op, "node 0, neighbours send_recv");
  EXPECT_FALSE(fs::exists(folder_ + "/preflight/gloo.0"));
}

TEST_F(RunPreflight, PassesFourRanksAndRepeatsInTheSameFolder) {
  const Machine machine(4, 0, false);
  EXPECT_EQ(name_of(run(machine, kProbe).verdict), "pass");
  EXPECT_EQ(name_of(run(machine, kProbe).verdict), "pass");
}

TEST_F(RunPreflight, MeasuresTrialsAgainAndAgain) {
  const Machine machine(2, 0, false);
  const auto ranks = make_ranks(machine.plan, machine.node);
  auto trial = trial_of(machine.plan.groups.front(), ranks);
  trial.workloads = {{"step", {{Collective::all_reduce, 4096, DataType::f32, 3}}, 4, 1}};
  const Request request{machine.plan, machine.node, folder_, kProbe};
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto measured = measure(request, ranks, {trial});
    EXPECT_TRUE(measured.went);
    ASSERT_EQ(measured.reports.size(), 2);
    for (const auto& report : measured.reports) {
      ASSERT_EQ(report.groups.at(trial.name).workloads.size(), 1);
      EXPECT_EQ(report.groups.at(trial.name).workloads[0].seconds.size(), 4);
    }
    EXPECT_EQ(name_of(worst(measured.rows)), "pass");
  }
}

/// One arm of a drill over Gloo, whose message of a timeout names addresses and is not the same every time.
DrillRow drill(const std::string& folder, std::string_view name) {
  const Machine machine(2, 0, false);
  const auto ranks = make_ranks(machine.plan, machine.node);
  const auto which = std::ranges::find(drill_cases(), name, &DrillCase::name);
  const auto trial = drill_trial(*which, trial_of(machine.plan.groups.front(), ranks), 2s);
  const Request request{.plan = machine.plan,
                        .node = machine.node,
                        .folder = folder,
                        .probe = kProbe,
                        .deadlines = {.op = 10s}};
  return judge_drill(*which, trial, measure(request, ranks, {trial}));
}

TEST_F(RunPreflight, ShowsWhatAMissingRankLooksLike) {
  const auto row = drill(folder_, "missing-rank");
  EXPECT_TRUE(std::regex_match(row.shows, std::regex("rank 0: Gloo: .+; rank 1: did not take part")))
      << row.shows;
  EXPECT_TRUE(row.end.starts_with("fails on all ranks that took part after 2.")) << row.end;
}

TEST_F(RunPreflight, ShowsWhatTwoOrdersLookLike) {
  const auto row = drill(folder_, "order-mismatch");
  EXPECT_TRUE(row.end.starts_with("fails on all ranks after 2.")) << row.end;
}

TEST_F(RunPreflight, NamesARankWhoseProbeNeverSpeaks) {
  const auto begin = std::chrono::steady_clock::now();
  const auto report = run(Machine(4, 0, false), probe_unless(1, "exec sleep 100"), 1s);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
  EXPECT_EQ(rows_of(report, "identity"), (Lines{"fail | learner rank 1 (CPU slot 1) | learner rank 1 (CPU "
                                                "slot 1) did not join within 1 s; ranks 0, 2, 3 did"}));
  EXPECT_TRUE(sys::descendants(::getpid()).empty()) << "all probes are reaped";
}

TEST_F(RunPreflight, NamesARankThatStopsBeforeItJoins) {
  // It says who it is and then does not hear "go": the real probe's words, from a process that does nothing
  // more.
  const auto script = "'" + kProbe + "' \"$@\" </dev/null; exec sleep 100";
  const auto report = run(Machine(4, 0, false), probe_unless(1, script), 1s);
  EXPECT_EQ(rows_of(report, "all_reduce"),
            (Lines{"fail | node 0 | learner rank 1 (CPU slot 1) did not join within 1 s; ranks 0, 2, 3 did",
                   "skip | learner world | not run: the same ranks as 'node 0'"}));
  EXPECT_EQ(name_of(report.verdict), "fail");
  EXPECT_TRUE(sys::descendants(::getpid()).empty());
}

/// A rank joins a group whose name begins so, and then nothing more is heard of it.
std::string hangs_once_joined(const std::string& group = "") {
  return "'" + kProbe +
         "' \"$@\" | while read -r line; do printf '%s\\n' \"$line\"; case \"$line\" in "
         "*'\"joined\",\"group\":\"" +
         group + "'*) sleep 100;; esac; done; exit";
}

TEST_F(RunPreflight, TakesAGroupApartThatDoesNotEndAndNamesTheRank) {
  const auto report = run(Machine(4, 0, false), probe_unless(2, hangs_once_joined()), 4s, 2s);
  const auto rows = rows_of(report, "suspect");
  ASSERT_EQ(rows.size(), 2) << to_json(report).dump(1);
  EXPECT_TRUE(rows[0].starts_with("fail | learner rank 2 (CPU slot 2) | fails with 3 of 3 good partners: "))
      << rows[0];
  EXPECT_EQ(rows[1], "pass | node 0 | 3 of 4 ranks are cleared: each worked well with another one");
  EXPECT_EQ(name_of(report.verdict), "fail");
  EXPECT_TRUE(fs::exists(folder_ + "/preflight/pairs-3/spec.json"));
  EXPECT_TRUE(sys::descendants(::getpid()).empty()) << "all probes are reaped";
}

TEST_F(RunPreflight, OfTwoRanksNeitherIsBlamed) {
  const auto report = run(Machine(2, 0, false), probe_unless(1, hangs_once_joined()), 4s, 2s);
  EXPECT_EQ(rows_of(report, "suspect"),
            (Lines{"unknown | learner rank 0 (CPU slot 0) or learner rank 1 (CPU slot 1) | two are not "
                   "enough to tell which one breaks 'node 0'"}));
}

TEST_F(RunPreflight, ClimbsTheLadder) {
  ladder_ = true;
  const auto report = run(Machine(1, 2, false), kProbe);
  EXPECT_EQ(name_of(report.verdict), "pass") << to_json(report).dump(1);
  const auto rungs = rows_of(report, "ladder");
  ASSERT_EQ(rungs.size(), 4);
  EXPECT_TRUE(rungs[0].starts_with("pass | one GPU | 3 of 3 groups in ")) << rungs[0];
  EXPECT_TRUE(rungs[1].starts_with("pass | one node | 1 of 1 groups in ")) << rungs[1];
  EXPECT_EQ(rungs[2], "skip | two nodes | there is only one node");
  EXPECT_TRUE(rungs[3].starts_with("pass | all | the plan's own groups in ")) << rungs[3];
}

TEST_F(RunPreflight, TheLadderStopsAtTheFirstRungThatFails) {
  ladder_ = true;
  const auto report = run(Machine(3, 0, false), probe_unless(1, hangs_once_joined("node 0")), 4s, 2s);
  ASSERT_EQ(rows_of(report, "ladder").size(), 2) << to_json(report).dump(1);
  EXPECT_EQ(
      rows_of(report, "ladder").back(),
      "fail | one node | all_reduce node 0: ranks 0, 1, 2 arrived, but the group did not finish in time; "
      "new at this rung: NVLink, PCIe and shared memory between the GPUs of a node");
  EXPECT_EQ(rows_of(report, "send_recv"), Lines{}) << "the plan's own groups were not tried";
}

TEST_F(RunPreflight, TheLadderNamesARankThatIsNothingByItself) {
  ladder_ = true;
  const auto report = run(Machine(3, 0, false), probe_unless(1, hangs_once_joined()), 4s, 2s);
  EXPECT_EQ(rows_of(report, "ladder"),
            (Lines{"fail | one GPU | all_reduce learner rank 1 (CPU slot 1): rank 1 arrived, but the group "
                   "did not finish in time; new at this rung: the GPU, its driver, CUDA and libnccl alone"}));
}

TEST_F(RunPreflight, TellsHowAProbeDiedWithItsLastWords) {
  const auto report = run(Machine(2, 0, false), probe_unless(1, "echo no luck >&2; kill -SEGV $$"));
  EXPECT_EQ(
      rows_of(report, "identity"),
      (Lines{
          "fail | learner rank 1 (CPU slot 1) | its probe was terminated by SIGSEGV; last output: no luck"}));
}

TEST_F(RunPreflight, KillsAndReapsWhenCancelled) {
  cancel_ = true;
  const auto begin = std::chrono::steady_clock::now();
  const auto report = run(Machine(2, 0, false), probe_unless(0, "trap '' TERM; sleep 100 & wait"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
  EXPECT_TRUE(report.cancelled);
  EXPECT_EQ(rows_of(report, "identity"), (Lines{"unknown | preflight | cancelled"}));
  EXPECT_TRUE(sys::descendants(::getpid()).empty());
}

TEST_F(RunPreflight, SaysThatTheProbeIsMissing) {
  const auto report = run(Machine(2, 0, false), "/nowhere/nlaunch-probe");
  EXPECT_EQ(rows_of(report, "limits"),
            (Lines{"unknown | this machine | '/nowhere/nlaunch-probe' does not exist"}));
  EXPECT_EQ(rows_of(report, "identity")[0],
            "fail | learner rank 0 (CPU slot 0) | its probe could not be started: '/nowhere/nlaunch-probe' "
            "does not exist");
}

TEST_F(RunPreflight, SaysThatTheProbeIsOfAnotherArchitecture) {
  const auto path = folder_ + "/probe";
  const std::string riscv("\002\0\363\0", 4);
  std::ofstream(path) << "\177ELF\002\001\001" << std::string(9, '\0') << riscv << std::string(64, '\0');
  fs::permissions(path, fs::perms::owner_all);
  const auto report = run(Machine(2, 0, false), path);
  const auto why = "cannot start " + path + ": Exec format error";
  EXPECT_EQ(rows_of(report, "limits"), (Lines{"unknown | this machine | " + why}));
  EXPECT_EQ(rows_of(report, "space")[0], "unknown | run directory " + folder_ + " | " + why);
  EXPECT_EQ(rows_of(report, "identity")[0],
            "fail | learner rank 0 (CPU slot 0) | its probe could not be started: " + why + " (in /)");
}

TEST_F(RunPreflight, DoesNotUseTheRolesPreload) {
  Machine machine(2, 0, false);
  machine.set(0, "LD_PRELOAD", "/nowhere/libnccl.so.2");
  EXPECT_EQ(name_of(run(machine, kProbe).verdict), "pass");
  EXPECT_FALSE(fs::exists(folder_ + "/preflight/probe.0.err")) << "the loader has not complained";
}

TEST_F(RunPreflight, FindsTheWheelOfAVirtualEnvironmentWithoutRunningIt) {
  const auto* real = std::getenv("NLAUNCH_TEST_LIBNCCL");
  const std::string library = real != nullptr ? real : "/usr/local/cuda/lib/libnccl.so.2";
  if (!fs::exists(library))
    GTEST_SKIP() << "no libnccl at " << library << " (NLAUNCH_TEST_LIBNCCL names another)";
  const auto wheel = folder_ + "/venv/lib/python3.11/site-packages/nvidia/nccl/lib";
  fs::create_directories(wheel);
  fs::create_symlink(library, wheel + "/libnccl.so.2");
  Machine machine(1, 0);
  auto& process = machine.node.processes[0];
  machine.set(0, "VIRTUAL_ENV", folder_ + "/venv");
  auto found = find_role_library(process, kProbe);
  EXPECT_EQ(found.by + " " + found.path, "NCCL wheel " + wheel + "/libnccl.so.2");
  EXPECT_TRUE(found.version.starts_with("2.")) << found.error;
  machine.set(0, "VLLM_NCCL_SO_PATH", "/etc/passwd");
  found = find_role_library(process, kProbe);
  EXPECT_EQ(found.by + ": " + found.error,
            "VLLM_NCCL_SO_PATH: cannot be loaded: /etc/passwd: invalid ELF header");
  process.preload = {library};
  EXPECT_EQ(find_role_library(process, kProbe).by, "preload");
}

TEST_F(RunPreflight, AsksThePythonOfAScriptWithoutItsSitecustomize) {
  const std::string python = "/usr/bin/python3";
  if (!fs::exists(python)) GTEST_SKIP() << "no " << python;
  fs::create_directories(folder_ + "/own/bin");
  const auto version = fs::canonical(python).filename().string();  // "python3.11"
  const auto home = folder_ + "/own/lib/" + version + "/site-packages";
  fs::create_directories(home + "/nvidia/nccl/lib");
  std::ofstream(home + "/nvidia/nccl/lib/libnccl.so.2") << "not a library";
  std::ofstream(home + "/sitecustomize.py") << "raise SystemExit('it was run')";
  fs::create_symlink(python, folder_ + "/own/bin/python3");
  std::ofstream(folder_ + "/own/pyvenv.cfg") << "home = /usr/bin\n";
  std::ofstream(folder_ + "/own/bin/serve") << "#!" << folder_ << "/own/bin/python3\n";
  fs::permissions(folder_ + "/own/bin/serve", fs::perms::owner_all);
  Machine machine(1, 0);
  machine.node.processes[0].argv = {folder_ + "/own/bin/serve"};
  const auto found = find_role_library(machine.node.processes[0], kProbe);
  EXPECT_EQ(found.by + " " + found.path, "NCCL wheel " + home + "/nvidia/nccl/lib/libnccl.so.2");
  EXPECT_NE(found.error.find("cannot be loaded"), std::string::npos) << found.error;
}

}  // namespace
}  // namespace nlaunch::preflight
