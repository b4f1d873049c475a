#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config/experiment.h"
#include "config/site.h"
#include "plan/build.h"
#include "plan/json.h"

// Whole plans of the experiments in configs/, as tests/golden/plan has them (tests/cli/plan_test.py rewrites
// those).
namespace nlaunch::plan {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kSource = NLAUNCH_SOURCE_DIR;

struct Case {
  const char* golden;
  const char* experiment;
  const char* site;
  std::vector<const char*> settings{};  ///< of the site
};

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class GoldenPlans : public testing::Test {
 protected:
  GoldenPlans() { fs::current_path(kSource); }
  ~GoldenPlans() override { fs::current_path(before_); }

  static Plan plan_of(const Case& one) {
    std::vector<config::Setting> settings;
    for (const auto* setting : one.settings)
      settings.push_back(config::parse_setting("--set", setting).value());
    const auto site = config::load_site(one.site, {}, settings);
    const auto experiment = config::load_experiment(one.experiment, {}, {});
    EXPECT_TRUE(site) << (site ? "" : render(site.error()));
    EXPECT_TRUE(experiment) << (experiment ? "" : render(experiment.error()));
    const auto plan = build(*experiment, *site, {"x86_64", {}, {{"HOME", "/home/user"}}}, {});
    EXPECT_TRUE(plan) << (plan ? "" : render(plan.error()));
    return plan.value_or(Plan{});
  }

  static std::string without_source(std::string text) {
    const auto source = kSource.string();
    for (auto at = text.find(source); at != std::string::npos; at = text.find(source))
      text.replace(at, source.size(), "$SOURCE");
    return text;
  }

 private:
  fs::path before_ = fs::current_path();
};

const std::vector<Case> kCases{
    {"grpo.isambard", "configs/grpo.yaml", "site-profiles/isambard.yaml"},
    {"grpo-32b.isambard", "configs/grpo-32b.yaml", "site-profiles/isambard.yaml"},
    {"grpo-235b.isambard", "configs/grpo-235b.yaml", "site-profiles/isambard.yaml"},
    {"grpo-ray.isambard", "configs/grpo-ray.yaml", "site-profiles/isambard.yaml"},
    {"weight-sync.nvlink-box",
     "configs/weight-sync.yaml",
     "site-profiles/nvlink-box.yaml",
     {"site.node.gpus=4", "site.node.arch=x86_64"}},
    {"weight-sync-vllm.nvlink-box",
     "configs/weight-sync-vllm.yaml",
     "site-profiles/nvlink-box.yaml",
     {"site.node.gpus=4", "site.node.arch=x86_64"}},
    {"bench-targets.nvlink-box",
     "configs/bench/targets.yaml",
     "site-profiles/nvlink-box.yaml",
     {"site.node.gpus=4", "site.node.arch=x86_64"}},
    {"bench-tp-inference.nvlink-box",
     "configs/bench/tp-inference.yaml",
     "site-profiles/nvlink-box.yaml",
     {"site.node.gpus=4", "site.node.arch=x86_64"}},
    {"bench-weight-sync.nvlink-box",
     "configs/bench/weight-sync.yaml",
     "site-profiles/nvlink-box.yaml",
     {"site.node.gpus=4", "site.node.arch=x86_64"}},
    {"quickstart.local", "configs/quickstart.yaml", "site-profiles/local.yaml", {"site.node.arch=x86_64"}},
};

TEST_F(GoldenPlans, AreTheSame) {
  for (const auto& one : kCases) {
    const auto made = json::parse(without_source(to_json(plan_of(one)).dump()));
    const auto golden =
        json::parse(text_of(kSource / "tests/golden/plan" / (std::string(one.golden) + ".json")));
    EXPECT_TRUE(made == golden) << one.golden << ": " << json::diff(golden, made).dump(1).substr(0, 2000);
  }
}

TEST_F(GoldenPlans, AreTheSameAfterTheWayThroughAFile) {
  for (const auto& one : kCases) {
    const auto text = to_json(plan_of(one)).dump();
    const auto plan = from_json(text, "plan.json");
    ASSERT_TRUE(plan) << one.golden << ": " << render(plan.error());
    EXPECT_EQ(to_json(*plan).dump(), text) << one.golden;
  }
}

/// What is said of a plan of which one value is another.
std::string said_of(const json& plan, const std::string& pointer, const json& value) {
  auto other = plan;
  other[json::json_pointer(pointer)] = value;
  const auto read = from_json(other.dump(), "plan.json");
  return read ? "" : read.error().first_message();
}

TEST_F(GoldenPlans, ThatAreDamagedAreRefused) {
  const auto plan = json::parse(to_json(plan_of(kCases[0])).dump());
  const auto nodes = plan["node"]["count"].get<unsigned>();
  const auto gpus = plan["node"]["gpus"].get<unsigned>();
  EXPECT_EQ(said_of(plan, "/processes/0/node", nodes - 1), "");
  EXPECT_NE(said_of(plan, "/processes/0/node", nodes).find(fmt::format("unknown node {}", nodes)),
            std::string::npos);
  EXPECT_EQ(said_of(plan, "/processes/0/gpus/0", gpus - 1), "");
  EXPECT_NE(said_of(plan, "/processes/0/gpus/0", gpus).find(fmt::format("a node has no GPU {}", gpus)),
            std::string::npos);
  EXPECT_NE(said_of(plan, "/processes/0/role", "nobody"), "");
  EXPECT_EQ(said_of(plan, "/groups/0/members/0/0", plan["processes"].size() - 1), "");
  EXPECT_NE(said_of(plan, "/groups/0/members/0/0", plan["processes"].size()).find("a group names no process"),
            std::string::npos);
  EXPECT_NE(said_of(plan, "/groups/0/kind", "friends"), "");
  EXPECT_NE(said_of(plan, "/roles", 3), "");
  EXPECT_NE(said_of(plan, "/format", "another plan"), "");
  EXPECT_NE(said_of(plan, "/version", 1000), "");
}

}  // namespace
}  // namespace nlaunch::plan
