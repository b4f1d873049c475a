#include "preflight/ask/ask_probe.h"

#include <gtest/gtest.h>

#include <chrono>

#include "preflight/ask/inquiries.h"
#include "preflight/ask/role_library.h"
#include "preflight/findings.h"
#include "preflight/gather.h"
#include "sys/spawn.h"
#include "sys/tcp_port.h"
#include "unit/preflight/fixture.h"
#include "unit/preflight/script.h"

/// What is asked of nlaunch-probe, in whose place a script answers.
namespace nlaunch::preflight {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

/// What such a probe answers, as text; else why not.
std::string asked(const std::string& script, Duration deadline = 10s) {
  const ScriptFolder folder;
  const auto said = ask_probe(folder.probe(script), {"facts", "more"}, sys::own_environment(), deadline);
  return said ? said->dump() : said.error().first_message();
}

TEST(AskProbe, TakesTheLastLineThatIsAnObject) {
  EXPECT_EQ(asked(R"(echo '{"a":1}')"), R"({"a":1})");
  EXPECT_EQ(asked(R"(echo loading; echo '{"a":1}'; echo '{"a":2}'; echo '[3]'; echo unloaded)"),
            R"({"a":2})");
  EXPECT_EQ(asked(R"(echo "{\"a\":\"$*\"}")"), R"({"a":"facts more"})");
  EXPECT_EQ(asked(R"(echo '{"a":1}'; exit 3)"), R"({"a":1})");
}

TEST(AskProbe, SaysWhyThereIsNoAnswer) {
  EXPECT_EQ(asked("echo 'no luck' >&2; exit 3"), "nlaunch-probe facts exited with code 3: no luck");
  EXPECT_EQ(asked("echo 7"), "nlaunch-probe facts exited with code 0: ");
  EXPECT_EQ(asked("sleep 100", 50ms), "nlaunch-probe facts did not answer within 0.05 s");
  EXPECT_EQ(asked("echo '{\"a\":1}'; sleep 100", 200ms), R"({"a":1})") << "a driver may hold it";
  const auto missing = ask_probe("/nowhere/probe", {"facts"}, {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().first_message(), "'/nowhere/probe' does not exist");
}

TEST(MachineFacts, AreReadFromTheProbesLine) {
  const auto facts =
      read_machine_facts(json::parse(R"({"hostname":"n1","arch":"aarch64","driver":"580","cuda_driver":"13.0",
    "nvml_error":"none","no_driver":true,"limits":{"memlock":1,"nofile":2,"nproc":3,"core":4,"shm_free":5,"userfaultfd":"all"},
    "gpus":[{"bus_id":"b","uuid":"u","name":"H200","memory_total":7,"memory_used":6}]})"));
  EXPECT_EQ(facts.hostname, "n1");
  EXPECT_EQ(facts.arch, "aarch64");
  EXPECT_EQ(facts.driver, "580");
  EXPECT_EQ(facts.cuda_driver, "13.0");
  EXPECT_EQ(facts.nvml_error, "none");
  EXPECT_TRUE(facts.no_driver);
  EXPECT_EQ(facts.memlock, 1U);
  EXPECT_EQ(facts.nofile, 2U);
  EXPECT_EQ(facts.nproc, 3U);
  EXPECT_EQ(facts.core, 4U);
  EXPECT_EQ(facts.shm_free, 5U);
  EXPECT_EQ(facts.userfaultfd, "all");
  ASSERT_EQ(facts.gpus.size(), 1U);
  EXPECT_EQ(facts.gpus[0].memory_total, 7U);
  EXPECT_EQ(facts.gpus[0].memory_used, 6U);
  EXPECT_EQ(facts.error, "");
}

TEST(MachineFacts, AreUnlimitedOrUnknownWhereTheLineDoesNotSay) {
  const auto facts =
      read_machine_facts(json::parse(R"({"limits":{"memlock":null,"nofile":"many"},"gpus":[{}]})"));
  EXPECT_EQ(facts.memlock, std::nullopt);
  EXPECT_EQ(facts.nofile, std::nullopt);
  EXPECT_EQ(facts.shm_free, std::nullopt);
  EXPECT_FALSE(facts.no_driver);
  EXPECT_EQ(facts.gpus[0].memory_total, 0U);
  EXPECT_EQ(facts.gpus[0].memory_used, 0U);
}

TEST(MachineFacts, AreNoneWhereTheProbeDoesNotAnswer) {
  const ScriptFolder folder;
  const auto facts = ask_machine_facts(folder.probe("echo no luck >&2; exit 1"));
  EXPECT_EQ(facts.error, "nlaunch-probe facts exited with code 1: no luck");
  EXPECT_EQ(facts.nvml_error, facts.error);
  EXPECT_EQ(ask_machine_facts(folder.probe("echo '{\"arch\":\"a\"}'")).arch, "a");
}

TEST(PythonOf, IsTheCommandOrThatOfItsScript) {
  const ScriptFolder folder;
  const auto python = folder.program("bin/python3.11", "#!/bin/sh");
  const auto other = folder.program("bin/python3", "#!/bin/sh");
  plan::BoundProcess process;
  process.workdir = folder.path();
  process.env = {{"PATH", folder.path() + "/bin:/usr/bin:/bin"}};
  const auto of = [&](const std::vector<std::string>& argv) {
    process.argv = argv;
    const auto found = python_of(process);
    return found.path + (found.named ? " named" : "");
  };
  EXPECT_EQ(of({"python3.11", "train.py"}), python + " named");
  EXPECT_EQ(of({python, "train.py"}), python + " named");
  EXPECT_EQ(of({folder.program("serve", "#!" + python)}), python + " named");
  EXPECT_EQ(of({folder.program("spaced", "#! /usr/bin/env -S  python3 -u")}), other + " named");
  EXPECT_EQ(of({folder.program("short", "#!/bin/sh")}), other);
  EXPECT_EQ(of({folder.program("words", "python3 is not named by this")}), other);
  EXPECT_EQ(of({folder.program("elsewhere", "#!/nowhere/python3")}), other);
  EXPECT_EQ(of({"no-such-program"}), other);
  EXPECT_EQ(of({}), other);
  process.env.clear();
  EXPECT_EQ(of({}), "");
}

TEST(PythonOf, IsNotLookedForInAContainer) {
  plan::BoundProcess process;
  process.wrapper = {"apptainer", "exec", "image.sif"};
  process.argv = {"/opt/python3", "train.py"};
  EXPECT_EQ(python_of(process).path, "/opt/python3");
  EXPECT_TRUE(python_of(process).named);
  process.argv = {"serve"};
  EXPECT_EQ(python_of(process).path, "python3");
  EXPECT_FALSE(python_of(process).named);
  process.argv = {};
  EXPECT_EQ(python_of(process).path, "python3");
}

TEST(PythonsOfRoles, AreThoseThatAreUsedOrMayBe) {
  const ScriptFolder folder;
  const auto python = folder.program("python3", "#!/bin/sh");
  Machine machine(1, 1);
  machine.plan.experiment = "grpo.yaml";
  machine.plan.sources = {"grpo.yaml"};
  machine.plan.roles[1].kind = RoleKind::service;
  for (const std::size_t process : {0U, 1U}) {
    machine.set(process, "PATH", folder.path());
    machine.node.processes[process].argv = {"/bin/sh"};
  }
  auto pythons = pythons_of_roles(machine.of_node());
  ASSERT_EQ(pythons.size(), 1U) << "nobody knows that a service uses one";
  EXPECT_EQ(pythons.at(0).path, python);
  machine.node.processes[1].argv = {python};
  EXPECT_EQ(pythons_of_roles(machine.of_node()).size(), 2U);
  machine.plan.sources.clear();
  pythons = pythons_of_roles(machine.of_node());
  ASSERT_EQ(pythons.size(), 1U) << "a machine that is checked for itself has no program yet";
  EXPECT_TRUE(pythons.contains(1));
  machine.plan.sources = {"grpo.yaml"};
  machine.set(0, "PATH", "/nowhere");
  EXPECT_FALSE(pythons_of_roles(machine.of_node()).contains(0));
}

/// A role's library, with a probe that says its arguments for an error.
class RoleLibrary : public testing::Test {
 protected:
  RoleLibrary() {
    process.workdir = "/";
    process.env = {{"PATH", "/nowhere"}};
  }
  [[nodiscard]] std::string found(const std::string& script = R"(echo "{\"error\":\"$*\"}")") const {
    const auto fact = find_role_library(process, folder.probe(script));
    return fmt::format("{} '{}' {}: {}", fact.by, fact.path, fact.version, fact.error);
  }
  ScriptFolder folder;
  plan::BoundProcess process;
};

TEST_F(RoleLibrary, IsWhatTheLoaderFinds) {
  EXPECT_EQ(found(), "loader '' : find-library libnccl.so.2");
  EXPECT_EQ(found(R"(echo '{"path":"/lib/libnccl.so.2","version":"2.28.9"}')"),
            "loader '/lib/libnccl.so.2' 2.28.9: ");
  EXPECT_EQ(found("exit 4"), "loader '' : nlaunch-probe find-library exited with code 4: ");
}

TEST_F(RoleLibrary, IsThatOfThePreloadBeforeAllOthers) {
  process.env.emplace_back("VLLM_NCCL_SO_PATH", "/vllm/libnccl.so");
  EXPECT_EQ(found(), "VLLM_NCCL_SO_PATH '/vllm/libnccl.so' : library /vllm/libnccl.so");
  process.preload = {"/lib/libother.so", "/opt/libnccl.so.2"};
  EXPECT_EQ(found(), "preload '/opt/libnccl.so.2' : library /opt/libnccl.so.2");
  EXPECT_EQ(found(R"(echo '{"path":"/another","version":"2.28.9"}')"),
            "preload '/opt/libnccl.so.2' 2.28.9: ");
}

TEST_F(RoleLibrary, IsThatOfTheVirtualEnvironment) {
  const std::string wheel = "/site-packages/nvidia/nccl/lib/libnccl.so.2";
  folder.file("venv/lib/other" + wheel, "");
  process.env.emplace_back("VIRTUAL_ENV", folder.path() + "/venv");
  EXPECT_EQ(found(), "loader '' : find-library libnccl.so.2");
  const auto file = folder.file("venv/lib/python3.11" + wheel, "");
  EXPECT_EQ(found(), "NCCL wheel '" + file + "' : library " + file);
}

TEST_F(RoleLibrary, IsThatOfThePython) {
  const auto python = folder.program("python3", "#!/bin/sh", "echo; echo \" $1 $2 $4 \"\n");
  process.env = {{"PATH", folder.path() + ":/usr/bin:/bin"}};
  EXPECT_EQ(found(),
            "NCCL wheel '-S -c nvidia/nccl/lib/libnccl.so.2' : library -S -c nvidia/nccl/lib/libnccl.so.2");
  const auto broken = folder.program("python3", "#!/bin/sh", "echo /a; exit 1\n");
  EXPECT_EQ(found(), "loader '' : find-library libnccl.so.2");
  EXPECT_EQ(python, broken);
}

/// A request to a probe that answers each question with its words.
class Asking : public testing::Test {
 protected:
  Asking() {
    machine.plan.experiment = "grpo.yaml";
    machine.plan.sources = {"grpo.yaml"};
    machine.node.host = "n1";
    for (std::size_t i = 0; i < machine.node.processes.size(); ++i) {
      machine.node.processes[i].workdir = folder.path();
      machine.set(i, "PATH", "/nowhere");  // with no Python of this machine
    }
  }
  [[nodiscard]] Request request(PreflightLevel level,
                                const std::string& script = R"(echo "{\"said\":\"$*\"}")") const {
    Request out{machine.plan, machine.node, folder.path(), folder.probe(script)};
    out.options.level = level;
    return out;
  }
  /// The names of the questions.
  [[nodiscard]] Lines asked(PreflightLevel level) const {
    auto observations = machine.of_node();
    observations.folders = {{"run directory", "/runs", Folder::Use::fill}};
    observations.pythons[0] = {"/venv/bin/python", true};
    Lines names;
    for (const auto& [name, answer] : ask(request(level), observations)) names.push_back(name);
    return names;
  }

  ScriptFolder folder;
  Machine machine{1, 1};
};

TEST_F(Asking, AsksWhatTheLevelWants) {
  const Lines quick{"folder//runs", "gpu-health", "kernel-log", "nics", "shared-memory"};
  EXPECT_EQ(asked(PreflightLevel::quick), quick);
  EXPECT_EQ(asked(PreflightLevel::standard), (Lines{"folder//runs", "gpu-health", "interpreter/learner",
                                                    "kernel-log", "nics", "shared-memory"}));
  EXPECT_EQ(asked(PreflightLevel::deep),
            (Lines{"copies", "folder//runs", "gemm", "gpu-health", "interpreter/learner", "kernel-log",
                   "nics", "shared-memory", "torch/learner"}));
}

TEST_F(Asking, AsksWhatConcernsTheMachineAndItsRoles) {
  machine.plan.node.count = 2;
  machine.plan.roles[1].wrapper = {"apptainer", "exec", "image.sif"};
  EXPECT_EQ(asked(PreflightLevel::quick),
            (Lines{"container/engine", "fabric/engine", "fabric/learner", "folder//runs", "gpu-health",
                   "kernel-log", "names", "nics", "shared-memory"}));
  machine.plan.node.count = 1;
  machine.plan.node.nic_kind = "ib";
  machine.plan.roles[1].wrapper.clear();
  machine.node.gpus.clear();
  EXPECT_EQ(asked(PreflightLevel::quick), (Lines{"fabric/engine", "fabric/learner", "folder//runs",
                                                 "kernel-log", "nics", "shared-memory"}));
}

TEST_F(Asking, PutsTheQuestionsWords) {
  machine.plan.node.count = 2;
  machine.set(0, "MASTER_ADDR", "10.0.0.1");
  machine.node.processes[0].preload = {"/a.so", "/b.so"};
  auto observations = machine.of_node();
  observations.folders = {{"run directory", "/runs", Folder::Use::fill}};
  observations.pythons[0] = {"/venv/bin/python", true};
  const auto answers = ask(request(PreflightLevel::deep), observations);
  const auto said = [&](const std::string& name) { return answers.at(name).said.value("said", ""); };
  EXPECT_EQ(said("nics"), "nics");
  EXPECT_EQ(said("names"), "names 10.0.0.1");
  EXPECT_EQ(said("folder//runs"), "folder /runs");
  EXPECT_EQ(said("fabric/learner"), "fabric tcp");
  EXPECT_EQ(said("gemm"), "gemm --devices 0,1");
  EXPECT_EQ(said("interpreter/learner"), "interpreter /venv/bin/python " + folder.path());
  EXPECT_EQ(said("torch/learner"), "torch /venv/bin/python " + folder.path() + " /a.so:/b.so");
  EXPECT_EQ(answers.at("nics").error, "");
}

TEST_F(Asking, AskedInTheEnvironmentOfTheRole) {
  machine.plan.node.count = 2;
  machine.set(1, "MARK", "engine");
  const auto answers =
      ask(request(PreflightLevel::quick, R"(echo "{\"said\":\"$MARK\"}")"), machine.of_node());
  EXPECT_EQ(answers.at("fabric/engine").said.value("said", ""), "engine");
  EXPECT_EQ(answers.at("fabric/learner").said.value("said", ""), "");
}

TEST_F(Asking, WhoDoesNotAnswerIsTold) {
  const auto answers = ask(request(PreflightLevel::quick, "exit 3"), machine.of_node());
  EXPECT_EQ(answers.at("nics").error, "nlaunch-probe nics exited with code 3: ");
  EXPECT_TRUE(answers.at("nics").said.is_null());
}

TEST_F(Asking, OfAContainerItIsTriedWhetherAnythingStarts) {
  machine.plan.roles[1].wrapper = {"apptainer", "exec", "image.sif"};
  auto& process = machine.node.processes[1];
  // The tool of containers starts nothing; a program behind it is what the role's wrapper names.
  const auto tool = folder.program("apptainer", "#!/bin/sh", "echo 'no image' >&2; exit 255\n");
  process.wrapper = {tool, "exec", "image.sif"};
  machine.plan.roles[1].wrapper = process.wrapper;
  auto answers = ask(request(PreflightLevel::quick), machine.of_node());
  EXPECT_EQ(answers.at("container/engine").said.value("words", ""), "exited with code 255: no image");
  EXPECT_EQ(answers.at("container/engine").error, "nlaunch-probe container exited with code 255: no image");
  EXPECT_EQ(folder.program("apptainer", "#!/bin/sh", "case \"$*\" in *probe*) exit 127;; esac\n"), tool);
  answers = ask(request(PreflightLevel::quick), machine.of_node());
  EXPECT_EQ(answers.at("container/engine").said, json::object());
  EXPECT_EQ(answers.at("container/engine").error, "nlaunch-probe container exited with code 127: ");
}

TEST(Inquiries, HaveTheirTime) {
  EXPECT_EQ(inquiry_of("nics").deadline, 5s);
  EXPECT_EQ(inquiry_of("gpu-health").deadline, 10s);
  EXPECT_EQ(inquiry_of("folder").deadline, 10s);
  EXPECT_EQ(inquiry_of("container").deadline, 20s);
  EXPECT_EQ(inquiry_of("interpreter").deadline, 20s);
  EXPECT_EQ(inquiry_of("torch").deadline, 90s);
  EXPECT_EQ(inquiry_of("copies").deadline, 1min);
  EXPECT_EQ(inquiry_of("gemm").deadline, 1min);
}

TEST(Inquiries, ConcernRolesThatHaveWhatIsAskedFor) {
  Machine machine(1, 1);
  auto observations = machine.of_node();
  observations.pythons[0] = {"/venv/bin/python", true};
  EXPECT_TRUE(inquiry_of("interpreter").concerns(observations, 0));
  EXPECT_FALSE(inquiry_of("interpreter").concerns(observations, 1));
  EXPECT_TRUE(inquiry_of("torch").concerns(observations, 0));
  EXPECT_FALSE(inquiry_of("torch").concerns(observations, 1));
  machine.plan.roles[0].gpus = 0;
  EXPECT_FALSE(inquiry_of("torch").concerns(observations, 0));
  const Machine without(1, 1, false);
  auto of_cpus = without.of_node();
  of_cpus.pythons[0] = {"/venv/bin/python", true};
  EXPECT_FALSE(inquiry_of("torch").concerns(of_cpus, 0));
}

TEST_F(Asking, LooksAtTheMachine) {
  machine.plan.processes[1].gpus = {0, 1};
  machine.set(0, "NCCL_P2P_DISABLE", "1");
  const auto findings = look(request(PreflightLevel::quick,
                                     R"(case "$1" in
facts) echo '{"arch":"aarch64","driver":"580","gpus":[{"bus_id":"a","name":"H200"},{"bus_id":"b","name":"H200"}]}';;
find-library) echo '{"path":"/lib/libnccl.so.2","version":"2.28.9"}';;
*) exit 3;;
esac)"));
  EXPECT_EQ(findings.summary.host, "n1");
  EXPECT_EQ(findings.summary.arch, "aarch64");
  EXPECT_EQ(findings.summary.driver, "580");
  EXPECT_EQ(findings.summary.gpus, 2U);
  EXPECT_EQ(findings.summary.gpu, "H200");
  EXPECT_EQ(findings.summary.nccl, "2.28.9");
  ASSERT_EQ(findings.ranks.size(), 3U);
  EXPECT_EQ(findings.ranks[0].library.version, "2.28.9");
  EXPECT_EQ(findings.ranks[2].library.path, "/lib/libnccl.so.2");
  EXPECT_EQ(findings.ranks[0].slow, Lines{"NCCL_P2P_DISABLE=1"});
  EXPECT_EQ(findings.ranks[1].slow, Lines{});
  EXPECT_EQ(findings.ranks[0].no_probe, "");
  EXPECT_TRUE(findings.figures.empty());
  EXPECT_TRUE(findings.fingerprints.empty());
  const auto nccl = std::ranges::find(findings.rows, "nccl", &Row::check);
  ASSERT_NE(nccl, findings.rows.end());
  EXPECT_EQ(nccl->value, "2.28.9 /lib/libnccl.so.2 (loader)");
}

TEST_F(Asking, LooksWithTheFactsThatAreKnown) {
  auto known = request(PreflightLevel::quick, "exit 3");
  known.facts = R"({"arch":"riscv64"})";
  EXPECT_EQ(look(known).summary.arch, "riscv64");
  known.facts = "no facts";
  EXPECT_EQ(look(known).summary.arch, "");
}

TEST_F(Asking, WhatDoesNotStartInItsContainerHasNoProbe) {
  machine.plan.roles[1].wrapper = {"apptainer", "exec", "image.sif"};
  machine.node.processes[1].wrapper = {folder.program("apptainer", "#!/bin/sh", "exit 255\n"), "exec",
                                       "image.sif"};
  const auto findings = look(request(PreflightLevel::quick));
  ASSERT_EQ(findings.ranks.size(), 2U);
  EXPECT_EQ(findings.ranks[0].no_probe, "");
  EXPECT_EQ(findings.ranks[1].no_probe, "nlaunch-probe does not start in the container of 'engine'");
}

TEST_F(Asking, OfTheDeepLevelFiguresAreKept) {
  const auto findings = look(request(PreflightLevel::deep, R"(case "$1" in
gemm) echo '{"gpus":[{"gpu":1,"bus_id":"b","name":"H200","hash":"c0ffee","repetitions":1,"differing":0,"wrong_samples":0,"flops":4e14}]}';;
*) exit 3;;
esac)"));
  ASSERT_EQ(findings.figures.size(), 1U);
  EXPECT_EQ(findings.figures[0].from, "GPU 1");
  ASSERT_EQ(findings.fingerprints.size(), 1U);
  EXPECT_EQ(findings.fingerprints[0].value, "c0ffee");
}

TEST(AskPorts, ThoseOfThePlanAreHeldAndThoseByNumberAreTried) {
  Machine machine(1, 1);
  machine.node.processes[0].ports = {1};
  auto& role = machine.plan.roles[0];
  role.kind = RoleKind::engine;
  std::uint16_t taken = 24680;
  auto held = sys::hold_port(taken);
  while (!held) held = sys::hold_port(++taken);
  role.command = {"serve", "--port", std::to_string(taken)};
  const auto ports = ask_ports(machine.plan, machine.node);
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_EQ(ports[0].process, "learner.0");
  EXPECT_EQ(ports[0].port, 1);
  EXPECT_EQ(ports[0].error, "");
  EXPECT_EQ(ports[1].port, taken);
  EXPECT_EQ(ports[1].error, "Address already in use");
  role.kind = RoleKind::learner;
  EXPECT_EQ(ask_ports(machine.plan, machine.node).size(), 1U) << "it may be another role's";
}

}  // namespace
}  // namespace nlaunch::preflight
