#include "launch/audit/audit.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace nlaunch::launch {
namespace {

const sys::MappedFile kPreloaded{"/opt/nccl/libnccl.so.2.28.9", "fe:00", 100, false};
const sys::MappedFile kWheel{"/venv/nvidia/nccl/lib/libnccl.so.2", "fe:00", 200, false};

/// One learner that preloads NCCL and one engine that does not, each with a GPU, on one node.
class Audit : public ::testing::Test {
 protected:
  void SetUp() override {
    add_role("learner", RoleKind::learner, {"/opt/nccl/libnccl.so.2"});
    add_role("engine", RoleKind::engine, {});
    plan_.groups.push_back({"weight sync", plan::GroupKind::weight_sync, Backend::nccl, {{0, 0}, {1, 1}}});
    facts_.preloaded = {{"/opt/nccl/libnccl.so.2", kPreloaded}};
    facts_.versions = {{kPreloaded.path, "2.28.9"}, {kWheel.path, "2.28.9"}};
  }

  void add_role(const std::string& name, RoleKind kind, std::vector<std::string> preload) {
    plan::Role role;
    role.name = name;
    role.kind = kind;
    role.gpus = kind == RoleKind::service ? 0 : 1;
    role.scope = kind == RoleKind::learner ? PreloadScope::process : PreloadScope::tree;
    plan_.roles.push_back(role);
    const auto index = static_cast<std::uint32_t>(plan_.processes.size());
    plan_.processes.emplace_back().role = static_cast<std::uint32_t>(plan_.roles.size() - 1);
    plan::BoundProcess bound;
    bound.process = index;
    bound.name = name + ".0";
    bound.preload = std::move(preload);
    node_.processes.push_back(bound);
    facts_.started.insert(index);
  }

  /// An object that takes these functions from a file.
  static sys::ObjectBindings bound(const std::string& object, const sys::MappedFile& file,
                                   std::vector<std::string> functions = {"ncclAllReduce"}) {
    return {{"/venv/" + object, "fe:00", 300, false}, {{file, std::move(functions)}}, {}};
  }

  struct Seen {
    std::uint32_t owner = 0;
    pid_t pid = 0;
    pid_t parent = 0;
    std::string executable = {};
    std::vector<std::string> argv = {};
    bool young = false;
    std::vector<sys::MappedFile> libraries = {};
    std::uint64_t stack_start = 0;
    bool rank = false;
    bool loaded = true;
    std::vector<sys::ObjectBindings> bindings = {};
    std::string unreadable = {};
    bool preloads = false;
  };
  void see(const Seen& seen) {
    ObservedProcess look;
    look.owner = seen.owner;
    look.parent = {seen.parent, static_cast<std::uint64_t>(seen.parent)};
    look.stack_start = seen.stack_start != 0 ? seen.stack_start : static_cast<std::uint64_t>(seen.pid);
    look.executable = seen.executable;
    look.argv = seen.argv;
    look.young = seen.young;
    look.rank = seen.rank;
    look.loaded = seen.loaded;
    look.libraries = seen.libraries;
    look.bindings = seen.bindings;
    look.unreadable = seen.unreadable;
    look.preloads = seen.preloads;
    merge(seen_, {seen.pid, static_cast<std::uint64_t>(seen.pid)}, look);
  }
  void see_learner(std::vector<sys::MappedFile> libraries = {kPreloaded},
                   std::vector<sys::ObjectBindings> bindings = {}) {
    see({.pid = 10,
         .executable = "/usr/bin/python3.11",
         .argv = {"python", "train.py"},
         .libraries = std::move(libraries),
         .bindings = std::move(bindings)});
  }
  void see_engine(std::vector<sys::MappedFile> libraries = {kWheel},
                  std::vector<sys::ObjectBindings> bindings = {}) {
    see({.owner = 1,
         .pid = 20,
         .executable = "/usr/bin/python3.11",
         .argv = {"VLLM::Worker", ""},
         .libraries = std::move(libraries),
         .bindings = std::move(bindings)});
  }

