#include "plan/role_builder.h"

#include <gtest/gtest.h>

#include "unit/plan/support.h"

namespace nlaunch::plan {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;
using RolePlan = PlanFiles;

constexpr const char* kLocal = "scheduler: {kind: local}\n";

TEST(AbsolutePath, BeginsAtItsBaseOrAtHome) {
  struct Case {
    const char *path, *home, *whole;
  };
  const Case cases[] = {
      {"a/b", "/home/u", "/base/a/b"},
      {"a/./../b/", "/home/u", "/base/b"},
      {".", "/home/u", "/base"},
      {"", "/home/u", "/base"},
      {"..", "/home/u", "/"},
      {"/a//b/", "/home/u", "/a/b"},
      {"/", "/home/u", "/"},
      {"~", "/home/u", "/home/u"},
      {"~/a", "/home/u", "/home/u/a"},
      {"~other/a", "/home/u", "/base/~other/a"},
      {"~/a", "", "/base/~/a"},
      {"~", "", "/base/~"},
      {"${run.dir}", "/home/u", "${run.dir}"},
      {"${run.dir}/../a", "/home/u", "${run.dir}/../a"},
      {"${node.scratch}/a", "/home/u", "${node.scratch}/a"},
      {"a/${run.dir}", "/home/u", "/base/a/${run.dir}"},
  };
  for (const auto& [path, home, whole] : cases) EXPECT_EQ(absolute(path, "/base", home), whole) << path;
}

TEST_F(RolePlan, ALauncherStandsInFrontOfTheScript) {
  const auto plan = plan_of(R"(roles:
  one: {kind: learner, gpus: 4, launcher: torchrun, command: [train.py, --a]}
  two: {kind: learner, gpus: 2, launcher: [accelerate, "--config_file=${vars.file}"], command: [python3, -m, pkg]}
vars: {file: zero3.yaml}
)",
                            "scheduler: {kind: slurm}\nnode: {gpus: 8}\n");
  EXPECT_EQ(
      plan.roles[0].command,
      (Lines{"torchrun", "--nnodes=${role.one.count}", "--node_rank=${self.index}", "--nproc_per_node=4",
             "--master_addr=${self.master_addr}", "--master_port=${self.master_port}", "train.py", "--a"}));
  EXPECT_EQ(plan.roles[1].command,
            (Lines{"accelerate", "launch", "--num_machines=${role.two.count}", "--machine_rank=${self.index}",
                   "--num_processes=${self.world_size}", "--main_process_ip=${self.master_addr}",
                   "--main_process_port=${self.master_port}", "--rdzv_backend=static",
                   "--config_file=zero3.yaml", "-m", "pkg"}));
  for (const auto& role : plan.roles) {
    EXPECT_EQ(role.rendezvous, Rendezvous::torch);
    EXPECT_EQ(role.scope, PreloadScope::tree);
  }
}

TEST_F(RolePlan, WhatARoleDoesNotSayDependsOnItsKind) {
  const auto plan = plan_of(R"(roles:
  learner: {kind: learner, command: [t]}
  engine: {kind: engine, command: [s]}
  tool: {kind: service, command: [x]}
  quiet: {kind: learner, command: [t], ends_run: false, scope: tree}
  loud: {kind: engine, command: [s], ends_run: true, scope: process}
)",
                            kLocal);
  const auto told = [&](std::size_t i) {
    return std::string(name_of(plan.roles[i].scope)) + (plan.roles[i].ends_run ? " ends the run" : "");
  };
  EXPECT_EQ(told(0), "process ends the run");
  EXPECT_EQ(told(1), "tree");
  EXPECT_EQ(told(2), "tree");
  EXPECT_EQ(told(3), "tree");
  EXPECT_EQ(told(4), "process ends the run");
  const auto& plain = plan.roles[0];
  EXPECT_EQ(plain.workdir, folder_.string());
  EXPECT_EQ(plain.workdir_origin, "");
  EXPECT_EQ(plain.venv, "");
  EXPECT_EQ(without_folder(plain.command_origin), "experiment.yaml:4:38");
  EXPECT_EQ(plain.wrapper_origin, "");
  EXPECT_TRUE(plain.wrapper.empty());
  EXPECT_EQ(plain.heartbeat, "");
  EXPECT_EQ(plain.classify, "");
  EXPECT_FALSE(plain.ready.given());
  EXPECT_EQ(plain.gpus, 0U);
}

