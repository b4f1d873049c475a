#include "launch/audit/observation.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "launch/audit/audit.h"
#include "launch/bind/preload.h"
#include "sys/spawn.h"

/// Real programs with a real libnccl, or with one that takes its place.
namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;

/// What takes NCCL's place, of tests/fake_nccl.
std::string fake(const std::string& name) {
  return std::string(NLAUNCH_BUILD_DIR) + "/lib/fake-nccl/" + name;
}

/// A real one, where there is any.
std::string find_nccl() {
  if (const auto* named = std::getenv("NLAUNCH_TEST_LIBNCCL")) return named;
  for (const auto* path :
       {"/usr/local/cuda/lib/libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2",
        "/usr/lib/x86_64-linux-gnu/libnccl.so.2", "/usr/lib/aarch64-linux-gnu/libnccl.so.2"}) {
    if (fs::exists(path)) return path;
  }
  return fake("wheel/libnccl.so.2");
}

class RealProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    nccl_ = find_nccl();
    if (!fs::exists(scope_)) GTEST_SKIP() << scope_ << " is not built";
    std::string name = (fs::temp_directory_path() / "nlaunch-audit-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    add("learner", RoleKind::learner, {nccl_});
    add("engine", RoleKind::engine, {});
    facts_.preloaded = preloaded_files(node_);
  }
  void TearDown() override {
    for (const auto& [index, pid] : roots_) {
      ::kill(-pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  void add(const std::string& name, RoleKind kind, std::vector<std::string> preload) {
    plan::Role role;
    role.name = name;
    role.kind = kind;
    role.gpus = 1;
    plan_.roles.push_back(role);
    plan::BoundProcess bound;
    bound.process = static_cast<std::uint32_t>(plan_.processes.size());
    bound.name = name + ".0";
    facts_.started.insert(bound.process);
    bound.preload = std::move(preload);
    plan_.processes.emplace_back().role = bound.process;
    node_.processes.push_back(bound);
  }

  /// Starts a command as process `index` with this LD_PRELOAD, and waits until it has made the file "ready".
  void start(std::uint32_t index, std::vector<std::string> argv, const std::string& preload) {
    sys::SpawnRequest request;
    request.argv = std::move(argv);
    request.env = {"PATH=/usr/bin:/bin", "LD_PRELOAD=" + preload};
    // A library that is built with a sanitizer asks to be the first, unless told otherwise.
    if (const auto* options = std::getenv("ASAN_OPTIONS"))
      request.env.push_back(std::string("ASAN_OPTIONS=") + options);
    request.cwd = folder_;
    const auto pid = sys::spawn(request);
    ASSERT_TRUE(pid);
    roots_[index] = *pid;
    await_ready();
  }
  void await_ready() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!fs::exists(folder_ / "ready") && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_TRUE(fs::remove(folder_ / "ready")) << "the process did not get ready";
  }
  /// A process that waits for "go" goes on, until it is ready again.
  void go_on() {
    fs::create_directory(folder_ / "go");
    await_ready();
  }
  void preload(const std::string& library) {
    node_.processes[0].preload = {library};
    facts_.preloaded = preloaded_files(node_);
  }
  void start_python(std::uint32_t index, const std::string& code, const std::string& preload) {
    start(index,
          {"/usr/bin/python3", "-c",
           "import ctypes, os, subprocess, time\n" + code + "\nopen('ready', 'w')\ntime.sleep(60)"},
          preload);
  }
  std::string scoped(const std::string& library) {
    return preload_value({{library}, PreloadScope::process, scope_, folder_}).value();
  }
  AuditReport audited(Thoroughness thoroughness = Thoroughness::all) {
    observe(seen_, roots_, facts_.preloaded, bindings_, thoroughness);
    return judge(plan_, node_, seen_, facts_);
  }
  /// The kinds of all findings, and for each process of index `index` what is proven.
  static std::vector<AuditFinding::Kind> kinds(const AuditReport& report) {
    std::vector<AuditFinding::Kind> found;
    for (const auto& finding : report.findings) found.push_back(finding.kind);
    return found;
  }
  static std::vector<Proof> proofs(const AuditReport& report, std::uint32_t index) {
    std::vector<Proof> found;
    for (const auto& entry : report.entries) {
      if (entry.process == index) found.push_back(entry.proof);
    }
    return found;
  }
  using Kind = AuditFinding::Kind;
  using Kinds = std::vector<Kind>;
  using Proofs = std::vector<Proof>;

  const std::string scope_ = std::string(NLAUNCH_BUILD_DIR) + "/lib/libnlaunch-scope.so";
  std::string nccl_;
  fs::path folder_;
  plan::Plan plan_;
  plan::BoundNode node_;
  AuditFacts facts_;
  Observations seen_;
  sys::BindingReader bindings_ = nccl_bindings();
  std::map<std::uint32_t, pid_t> roots_;
};

TEST_F(RealProcesses, ALearnerIsProvenWithItsChildrenForkedAndExecuted) {
  start_python(0, "subprocess.Popen(['sleep', '60'])\nif os.fork() == 0: time.sleep(60)", scoped(nccl_));
  start_python(1, "", "");
  const auto report = audited();
  EXPECT_EQ(seen_.size(), 4U);
  EXPECT_EQ(kinds(report), Kinds{});
  EXPECT_EQ(proofs(report, 0), Proofs{Proof::as_preloaded});
  EXPECT_EQ(proofs(report, 1), Proofs{Proof::unknown});
}

TEST_F(RealProcesses, ThroughAShellScriptTheProgramIsProven) {
  start(
      0,
      {"/bin/bash", "-c", "/usr/bin/python3 -c 'import time; open(\"ready\", \"w\"); time.sleep(60)'; true"},
      scoped(nccl_));
  const auto report = audited();
  EXPECT_EQ(seen_.size(), 2U);
  EXPECT_EQ(kinds(report), Kinds{});
  EXPECT_EQ(proofs(report, 0), Proofs{Proof::as_preloaded});
}

TEST_F(RealProcesses, WithoutTheScopeLibraryHelpersAreFound) {
  start_python(0, "subprocess.Popen(['sleep', '60'])\ntime.sleep(0.5)", nccl_);
  const auto report = audited();
  ASSERT_EQ(kinds(report), Kinds{Kind::helper});
  EXPECT_EQ(report.findings[0].message,
            "learner.0 (pid " + std::to_string(report.findings[0].pid) +
                ", sleep 60), a helper started by the program, has the preloaded libnccl (" +
                fs::canonical(nccl_).string() + "); with 'scope: process' only the program should");
}

TEST_F(RealProcesses, AProgramThatExecutesItselfAnewLosesTheLibrary) {
  const std::string again =
      "import os, sys, time\nif len(sys.argv) < 2: os.execv('/usr/bin/python3', ['/usr/bin/python3', "
      "'-c', os.environ['CODE'], 'x'])\nopen('ready', 'w')\ntime.sleep(60)";
  start(0, {"/usr/bin/env", "CODE=" + again, "/usr/bin/python3", "-c", again}, scoped(nccl_));
  EXPECT_EQ(kinds(audited()), Kinds{Kind::missing});
}

TEST_F(RealProcesses, AnEngineWithTheLearnersCopyIsFound) {
  start_python(1, "", nccl_);
  EXPECT_EQ(kinds(audited()), Kinds{Kind::foreign});
}

TEST_F(RealProcesses, ALibraryMappedLaterCounts) {
  start_python(
      1, "open('ready', 'w')\nwhile not os.path.exists('go'): time.sleep(0.01)\nctypes.CDLL('" + nccl_ + "')",
      "");
  EXPECT_EQ(kinds(audited()), Kinds{});
  go_on();
  EXPECT_EQ(kinds(audited()), Kinds{Kind::foreign});
}

TEST_F(RealProcesses, OfTwoCopiesThatNothingIsBoundToNothingIsProven) {
  start_python(0, "ctypes.CDLL('" + fake("other/libnccl.so.2") + "')", scoped(nccl_));
  const auto report = audited();
  EXPECT_EQ(kinds(report), Kinds{});
  EXPECT_EQ(proofs(report, 0), Proofs{Proof::unknown});
  EXPECT_EQ(report.entries[0].libraries.size(), 2U);
}

TEST_F(RealProcesses, AnObjectThatImportsNcclIsBoundToThePreloadedCopy) {
  preload(fake("other/libnccl.so.2"));
  // As PyTorch does: it opens the copy of its wheel, then what was linked against it.
  const std::string load =
      "ctypes.CDLL('" + fake("wheel/libnccl.so.2") + "')\nctypes.CDLL('" + fake("libuser_now.so") + "')";
  start_python(0, load, scoped(fake("other/libnccl.so.2")));
  start_python(1, load, "");
  const auto report = audited();
  EXPECT_EQ(kinds(report), Kinds{});
  EXPECT_EQ(proofs(report, 0), Proofs{Proof::as_preloaded});
  EXPECT_EQ(proofs(report, 1), Proofs{Proof::own});
  EXPECT_EQ(summary(report)[0], "learner.0 (pid " + std::to_string(roots_[0]) + "): bound to libnccl " +
                                    fake("other/libnccl.so.2") +
                                    ", as preloaded; also mapped but not bound: libnccl " +
                                    fake("wheel/libnccl.so.2"));
  EXPECT_EQ(summary(report)[1], "engine.0 (pid " + std::to_string(roots_[1]) +
                                    "): bound to its own libnccl " + fake("wheel/libnccl.so.2"));
}

TEST_F(RealProcesses, AnObjectThatTakesWhatTheOlderPreloadLacksFromTheWheelIsFound) {
  preload(fake("other/libnccl.so.2"));
  start_python(0,
               "ctypes.CDLL('" + fake("wheel/libnccl.so.2") + "', ctypes.RTLD_GLOBAL)\nctypes.CDLL('" +
                   fake("libuser_newer.so") + "')",
               scoped(fake("other/libnccl.so.2")));
  const auto report = audited();
  ASSERT_EQ(kinds(report), Kinds{Kind::two_copies});
  EXPECT_NE(report.findings[0].message.find("libuser_newer.so (ncclCommWindowRegister) to libnccl"),
            std::string::npos)
      << report.findings[0].message;
}

TEST_F(RealProcesses, AQuickLookSeesWhatWasLoadedSince) {
  preload(fake("other/libnccl.so.2"));
  start_python(0,
               "ctypes.CDLL('" + fake("wheel/libnccl.so.2") +
                   "')\nopen('ready', 'w')\nwhile not os.path.exists('go'): time.sleep(0.01)\nctypes.CDLL('" +
                   fake("libuser_now.so") + "')",
               scoped(fake("other/libnccl.so.2")));
  EXPECT_EQ(proofs(audited(), 0), Proofs{Proof::unknown});
  EXPECT_EQ(proofs(audited(Thoroughness::changes), 0), Proofs{Proof::unknown});
  go_on();
  EXPECT_EQ(proofs(audited(Thoroughness::changes), 0), Proofs{Proof::as_preloaded});
}

TEST_F(RealProcesses, ALibraryWhosePathHasABlankIsTheSameThroughItsLink) {
  fs::create_directory(folder_ / "a folder");
  const auto library = folder_ / "a folder" / "libnccl.so.2";
  fs::create_symlink(nccl_, library);
  node_.processes[0].preload = {library.string()};
  facts_.preloaded = preloaded_files(node_);
  start_python(0, "", scoped(library.string()));
  EXPECT_EQ(proofs(audited(), 0), Proofs{Proof::as_preloaded});
}

TEST_F(RealProcesses, AnOrphanStaysInTheTreeInWhichItWasSeen) {
  const std::string child = "/usr/bin/python3 -c 'import time; open(\"ready\", \"w\"); time.sleep(60)'";
  start(0, {"/bin/bash", "-c", child + " & until [ -e go ]; do :; done"}, scoped(nccl_));
  EXPECT_EQ(proofs(audited(), 0), Proofs{Proof::as_preloaded});
  fs::create_directory(folder_ / "go");
  ::waitpid(roots_[0], nullptr, 0);
  roots_.clear();
  const auto report = audited();
  EXPECT_EQ(proofs(report, 0), Proofs{Proof::as_preloaded});
  ::kill(report.entries[0].pid, SIGKILL);
}

}  // namespace
}  // namespace nlaunch::launch