  std::vector<std::string> judged() { return summary(judge(plan_, node_, seen_, facts_)); }
  using Lines = std::vector<std::string>;

  plan::Plan plan_;
  plan::BoundNode node_;
  Observations seen_;
  AuditFacts facts_;
};

const std::string kLearnerLine =
    "learner.0 (pid 10): has only libnccl 2.28.9 /opt/nccl/libnccl.so.2.28.9 mapped, as preloaded";
const std::string kEngineLine =
    "engine.0 (pid 20): has only its own libnccl 2.28.9 /venv/nvidia/nccl/lib/libnccl.so.2 mapped";

TEST_F(Audit, ProvesWhoHasWhich) {
  see_learner();
  see_engine();
  EXPECT_EQ(judged(), (Lines{kLearnerLine, kEngineLine}));
}

TEST_F(Audit, FindsAnEngineWithTheLearnersCopy) {
  see_learner();
  see_engine({kPreloaded});
  EXPECT_EQ(judged(), (Lines{kLearnerLine,
                             "finding: engine.0 (pid 20, VLLM::Worker) has the learner's libnccl 2.28.9 "
                             "(/opt/nccl/libnccl.so.2.28.9)"}));
}

TEST_F(Audit, AFileThatTheEngineLoadsByItselfIsItsOwnEvenWhereTheLearnerPreloadsIt) {
  facts_.own_library = {{"engine", kPreloaded.path}};
  see_learner();
  see_engine({kPreloaded});
  EXPECT_EQ(judged(),
            (Lines{kLearnerLine,
                   "engine.0 (pid 20): has only its own libnccl 2.28.9 /opt/nccl/libnccl.so.2.28.9 mapped"}));
}

TEST_F(Audit, WhatIsBoundIsProvenHoweverManyCopiesAreMapped) {
  see_learner({kPreloaded, kWheel},
              {bound("libtorch_cuda.so", kPreloaded), bound("libtorch_python.so", kPreloaded)});
  see_engine({kWheel}, {bound("libtorch_cuda.so", kWheel)});
  EXPECT_EQ(
      judged(),
      (Lines{"learner.0 (pid 10): bound to libnccl 2.28.9 /opt/nccl/libnccl.so.2.28.9, as preloaded; also "
             "mapped but not bound: libnccl 2.28.9 /venv/nvidia/nccl/lib/libnccl.so.2",
             "engine.0 (pid 20): bound to its own libnccl 2.28.9 /venv/nvidia/nccl/lib/libnccl.so.2"}));
}

TEST_F(Audit, FindsAProcessThatIsBoundToAnotherThanItsPreload) {
  see_learner({kPreloaded, kWheel}, {bound("libtorch_cuda.so", kWheel)});
  see_engine();
  const auto report = judge(plan_, node_, seen_, facts_);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].kind, AuditFinding::Kind::not_bound);
  EXPECT_EQ(
      report.findings[0].message,
      "learner.0 (pid 10, python train.py) has libnccl 2.28.9 (/opt/nccl/libnccl.so.2.28.9) mapped, which "
      "'learner' preloads, but is not bound to it: libtorch_cuda.so to libnccl 2.28.9 "
      "(/venv/nvidia/nccl/lib/libnccl.so.2)");
}

TEST_F(Audit, FindsAProcessThatIsBoundToTwoCopies) {
  see_learner({kPreloaded, kWheel}, {bound("libtorch_cuda.so", kPreloaded), bound("nccl.so", kWheel)});
  see_engine();
  EXPECT_EQ(
      judged().back(),
      "finding: learner.0 (pid 10, python train.py) is bound to 2 copies of libnccl: libtorch_cuda.so to "
      "libnccl 2.28.9 (/opt/nccl/libnccl.so.2.28.9) and nccl.so to libnccl 2.28.9 "
      "(/venv/nvidia/nccl/lib/libnccl.so.2)");
}

