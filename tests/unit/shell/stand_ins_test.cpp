#include "shell/stand_ins.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "shell/pipes.h"
#include "shell/trace.h"

namespace nlaunch::shell {
namespace {

const OwnFiles kOwn{"/own"};

RecordRequest request_on(std::uint32_t nodes) {
  RecordRequest request;
  request.script = "/job/a.sh";
  request.allocation.nodes = nodes;
  return request;
}

bool has_of_slurm(const RecordRequest& request) {
  return std::ranges::any_of(environment_of(request, kOwn),
                             [](const auto& entry) { return entry.starts_with("SLURM"); });
}

TEST(StandIns, ALoginNodeAndAPlatformKnowNothingOfSlurm) {
  auto request = request_on(2);
  request.variables = {"A=1"};
  EXPECT_TRUE(has_of_slurm(request));
  request.in_job = false;
  EXPECT_FALSE(has_of_slurm(request));
  request.in_job = true;
  request.per_node = true;
  EXPECT_FALSE(has_of_slurm(request));
  // Each node has variables of its own.
  EXPECT_EQ(value_of(environment_of(request, kOwn), "A"), std::nullopt);
}

TEST(StandIns, WhoSubmitsTheJobAndWhereAreMarkers) {
  const auto environment = environment_of(request_on(1), kOwn);
  EXPECT_EQ(value_of(environment, "USER"), Allocation::kUser);
  EXPECT_EQ(value_of(environment, "SLURM_JOB_USER"), Allocation::kUser);
  EXPECT_EQ(value_of(environment, "HOME"), Allocation::kHome);
  EXPECT_EQ(value_of(environment, "SLURM_SUBMIT_HOST"), Allocation::kLoginHost);
  EXPECT_EQ(value_of(environment, "SLURM_CLUSTER_NAME"), Allocation::kCluster);
}

TEST(StandIns, AnArrayIsKnownWholeToItsTask) {
  auto request = request_on(1);
  request.allocation.array = {2, 4, 6};
  request.allocation.array_task = 4;
  const auto environment = environment_of(request, kOwn);
  EXPECT_EQ(value_of(environment, "SLURM_ARRAY_TASK_ID"), "4");
  EXPECT_EQ(value_of(environment, "SLURM_ARRAY_TASK_COUNT"), "3");
  EXPECT_EQ(value_of(environment, "SLURM_ARRAY_TASK_MIN"), "2");
  EXPECT_EQ(value_of(environment, "SLURM_ARRAY_TASK_MAX"), "6");
}

TEST(StandIns, EachNodeHasItsNumbersInWordsAndVariables) {
  auto request = request_on(2);
  request.variables = {"R={node} of {nodes}"};
  request.per_node = true;
  EXPECT_EQ(
      script_of_nodes({"a.sh", "{host}", "{first}", "{other}"}, request),
      "export NLAUNCH_RECORDED_STEP=0\n"
      "(export NLAUNCH_RECORDED_TASK=0.0.0.0 HOSTNAME=rec-node-0 'R=0 of 2'; exec /bin/bash a.sh rec-node-0 "
      "rec-node-0 '{other}')\n"
      "(export NLAUNCH_RECORDED_TASK=1.0.1.1 HOSTNAME=rec-node-1 'R=1 of 2'; exec /bin/bash a.sh rec-node-1 "
      "rec-node-0 '{other}')\n"
      "exit 0\n");
}

TEST(StandIns, AProgramKnowsItsTask) {
  EXPECT_EQ(task_of({"A=1", "NLAUNCH_RECORDED_TASK=3.1.5.2"}), (Task{3, 1, 5, 2}));
  EXPECT_EQ(task_of({"A=1"}), std::nullopt);
  EXPECT_EQ(launcher_of({"NLAUNCH_RECORDED_STEP=7"}), 7U);
  EXPECT_EQ(launcher_of({}), std::nullopt);
}

TEST(StandIns, TheRecordersOwnFolderIsInNoText) {
  EXPECT_EQ(without_own("/own/bin:/usr/bin", kOwn), "/usr/bin");
  EXPECT_EQ(without_own("/a:/own/bin", kOwn), "/a");
  EXPECT_EQ(without_own("/own/bin/python -m x", kOwn), "/rec/own/python -m x");
}

TEST(Tasks, AreComparedByTheirNumbers) {
  const Task task{1, 0, 1};
  for (const auto* text :
       {"'[' 1 -eq 5 ']'", "[[ 1 == 7 ]]", "test 1 -lt 4", "case $SLURM_NODEID in", "(( RANK % 4 == 0 ))"})
    EXPECT_TRUE(compares_tasks(text, task, 20)) << text;
  for (const auto* text :
       {"'[' 1 -eq 0 ']'", "'[' 1 -eq 30 ']'", "[[ 3 == 7 ]]", "case $MODEL in", "echo 1 5", "(( a == 5 ))"})
    EXPECT_FALSE(compares_tasks(text, task, 20)) << text;
}

TEST(Pipes, TheShellReadsWhatNobodyPassesOn) {
  Pipes pipes;
  ProgramStart tee;
  tee.files = {{0, "pipe:[1]"}, {1, "/log"}};
  pipes.note(tee);
  ProgramStart sort;
  sort.files = {{0, "pipe:[2]"}, {1, "pipe:[3]"}};
  pipes.note(sort);
  EXPECT_FALSE(pipes.is_read_by_shell("pipe:[1]"));
  EXPECT_TRUE(pipes.is_read_by_shell("pipe:[2]"));
  EXPECT_FALSE(pipes.is_read_by_shell("/file"));
}

TEST(Pipes, ALineMayOnlyShowWhatItReads) {
  for (const auto* line : {R"x(echo "Python: $(python --version)")x", R"x(  printf "%s\n" $(a (b) c) d)x",
                           R"x(echo $(python -c "import a; print(a.b())" 2>&1))x"})
    EXPECT_TRUE(only_shows(line)) << line;
  for (const auto* line :
       {"A=$(python --version)", "echo $(a) > file", "echo $(a) | tee file", "echo $(a); b", "train $(a)"})
    EXPECT_FALSE(only_shows(line)) << line;
}

}  // namespace
}  // namespace nlaunch::shell
