#include "session/node_worker.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/exit_code.h"
#include "launch/run_dir/run_folder.h"

namespace nlaunch::session {
namespace {

namespace fs = std::filesystem;

/// Workers of this machine for plans of CPU slots.
class NodeWorkerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "nlaunch-worker-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    plan_.name = "test";
    plan_.node.cpu_slots = true;
    plan_.node.scratch = folder_.string();
    plan::Role role;
    role.name = "engine";
    role.kind = RoleKind::engine;
    role.command = {"true", "${self.ports.http}"};
    role.workdir = folder_.string();
    role.count = 1;
    role.ports = {"http"};
    plan_.roles.push_back(role);
    plan_.processes.push_back({0, 0, -1, 0, 0, 1, 0, {}, {20102}});
  }
  void TearDown() override { fs::remove_all(folder_); }

  launch::RunPaths paths() {
    auto paths = launch::make_run_folder(folder_, "test").value();
    EXPECT_TRUE(launch::make_attempt_folder(paths, 0));
    return paths;
  }
  NodeWorker::Options options() { return {.environment = environment_, .machine = machine_}; }
  /// What it writes when its node is bound.
  fs::path record(const launch::RunPaths& paths) {
    return paths.attempt / ("bound." + machine_.get_for(plan_).value().host + ".json");
  }

  fs::path folder_;
  plan::Plan plan_;
  std::vector<std::string> environment_{"PATH=/usr/bin:/bin"};
  launch::MachineSource machine_{launch::Install{"/no/nlaunch", "/no/probe", "/no/scope.so", ""}};
};

TEST_F(NodeWorkerTest, BindsAloneAndLeavesNoScratchFolder) {
  const auto where = paths();
  fs::path scratch;
  {
    NodeWorker worker(plan_, options());
    const auto refused = worker.bind_alone(where, false);
    ASSERT_FALSE(refused) << render(refused->why);
    scratch = worker.node().scratch;
    EXPECT_TRUE(fs::is_directory(scratch));
    EXPECT_TRUE(fs::is_regular_file(record(where)));
    EXPECT_EQ(worker.node().processes.at(0).argv.at(1), std::to_string(worker.ports().back()));
  }
  EXPECT_FALSE(fs::exists(scratch));
}

TEST_F(NodeWorkerTest, TwoThatLiveHaveNoPortInCommon) {
  NodeWorker first(plan_, options());
  NodeWorker second(plan_, options());
  ASSERT_TRUE(first.claim_ports());
  ASSERT_TRUE(second.claim_ports());
  EXPECT_NE(first.ports(), second.ports());
}

TEST_F(NodeWorkerTest, ARecordThatCannotBeWrittenIsNoted) {
  const auto where = paths();
  fs::create_directory(record(where));
  NodeWorker worker(plan_, options());
  const auto refused = worker.bind_alone(where, false);
  ASSERT_FALSE(refused) << render(refused->why);
  ASSERT_EQ(worker.node().notes.size(), 1U);
  EXPECT_TRUE(worker.node().notes.front().contains(record(where).string())) << worker.node().notes.front();
}

TEST_F(NodeWorkerTest, AFolderThatCannotBeMadeIsNoMistakeInTheExperiment) {
  const auto where = paths();
  fs::remove_all(where.attempt / "env");
  std::ofstream(where.attempt / "env") << "a file\n";
  NodeWorker worker(plan_, options());
  const auto refused = worker.bind_alone(where, false);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->exit_code, exit_code::internal);
  EXPECT_TRUE(refused->why.first_message().contains((where.attempt / "env").string()))
      << refused->why.first_message();
  EXPECT_FALSE(fs::exists(launch::scratch_of(plan_, 0, where.id)));
}

TEST_F(NodeWorkerTest, AMistakeInTheExperimentIsOne) {
  plan_.roles[0].command = {"no-such-program"};
  NodeWorker worker(plan_, options());
  const auto refused = worker.bind_alone(paths(), false);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->exit_code, exit_code::bad_input);
  EXPECT_TRUE(refused->why.first_message().starts_with("engine: ")) << refused->why.first_message();
}

TEST_F(NodeWorkerTest, AnotherNodesListHasToFitThePlan) {
  NodeWorker worker(plan_, options());
  ASSERT_TRUE(worker.claim_ports());
  const auto refused = worker.bind(paths(), {{"a", "127.0.0.1"}}, false);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->why.first_message(), "nodes.json does not have every port of the plan's 1 node");
}

}  // namespace
}  // namespace nlaunch::session