TEST_F(Audit, NamesTheFunctionsOfAnObjectThatIsBoundToTwoCopies) {
  auto torch = bound("libtorch_cuda.so", kPreloaded, {"a", "b", "c", "d", "e"});
  torch.targets.push_back({kWheel, {"ncclCommWindowRegister"}});
  see_learner({kPreloaded, kWheel}, {torch});
  see_engine();
  EXPECT_EQ(judged().back(),
            "finding: learner.0 (pid 10, python train.py) is bound to 2 copies of libnccl: libtorch_cuda.so "
            "(a, b, c and 2 more) to libnccl 2.28.9 (/opt/nccl/libnccl.so.2.28.9) and libtorch_cuda.so "
            "(ncclCommWindowRegister) to libnccl 2.28.9 (/venv/nvidia/nccl/lib/libnccl.so.2)");
}

TEST_F(Audit, TwoCopiesOfWhichNoneIsBoundCannotBeProven) {
  const std::string mapped =
      "learner.0 (pid 10): cannot be proven: libnccl 2.28.9 (/opt/nccl/libnccl.so.2.28.9) and libnccl 2.28.9 "
      "(/venv/nvidia/nccl/lib/libnccl.so.2) are mapped";
  see_engine();
  see_learner({kPreloaded, kWheel});
  EXPECT_EQ(judged()[0], mapped + ", and no object imports NCCL");
  see_learner({kPreloaded, kWheel}, {{{"/venv/nccl.so", "fe:00", 300, false}, {}, {"ncclSend"}}});
  EXPECT_EQ(judged()[0], mapped + ", and no function of NCCL is bound yet");
  see({.pid = 10,
       .executable = "/usr/bin/python3.11",
       .argv = {"python", "train.py"},
       .libraries = {kPreloaded, kWheel},
       .unreadable = "its memory cannot be read: Permission denied"});
  seen_.begin()->second.bindings.clear();
  EXPECT_EQ(judged()[0], mapped + "; its memory cannot be read: Permission denied");
  EXPECT_EQ(judge(plan_, node_, seen_, facts_).findings.size(), 0U);
}

TEST_F(Audit, WhatStandsBetweenAnObjectAndNcclIsNamed) {
  see_learner({kPreloaded}, {bound("libtorch_cuda.so", {"/opt/trace.so", "fe:00", 400, false})});
  see_engine();
  EXPECT_EQ(judged()[0],
            "learner.0 (pid 10): cannot be proven: libnccl 2.28.9 (/opt/nccl/libnccl.so.2.28.9) is mapped; "
            "bindings: libtorch_cuda.so to /opt/trace.so");
}

TEST_F(Audit, ALibraryThatVllmIsToldToOpenIsUsedWhereItIsMapped) {
  const sys::MappedFile named{"/opt/vllm/libnccl.so.2", "fe:00", 500, false};
  facts_.named_library = {{"engine", named}};
  see_learner();
  see_engine({kWheel, named}, {bound("libtorch_cuda.so", kWheel)});
  EXPECT_EQ(
      judged()[1],
      "engine.0 (pid 20): bound to its own libnccl 2.28.9 /venv/nvidia/nccl/lib/libnccl.so.2 and has libnccl "
      "/opt/vllm/libnccl.so.2 mapped, which VLLM_NCCL_SO_PATH names");
}

TEST_F(Audit, AnotherRolesLibraryThatIsOnlyMappedBesideTheBoundOneIsNoFinding) {
  see_learner();
  see_engine({kWheel, kPreloaded}, {bound("libtorch_cuda.so", kWheel)});
  EXPECT_EQ(judged()[1],
            "engine.0 (pid 20): bound to its own libnccl 2.28.9 /venv/nvidia/nccl/lib/libnccl.so.2; also "
            "mapped but not bound: libnccl 2.28.9 /opt/nccl/libnccl.so.2.28.9");
}