TEST_F(RolePlan, TextsAreResolvedAndPathsAbsolute) {
  const auto plan = plan_of(R"(workdir: "work-${env.MODEL}"
venv: .venv
watch: {heartbeat: "beat-${self.index}"}
roles:
  learner: {kind: learner, command: ["t-${env.MODEL}"], wrapper: [nice, -n, "${env.MODEL}"], ready: {exec: [ask, "${env.MODEL}"]}}
  engine: {kind: engine, command: [s], workdir: ~/own, venv: "/opt/${env.MODEL}", ready: {log: "${not.a.reference}"}}
  actor: {kind: service, spawned_by: [learner], classify: "*${env.MODEL}*"}
  tool: {kind: service, command: [x], ready: {file: "${run.dir}/ready", timeout: 3s}}
)",
                            kLocal);
  const auto& learner = plan.roles[0];
  const auto work = (folder_ / "work-small").string();
  EXPECT_EQ(learner.command, Lines{"t-small"});
  EXPECT_EQ(learner.wrapper, (Lines{"nice", "-n", "small"}));
  EXPECT_EQ(without_folder(learner.wrapper_origin), "experiment.yaml:7:67");
  EXPECT_EQ(learner.workdir, work);
  EXPECT_EQ(without_folder(learner.workdir_origin), "experiment.yaml:3:10");
  EXPECT_EQ(learner.venv, work + "/.venv");
  EXPECT_EQ(learner.heartbeat, "beat-${self.index}");
  EXPECT_EQ(learner.ready.exec, (Lines{"ask", "small"}));
  EXPECT_EQ(learner.ready.timeout, 10min);
  const auto& engine = plan.roles[1];
  EXPECT_EQ(engine.workdir, "/home/user/own");
  EXPECT_EQ(without_folder(engine.workdir_origin), "experiment.yaml:8:49");
  EXPECT_EQ(engine.venv, "/opt/small");
  EXPECT_EQ(engine.heartbeat, "") << "a learner's progress is watched";
  EXPECT_EQ(engine.ready.log, "${not.a.reference}") << "a regular expression has its own dollars";
  const auto& actor = plan.roles[2];
  EXPECT_EQ(actor.classify, "*small*");
  EXPECT_EQ(actor.spawned_by, Lines{"learner"});
  EXPECT_EQ(actor.command_origin, "");
  EXPECT_EQ(plan.roles[3].ready.file, "${run.dir}/ready");
  EXPECT_EQ(plan.roles[3].ready.timeout, 3s);
}

TEST_F(RolePlan, AWrapperThatCannotBeOneIsRefusedAtItsPlace) {
  EXPECT_EQ(mistakes("roles:\n  learner: {kind: learner, command: [t], wrapper: [nice, apptainer, exec]}\n",
                     kLocal),
            Lines{"4:52 the wrapper ends without an image, at 'exec' -> the image comes after the options "
                  "and their values; the command comes after the wrapper"});
}

TEST_F(RolePlan, LibrariesAreThoseOfTheSite) {
  const auto site =
      std::string(kLocal) + "libraries: {aws: {path: /a}, nccl: {path: lib/n.so}, ofi: {path: ~/o}}\n";
  const auto plan = plan_of("roles: {learner: {kind: learner, preload: [nccl, aws], command: [t]}}\n", site);
  EXPECT_EQ(plan.roles[0].preload, (Lines{"nccl", "aws"}));
  EXPECT_EQ(plan.libraries.at("nccl").path, (folder_ / "lib/n.so").string());
  EXPECT_EQ(plan.libraries.at("ofi").path, "/home/user/o");
  EXPECT_EQ(mistakes("roles: {learner: {kind: learner, preload: [nccl, ncl], command: [t]}}\n", site),
            Lines{"3:50 site 'site' defines no library 'ncl' -> it defines aws, nccl, ofi; --site selects "
                  "another profile"});
}

TEST_F(RolePlan, OneProcesssAddressStandsForManyInACheck) {
  const auto with = [&](const std::string& ready) {
    return mistakes("roles:\n  engine: {kind: engine, ports: [http], command: [s], ready: {" + ready + "}}\n",
                    kLocal);
  };
  EXPECT_EQ(with("tcp: '${role.engine.addrs}'"), Lines{});
  EXPECT_EQ(with("http: 'http://${role.engine.addrs}/'"), Lines{});
  EXPECT_EQ(with("tcp: '${role.engine.hosts}'"),
            Lines{"4:68 '${role.engine.hosts}' is not HOST:PORT with a port from 1 to 65535"});
  EXPECT_EQ(with("tcp: 'it''s' "), Lines{"4:68 'it's' is not HOST:PORT with a port from 1 to 65535"});
}

}  // namespace
}  // namespace nlaunch::plan
