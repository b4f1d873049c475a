#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "preflight/report_json.h"
#include "preflight/role_library.h"
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

  Report run(const Machine& machine, const std::string& probe, Duration join = 20s) {
    Request request{machine.plan, machine.node, folder_, probe, PreflightLevel::standard,
                    {join, 20s},  {},           {}};
    request.on_row = [this](const Row& row) { told_.push_back(row); };
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
  std::vector<Row> told_;
  bool cancel_ = false;
};

TEST_F(RunPreflight, PassesAllGroupsOverGloo) {
  const auto report = run(Machine(1, 2, false), kProbe);
  EXPECT_EQ(name_of(report.verdict), "pass") << to_json(report).dump(1);
  ASSERT_EQ(report.measurements.size(), 6);
  EXPECT_EQ(report.measurements[0].op, "all_reduce");
  EXPECT_EQ(report.measurements[5].op, "broadcast");
  EXPECT_EQ(report.measurements[5].bytes, 22118400);
  EXPECT_GT(report.measurements[5].busbw, 1e7);
  EXPECT_EQ(told_.size(), report.rows.size());
  EXPECT_FALSE(fs::exists(folder_ + "/preflight/gloo.0"));
}

TEST_F(RunPreflight, PassesFourRanksAndRepeatsInTheSameFolder) {
  const Machine machine(4, 0, false);
  EXPECT_EQ(name_of(run(machine, kProbe).verdict), "pass");
  EXPECT_EQ(name_of(run(machine, kProbe).verdict), "pass");
}

TEST_F(RunPreflight, NamesARankWhoseProbeNeverSpeaks) {
  const auto begin = std::chrono::steady_clock::now();
  const auto report = run(Machine(4, 0, false), probe_unless(1, "exec sleep 100"), 1s);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
  EXPECT_EQ(rows_of(report, "identity"), (Lines{"fail | learner rank 1 (CPU slot 1) | learner rank 1 (CPU "
                                                "slot 1) did not join within 1 s; ranks 0, "
                                                "2, 3 did"}));
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

TEST_F(RunPreflight, TellsHowAProbeDiedWithItsLastWords) {
  const auto report = run(Machine(2, 0, false), probe_unless(1, "echo no luck >&2; kill -SEGV $$"));
  EXPECT_EQ(
      rows_of(report, "identity"),
      (Lines{
          "fail | learner rank 1 (CPU slot 1) | its probe was ended by SIGSEGV; its last words: no luck"}));
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