TEST_F(Audit, ProcessesThatWereNeverStartedAreNotListed) {
  facts_.started = {0};
  see_learner();
  EXPECT_EQ(judged(), Lines{kLearnerLine});
  plan_.roles[1].spawned_by = {"learner"};
  plan_.roles[1].classify = "engine*";
  EXPECT_EQ(judged(),
            (Lines{kLearnerLine, "engine.0: cannot be proven: no process that matches 'engine*' was seen"}));
}

TEST_F(Audit, AHelperThatLoadsThePreloadedFileByItselfIsNoFinding) {
  see_learner();
  see_engine();
  see({.pid = 11,
       .parent = 10,
       .executable = "/usr/bin/python3.11",
       .argv = {"python", "-c", "from multiprocessing"},
       .libraries = {kPreloaded}});
  EXPECT_EQ(judge(plan_, node_, seen_, facts_).findings.size(), 0U);
}

TEST_F(Audit, PluginsOfNcclAreNoCopies) {
  EXPECT_FALSE(is_nccl({"/opt/lib/libnccl-net.so", "fe:00", 5, false}));
  EXPECT_FALSE(is_nccl({"/opt/lib/libnccl-tuner-ofi.so", "fe:00", 5, false}));
  EXPECT_TRUE(is_nccl(kPreloaded));
}

TEST_F(Audit, FindsALearnerWithoutWhatItShouldHave) {
  see_learner({});
  see_engine();
  EXPECT_EQ(judged(),
            (Lines{kEngineLine,
                   "finding: learner.0 (pid 10, python train.py) lacks libnccl 2.28.9 "
                   "(/opt/nccl/libnccl.so.2.28.9), which 'learner' preloads; no libnccl is mapped"}));
}

TEST_F(Audit, FindsALearnerWithAnother) {
  see_learner({kWheel});
  see_engine();
  EXPECT_EQ(
      judged()[1],
      "finding: learner.0 (pid 10, python train.py) lacks libnccl 2.28.9 (/opt/nccl/libnccl.so.2.28.9), "
      "which 'learner' preloads; it has libnccl 2.28.9 (/venv/nvidia/nccl/lib/libnccl.so.2)");
}

TEST_F(Audit, AProgramWithoutALoaderCannotBeProven) {
  see({.pid = 10, .executable = "/opt/train", .argv = {"/opt/train"}, .loaded = false});
  EXPECT_EQ(
      judged(),
      (Lines{
          "learner.0 (pid 10): cannot be proven: no libc is mapped: the program is still being loaded, or it "
          "is static",
          "engine.0: cannot be proven: none of its processes was seen"}));
}

TEST_F(Audit, AnEngineWithoutALibraryCannotBeProven) {
  see_learner();
  see_engine({});
  EXPECT_EQ(
      judged(),
      (Lines{kLearnerLine,
             "engine.0: cannot be proven: no libnccl is mapped: not loaded yet, or linked statically"}));
}

TEST_F(Audit, NamesAHelperThatHasTheLearnersCopy) {
  see_learner();
  see_engine();
  see({.pid = 11,
       .parent = 10,
       .executable = "/usr/bin/ptxas",
       .argv = {"ptxas", "a.ptx"},
       .libraries = {kPreloaded},
       .preloads = true});
  see({.pid = 12,
       .parent = 10,
       .executable = "/usr/bin/python3.11",
       .argv = {"python", "-c", "from multiprocessing"},
       .libraries = {kWheel}});
  EXPECT_EQ(
      judged(),
      (Lines{kLearnerLine,
             "learner.0 (pid 12, helper python -c from multiprocessing): has only its own libnccl 2.28.9 "
             "/venv/nvidia/nccl/lib/libnccl.so.2 mapped",
             kEngineLine,
             "finding: learner.0 (pid 11, ptxas a.ptx), a helper started by the program, has the preloaded "
             "libnccl 2.28.9 (/opt/nccl/libnccl.so.2.28.9); with 'scope: process' only the program should"}));
}

