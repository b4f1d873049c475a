#include <gtest/gtest.h>

#include "lint/rule.h"
#include "lint/script_scene.h"

namespace nlaunch::lint {
namespace {

Setting set(const char* name, const char* value, bool sure = true) {
  Setting setting;
  setting.name = name;
  setting.value = value;
  setting.sure = sure;
  return setting;
}

std::vector<std::string> found(const Scene& scene) {
  std::vector<std::string> out;
  for (const auto& finding : lint(scene)) out.push_back(std::string(finding.rule) + ": " + finding.what);
  return out;
}

Scene script(const std::string& text) {
  return script_scene(std::make_shared<const SourceFile>(SourceFile{"job.sh", text}));
}

TEST(Rules, EachHasATitleAndAnId) {
  for (const auto& rule : rules()) {
    EXPECT_EQ(find_rule(rule.id), &rule);
    EXPECT_FALSE(rule.title.empty()) << rule.id;
    EXPECT_TRUE(rule.explain.ends_with('.')) << rule.id;
  }
}

TEST(Rules, SharedCache) {
  auto scene = script(
      "export TRITON_CACHE_DIR=/home/me/triton RAY_TMPDIR=/home/me/ray TORCHINDUCTOR_CACHE_DIR=/tmp/x\n");
  scene.shared_file_system = [](const std::string& path) { return path.starts_with("/home") ? "NFS" : ""; };
  EXPECT_EQ(found(scene), (std::vector<std::string>{
                              "shared-cache: TRITON_CACHE_DIR is on a file system that nodes share (NFS)",
                              "shared-cache: RAY_TMPDIR is on a file system that nodes share (NFS)"}));
}

TEST(Rules, ReleaseDiffers) {
  Scene scene;
  scene.plan = true;
  scene.environments = {
      {"learner", RoleKind::learner, {}, {"nccl"}, {}, {}, false, {}, {{"NCCL", Version{{2, 27, 5}}}}},
      {"engine", RoleKind::engine, {}, {}, {}, {}, false, {}, {{"NCCL", Version{{2, 28, 9}}}}}};
  scene.groups = {{"weight sync", {0, 1}}};
  EXPECT_EQ(
      found(scene),
      (std::vector<std::string>{
          "release-differs: weight sync has several releases of NCCL: 2.27.5 in learner, 2.28.9 in engine"}));
  scene.environments[1].releases["NCCL"] = Version{{2, 27, 5}};
  EXPECT_TRUE(found(scene).empty());
}

TEST(Rules, WhatAModuleSetsTooIsTold) {
  Scene scene;
  scene.plan = true;
  auto& environment = scene.environments.emplace_back();
  environment.name = "learner";
  environment.settings.push_back(set("NCCL_DEBUG", "WARN"));
  scene.from_modules.push_back(set("NCCL_DEBUG", "VERSION"));
  EXPECT_EQ(found(scene),
            (std::vector<std::string>{"module-overrides: a module sets NCCL_DEBUG=VERSION too"}));
}

TEST(Environment, ALaterOneWinsAndOneUnderAConditionMayHold) {
  Environment environment;
  environment.settings = {set("A", "1"), set("A", "2", false), set("B", "1", false), set("B", "2")};
  const auto is = [](const char* wanted) {
    return [wanted](const std::string& value) { return value == wanted; };
  };
  EXPECT_EQ(environment.value("A"), "1");
  EXPECT_TRUE(environment.may("A", is("1")));
  EXPECT_TRUE(environment.may("A", is("2")));
  EXPECT_EQ(environment.value("B"), "2");
  EXPECT_FALSE(environment.may("B", is("1")));
  EXPECT_EQ(environment.find("C"), nullptr);
}

}  // namespace
}  // namespace nlaunch::lint
