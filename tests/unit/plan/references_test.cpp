#include "plan/references.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace nlaunch::plan {
namespace {

/// "role.addrs" as documents write it: "${role.NAME.addrs}".
std::string as_written(std::string name) {
  if (name.starts_with("role.")) name.insert(5, "NAME.");
  if (name == "self.ports") name += ".NAME";
  if (name.ends_with(".0.ports")) name += ".PORT";
  return "${" + name + "}";
}

TEST(References, TheDocumentHasEveryName) {
  std::ifstream file(NLAUNCH_SOURCE_DIR "/docs/experiment.md");
  std::stringstream text;
  text << file.rdbuf();
  const auto document = text.str();
  ASSERT_NE(document.find("${vars.NAME}"), std::string::npos);
  for (const auto& name : reference_names()) {
    // The second of a pair stands in the first one's row, without braces.
    const auto bare = "`" + name.substr(name.rfind('.') + 1) + "`";
    EXPECT_TRUE(document.find(as_written(name)) != std::string::npos ||
                document.find(bare) != std::string::npos)
        << as_written(name);
  }
}

TEST(References, HaveEachNameOnce) {
  auto names = reference_names();
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

struct OneNode : testing::Test {
  OneNode() {
    plan.name = "demo";
    plan.weight_sync.port = 29600;
    plan.weight_sync.world_size = 3;
    Role learner;
    learner.name = "learner";
    learner.count = 1;
    learner.rendezvous = Rendezvous::torch;
    Role engine;
    engine.name = "engine";
    engine.count = 2;
    engine.ports = {"http"};
    plan.roles = {learner, engine};
    plan.processes.resize(3);
    for (std::uint32_t i = 0; i < 2; ++i) {
      auto& process = plan.processes[i + 1];
      process.role = 1;
      process.index = i;
      process.node = i;
      process.ports = {static_cast<std::uint16_t>(8000 + i)};
    }
    node.scratch = "/tmp/scratch";
    node.libraries["nccl"].path = "/opt/libnccl.so.2";
  }
  std::string resolve(const std::string& text, const Process* process = nullptr) {
    mistakes = {};
    return NodeNames(plan, node, {"10.0.0.1", "10.0.0.2"},
                     {"id-1", "/runs/demo/id-1", "/runs/demo/id-1/attempt-0"})
        .resolve(text, process, mistakes);
  }

  Plan plan;
  BoundNode node;
  Diagnostics mistakes;
};

TEST_F(OneNode, KnowsTheRunAndWhereEverybodyIs) {
  EXPECT_EQ(resolve("${role.engine.addrs} ${role.engine.hosts} ${role.engine.count}"),
            "10.0.0.1:8000,10.0.0.2:8001 10.0.0.1,10.0.0.2 2");
  EXPECT_EQ(
      resolve("${run.name} ${run.id} ${run.dir} ${run.attempt_dir} ${node.scratch} ${library.nccl.path}"),
      "demo id-1 /runs/demo/id-1 /runs/demo/id-1/attempt-0 /tmp/scratch /opt/libnccl.so.2");
  EXPECT_EQ(resolve("${role.engine.addrs_file} ${role.learner.env_file}"),
            "/runs/demo/id-1/attempt-0/addrs/engine /runs/demo/id-1/attempt-0/env/learner.json");
  EXPECT_EQ(resolve("${weight_sync.host}:${weight_sync.port} ${weight_sync.world_size}"), "10.0.0.1:29600 3");
  EXPECT_TRUE(mistakes.empty());
}

TEST_F(OneNode, KnowsOneProcessOfARole) {
  EXPECT_EQ(resolve("http://${role.engine.1.host}:${role.engine.1.ports.http} ${role.learner.0.host}"),
            "http://10.0.0.2:8001 10.0.0.1");
  EXPECT_TRUE(mistakes.empty());
  resolve("${role.engine.2.host}");
  EXPECT_EQ(mistakes.first_message(),
            "the site's libraries, in '${role.engine.2.host}': '${role.engine.2.host}': role 'engine' has 2 "
            "processes, "
            "'engine.0' to 'engine.1'");
}

TEST_F(OneNode, HasAFolderForCachesThatIsMadeWhenItIsNamed) {
  char folder[] = "/tmp/nlaunch-cache-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  node.cache = std::string(folder) + "/cache";
  EXPECT_EQ(resolve("${node.scratch}"), "/tmp/scratch");
  EXPECT_FALSE(std::filesystem::exists(node.cache));
  EXPECT_EQ(resolve("${node.cache}/vllm"), node.cache + "/vllm");
  EXPECT_TRUE(std::filesystem::is_directory(node.cache));
  std::filesystem::remove_all(folder);
  std::ofstream(folder) << "a file where the folder was";
  resolve("${node.cache}");
  EXPECT_EQ(mistakes.first_message(),
            "the site's libraries, in '${node.cache}': '${node.cache}': cannot make the folder '" +
                node.cache + "': Not a directory");
  std::filesystem::remove(folder);
}

TEST_F(OneNode, KnowsTheProcessWhoseTextItIs) {
  EXPECT_EQ(
      resolve("${self.name} ${self.index} ${self.node} ${self.host} ${self.ports.http}", &plan.processes[2]),
      "engine.1 1 1 10.0.0.2 8001");
  EXPECT_TRUE(mistakes.empty());
}

TEST_F(OneNode, SaysWhatCannotBeTold) {
  EXPECT_EQ(resolve("${self.name}"), "${self.name}");
  ASSERT_EQ(mistakes.items().size(), 1U);
  EXPECT_EQ(mistakes.first_message(),
            "the site's libraries, in '${self.name}': '${self.name}' is not known on this node");
  resolve("${newest:/no/such/*.pt}", &plan.processes[1]);
  ASSERT_EQ(mistakes.items().size(), 1U);
  EXPECT_EQ(mistakes.first_message(), "engine.0, in '${newest:/no/such/*.pt}': nothing fits '/no/such/*.pt'");
  EXPECT_EQ(resolve("${newest:/no/such/*.pt:-none}", &plan.processes[1]), "none");
}

}  // namespace
}  // namespace nlaunch::plan