TEST_F(Audit, AForkCountsAsItsParent) {
  see_learner();
  see_engine();
  see({.pid = 11,
       .parent = 10,
       .executable = "/usr/bin/python3.11",
       .argv = {"python", "train.py"},
       .libraries = {kPreloaded},
       .stack_start = 10});
  EXPECT_EQ(judged(), (Lines{kLearnerLine, kEngineLine}));
}

TEST_F(Audit, AForkThatIsBoundToAnotherCopyIsFound) {
  see_learner();
  see_engine();
  see({.pid = 11,
       .parent = 10,
       .executable = "/usr/bin/python3.11",
       .argv = {"python", "train.py"},
       .libraries = {kPreloaded, kWheel},
       .stack_start = 10,
       .bindings = {bound("libtorch_cuda.so", kPreloaded), bound("nccl.so", kWheel)}});
  EXPECT_EQ(judge(plan_, node_, seen_, facts_).findings.size(), 1U);
}

TEST_F(Audit, WrappersLeadToTheProgram) {
  see({.pid = 10, .executable = "/usr/bin/bash", .argv = {"bash", "train.sh"}, .libraries = {kPreloaded}});
  see_engine();
  EXPECT_EQ(judged(), (Lines{kEngineLine,
                             "learner.0: cannot be proven: only wrappers of its program were seen so far"}));
  see({.pid = 11,
       .parent = 10,
       .executable = "/usr/bin/python3.11",
       .argv = {"python", "train.py"},
       .libraries = {kPreloaded}});
  EXPECT_EQ(judged()[0],
            "learner.0 (pid 11): has only libnccl 2.28.9 /opt/nccl/libnccl.so.2.28.9 mapped, as preloaded");
}

TEST_F(Audit, OnlyTheRanksOfALauncherArePrograms) {
  see({.pid = 10,
       .executable = "/usr/bin/python3.11",
       .argv = {"python", "/usr/bin/torchrun", "t.py"},
       .libraries = {kPreloaded}});
  see({.pid = 11,
       .parent = 10,
       .executable = "/usr/bin/python3.11",
       .argv = {"python", "t.py"},
       .libraries = {kPreloaded},
       .rank = true});
  see({.pid = 12,
       .parent = 10,
       .executable = "/usr/bin/nvidia-smi",
       .argv = {"nvidia-smi"},
       .libraries = {kPreloaded}});
  see_engine();
  EXPECT_EQ(
      judged(),
      (Lines{"learner.0 (pid 11): has only libnccl 2.28.9 /opt/nccl/libnccl.so.2.28.9 mapped, as preloaded",
             kEngineLine}));
}

TEST_F(Audit, UnderScopeTreeWorkersMustHaveItToo) {
  plan_.roles[0].scope = PreloadScope::tree;
  see_learner();
  see_engine();
  see({.pid = 11,
       .parent = 10,
       .executable = "/usr/bin/python3.11",
       .argv = {"python", "worker"},
       .libraries = {kPreloaded}});
  see({.pid = 12,
       .parent = 10,
       .executable = "/usr/bin/python3.11",
       .argv = {"python", "other"},
       .libraries = {kWheel}});
  const auto report = judge(plan_, node_, seen_, facts_);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].kind, AuditFinding::Kind::missing);
  EXPECT_EQ(report.findings[0].pid, 12);
}

TEST_F(Audit, FindsVersionsThatDifferWithinACommunicator) {
  facts_.versions[kWheel.path] = "2.27.5";
  see_learner();
  see_engine();
  EXPECT_EQ(
      judged().back(),
      "finding: weight sync: engine.0 has 2.27.5, learner.0 has 2.28.9; all ranks of a communicator need the "
      "same version of NCCL");
}

