#include "launch/job/precheck.h"

#include <gtest/gtest.h>

namespace nlaunch::launch {
namespace {

constexpr auto kPartitions =
    "PartitionName=main AllowGroups=ALL Default=YES QoS=N/A DefaultTime=NONE MaxNodes=UNLIMITED "
    "MaxTime=UNLIMITED MinNodes=0 Nodes=node[0-3] State=UP TotalNodes=4\n"
    "PartitionName=short AllowGroups=ALL Default=NO QoS=N/A DefaultTime=NONE MaxNodes=2 MaxTime=00:10:00 "
    "MinNodes=2 Nodes=node[0-3] State=UP TotalNodes=4\n";

class PrecheckTest : public testing::Test {
 protected:
  PrecheckTest() {
    plan_.node.count = 2;
    facts_.partitions = parse_partitions(kPartitions);
    add_role("learner", "/project", "train.py");
  }

  void add_role(const std::string& name, const std::string& workdir, const std::string& program) {
    plan::Role role;
    role.name = name;
    role.workdir = workdir;
    role.command = {program};
    role.command_origin = "e.yaml:5:14";
    plan_.roles.push_back(role);
    facts_.paths[workdir] = PathKind::folder;
  }

  void direct(const std::string& name, const std::string& value) {
    plan_.slurm.directives.push_back({name, value, "e.yaml:" + name});
  }

  /// All that is said.
  std::string judged() {
    const auto found = judge(plan_, facts_);
    auto out = render(found.errors);
    for (const auto& note : found.notes) out += "note: " + note + "\n";
    return out;
  }