TEST_F(Audit, ClassifiesSpawnedProcessesByTheirCommandLine) {
  add_role("ray", RoleKind::service, {});
  plan_.roles[0].spawned_by = plan_.roles[1].spawned_by = {"ray"};
  plan_.roles[0].classify = "ray::PolicyTrainer*";
  plan_.roles[1].classify = "ray::LLMRayActor*";
  see({.owner = 2, .pid = 5, .executable = "/usr/bin/raylet", .argv = {"raylet"}});
  see({.owner = 2,
       .pid = 10,
       .parent = 5,
       .executable = "/usr/bin/python3.11",
       .argv = {"ray::PolicyTrainer.train", "", ""},
       .libraries = {kPreloaded}});
  see({.owner = 2,
       .pid = 20,
       .parent = 5,
       .executable = "/usr/bin/python3.11",
       .argv = {"python3", "default_worker.py"},
       .young = true,
       .libraries = {kPreloaded}});
  EXPECT_EQ(judged(),
            (Lines{kLearnerLine,
                   "engine.0: cannot be proven: no process that matches 'ray::LLMRayActor*' was seen"}));
  see({.owner = 2,
       .pid = 20,
       .parent = 5,
       .executable = "/usr/bin/python3.11",
       .argv = {"ray::IDLE"},
       .libraries = {kPreloaded}});
  EXPECT_EQ(
      judged(),
      (Lines{kLearnerLine, "engine.0: cannot be proven: no process that matches 'ray::LLMRayActor*' was seen",
             "finding: ray.0 (pid 20, ray::IDLE) has the learner's libnccl 2.28.9 "
             "(/opt/nccl/libnccl.so.2.28.9)"}));
  see({.owner = 2,
       .pid = 20,
       .parent = 5,
       .executable = "/usr/bin/python3.11",
       .argv = {"ray::LLMRayActor"},
       .libraries = {kPreloaded}});
  EXPECT_EQ(judged(),
            (Lines{kLearnerLine,
                   "finding: engine.0 (pid 20, ray::LLMRayActor) has the learner's libnccl "
                   "2.28.9 (/opt/nccl/libnccl.so.2.28.9); its parent passes on LD_PRELOAD, for example with "
                   "all of os.environ: pass it ${role.engine.env_file} instead"}));
}

TEST_F(Audit, SecretsOfACommandLineAreMasked) {
  node_.masker.add("hunter22");
  see({.owner = 1,
       .pid = 20,
       .executable = "/usr/bin/python3.11",
       .argv = {"serve", "--key=hunter22"},
       .libraries = {kPreloaded}});
  EXPECT_EQ(judged().back(),
            "finding: engine.0 (pid 20, serve --key=***) has the learner's libnccl 2.28.9 "
            "(/opt/nccl/libnccl.so.2.28.9)");
}

TEST_F(Audit, WhatWasMappedOnceCountsUntilAnExec) {
  see_learner({kWheel});
  see_learner({});
  EXPECT_EQ(seen_.begin()->second.libraries.size(), 1U);
  see({.pid = 10, .executable = "/usr/bin/python3.11", .argv = {"python", "train.py"}, .stack_start = 77});
  EXPECT_EQ(seen_.begin()->second.libraries.size(), 0U);
}

TEST_F(Audit, JsonHoldsTheEvidence) {
  see_learner();
  see_engine({kPreloaded});
  const auto json = to_json(judge(plan_, node_, seen_, facts_));
  EXPECT_EQ(json["processes"][0], nlohmann::json::parse(R"({"name": "learner.0", "role": "learner", "pid": 10,
    "command": "python train.py", "part": "program", "proof": "as-preloaded", "libraries": [
      {"path": "/opt/nccl/libnccl.so.2.28.9", "device": "fe:00", "inode": 100, "deleted": false, "version": "2.28.9",
       "use": "only", "by": []}]})"));
  EXPECT_EQ(json["findings"][0]["kind"], "foreign");
  EXPECT_EQ(json["findings"][0]["pid"], 20);
}

}  // namespace
}  // namespace nlaunch::launch