  plan::Plan plan_;
  LoginFacts facts_;
};

TEST(ParsePartitions, ReadsTheLinesOfScontrol) {
  const auto found = parse_partitions(kPartitions);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_TRUE(found[0].is_default);
  EXPECT_EQ(found[0].max_nodes, std::numeric_limits<std::uint32_t>::max());
  EXPECT_EQ(found[1].name + " " + found[1].state + " " + found[1].max_time, "short UP 00:10:00");
  EXPECT_EQ(found[1].max_nodes, 2U);
  EXPECT_EQ(found[1].min_nodes, 2U);
  EXPECT_TRUE(parse_partitions("No partitions in the system\n").empty());
}

TEST_F(PrecheckTest, AJobThatFitsIsNoWordWorth) {
  EXPECT_EQ(judged(), "");
  direct("partition", "short");
  direct("time", "10:00");
  EXPECT_EQ(judged(), "");
}

TEST_F(PrecheckTest, AllLimitsAreSaidInOnePass) {
  direct("partition", "short");
  direct("time", "00:20:00");
  plan_.slurm.spares = 1;
  EXPECT_EQ(judged(),
            "error: partition 'short' allows at most 2 nodes per job (MaxNodes), but this one asks for 3 (2 "
            "of the plan and 1 spare) [launch.partition]\n"
            "note: --partition=short is from e.yaml:partition\n"
            "hint: `sinfo -s` lists the partitions\n\n"
            "error: partition 'short' lets a job run for at most 00:10:00 (MaxTime), but this one asks for "
            "00:20:00 [launch.partition]\n"
            "note: --time=00:20:00 is from e.yaml:time\n"
            "note: --partition=short is from e.yaml:partition\n"
            "hint: `sinfo -s` lists the partitions\n\n"
            "2 errors\n");
}

TEST_F(PrecheckTest, TooFewNodesInTheDefaultPartition) {
  facts_.partitions[0].is_default = false;
  facts_.partitions[1].is_default = true;
  plan_.node.count = 1;
  EXPECT_EQ(judged(),
            "error: partition 'short' requires at least 2 nodes per job (MinNodes), but this one asks for 1 "
            "[launch.partition]\n"
            "note: it is the default partition of the cluster\n"
            "hint: `sinfo -s` lists the partitions\n");
}

TEST_F(PrecheckTest, OneOfSeveralPartitionsIsEnough) {
  plan_.node.count = 4;
  direct("partition", "short,main");
  EXPECT_EQ(judged(), "");
}

TEST_F(PrecheckTest, APartitionThatIsNotUp) {
  direct("partition", "short");
  facts_.partitions[1].state = "DOWN";
  EXPECT_EQ(judged(), "note: partition 'short' is DOWN: the job waits until it is up again\n");
  facts_.partitions[1].state = "INACTIVE";
  EXPECT_EQ(judged(),
            "error: partition 'short' accepts no jobs: its state is INACTIVE [launch.partition]\n"
            "note: --partition=short is from e.yaml:partition\n"
            "hint: `sinfo -s` lists the partitions\n");
}

TEST_F(PrecheckTest, NothingIsSaidOfLimitsThatMayNotHold) {
  plan_.node.count = 4;
  direct("partition", "short");
  for (const auto* option : {"qos", "clusters"}) {
    direct(option, "other");
    EXPECT_EQ(judged(), "") << option;
    plan_.slurm.directives.pop_back();
  }
  direct("time", "20:00");
  direct("time-min", "05:00");
  plan_.node.count = 2;
  EXPECT_EQ(judged(), "");
  plan_.slurm.directives[0].value = "nosuch";  // sbatch says that
  EXPECT_EQ(judged(), "");
  facts_.partitions.clear();
  plan_.slurm.directives[0].value = "short";
  EXPECT_EQ(judged(), "");
}

TEST_F(PrecheckTest, PathsThatAreNotThere) {
  plan_.roles[0].workdir_origin = "e.yaml:4:10";
  facts_.paths["/project"] = PathKind::missing;
  add_role("eval", "/project", "./eval.sh");
  plan_.roles[1].workdir_origin = "e.yaml:4:10";
  facts_.paths["/project"] = PathKind::missing;
  add_role("engine", "/serve", "bin/serve");
  add_role("tool", "/serve", "/serve/tool.sh");
  facts_.paths["/serve/tool.sh"] = PathKind::other;
  add_role("ray", "/serve", "/opt/ray/bin/ray");
  EXPECT_EQ(
      judged(),
      "error: engine: '/serve/bin/serve' does not exist (command: e.yaml:5:14) [launch.program]\n\n"
      "error: tool: '/serve/tool.sh' is not executable (command: e.yaml:5:14) [launch.program]\n"
      "hint: make it executable with chmod +x\n\n"
      "error: learner, eval: the working directory '/project' (e.yaml:4:10) does not exist "
      "[launch.workdir]\n\n"
      "3 errors\n"
      "note: ray: '/opt/ray/bin/ray' does not exist on this machine: check that it exists on the nodes\n");
}

TEST_F(PrecheckTest, AProgramOfAVenv) {
  plan_.roles[0].venv = "/venvs/a";
  plan_.roles[0].command = {"/venvs/a/bin/python"};
  EXPECT_EQ(judged(), "");  // the venv is not there either, which is said of the venv
  facts_.paths["/venvs/a"] = PathKind::folder;
  EXPECT_EQ(judged(),
            "error: learner: '/venvs/a/bin/python' does not exist (command: e.yaml:5:14) [launch.program]\n");
  facts_.paths["/venvs/a/bin/python"] = PathKind::program;
  EXPECT_EQ(judged(), "");
}

TEST_F(PrecheckTest, WhatOnlyANodeKnowsIsNotLookedFor) {
  add_role("engine", "${node.scratch}/x", "run.sh");
  add_role("other", "/project", "${env.HOME}/run.sh");
  add_role("python", "/project", "python");
  add_role("spawned", "/gone", "");
  plan_.roles.back().command.clear();
  EXPECT_EQ(named_paths(plan_), (std::vector<std::string>{"/project", "/project", "/project", "/gone"}));
  facts_.paths["/gone"] = PathKind::missing;
  EXPECT_EQ(judged(), "");
}

TEST_F(PrecheckTest, WhatIsInAContainerIsNotLookedForAndItsImageIs) {
  auto& role = plan_.roles.front();
  role.command = {"/opt/conda/bin/python"};
  role.wrapper = {"/opt/apptainer", "exec", "--nv", "a.sif"};
  role.wrapper_origin = "e.yaml:7:14";
  EXPECT_EQ(named_paths(plan_), (std::vector<std::string>{"/project", "/opt/apptainer", "/project/a.sif"}));
  EXPECT_EQ(
      judged(),
      "error: learner: '/project/a.sif' does not exist (wrapper: e.yaml:7:14) [launch.image]\n"
      "note: learner: '/opt/apptainer' does not exist on this machine: check that it exists on the nodes\n");
  facts_.paths["/project/a.sif"] = PathKind::folder;  // a sandbox
  facts_.paths["/opt/apptainer"] = PathKind::program;
  EXPECT_EQ(judged(), "");
}

}  // namespace
}  // namespace nlaunch::launch
