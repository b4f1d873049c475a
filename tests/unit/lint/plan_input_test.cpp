#include "lint/plan_input.h"

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;
using Kind = plan::EnvOp::Kind;

plan::EnvOp op(std::string name, std::string value, Kind kind = Kind::set) {
  plan::EnvOp one;
  one.kind = kind;
  one.name = std::move(name);
  one.value = std::move(value);
  one.origin = "a.yaml:3:5";
  return one;
}

plan::Role role(std::string name, std::vector<plan::EnvOp> env = {}) {
  plan::Role one;
  one.name = std::move(name);
  one.kind = RoleKind::learner;
  one.env = std::move(env);
  return one;
}

plan::Plan plan_of(std::vector<plan::Role> roles) {
  plan::Plan one;
  one.roles = std::move(roles);
  return one;
}

/// "NAME=VALUE", "NAME?" for a value that is not known, "-NAME" for an unset; "(...)" under a condition.
Texts settings_of(const std::vector<Setting>& settings) {
  Texts out;
  for (const auto& one : settings) {
    auto text = one.unset ? "-" + one.name : one.name + (one.value ? "=" + *one.value : "?");
    out.push_back(one.sure ? text : "(" + text + ")");
  }
  return out;
}

Texts settings_of(const plan::Plan& plan, const PlanFacts& facts = {}) {
  return settings_of(plan_input(plan, facts).environments.at(0).settings);
}

TEST(PlanInput, ARoleKnowsWhoIsOnItsGpus) {
  auto plan = plan_of({role("learner"), role("engine"), role("judge")});
  plan.roles[1].share_gpus_with = {"learner"};
  plan.roles[1].gpu_memory = 0.45;
  plan.roles[1].command = {"vllm", "serve"};
  plan.roles[1].command_origin = "a.yaml:7:3";
  const auto input = plan_input(plan, {});
  EXPECT_EQ(input.environments[0].shares_gpus_with, "engine");
  EXPECT_EQ(input.environments[1].shares_gpus_with, "learner");
  EXPECT_EQ(input.environments[2].shares_gpus_with, "");
  EXPECT_EQ(input.environments[1].gpu_memory, 0.45);
  EXPECT_EQ(input.environments[1].command, (Texts{"vllm", "serve"}));
  EXPECT_EQ(input.environments[1].command_span.line, 7U);
}

TEST(PlanInput, WhatAPlanSaysOfItsNodes) {
  auto plan = plan_of({role("learner")});
  plan.node.count = 4;
  plan.node.gpu_model = "GH200";
  plan.node.nic_kind = "cxi";
  PlanFacts facts;
  facts.readings = {{"train.py", "text"}};
  const auto input = plan_input(plan, facts);
  EXPECT_TRUE(input.plan);
  EXPECT_EQ(input.nodes, 4U);
  EXPECT_EQ(input.gpu, "GH200");
  EXPECT_EQ(input.nics, "cxi");
  EXPECT_FALSE(input.slurm);
  EXPECT_TRUE(input.steps.empty());
  ASSERT_EQ(input.readings.size(), 1U);
  EXPECT_EQ(input.readings[0].name, "train.py");
  ASSERT_EQ(input.environments.size(), 1U);
  EXPECT_EQ(input.environments[0].name, "learner");
  EXPECT_EQ(input.environments[0].kind, RoleKind::learner);
  EXPECT_EQ(input.environments[0].cleaned_by, "");
  EXPECT_FALSE(input.environments[0].plan_passes);
  EXPECT_FALSE(input.environments[0].wrapper_span);
}

TEST(PlanInput, UnderSlurmThereIsAStepWithItsOptions) {
  auto plan = plan_of({});
  plan.scheduler = "slurm";
  plan.slurm.srun = {"--network=disable_rdzv_get", "--mpi=none"};
  const auto input = plan_input(plan, {});
  EXPECT_TRUE(input.slurm);
  ASSERT_EQ(input.steps.size(), 1U);
  ASSERT_EQ(input.steps[0].options.size(), 2U);
  EXPECT_EQ(input.steps[0].options[0].text, "--network=disable_rdzv_get");
  EXPECT_EQ(input.steps[0].options[1].text, "--mpi=none");
  EXPECT_FALSE(input.steps[0].open_ended);
}

TEST(PlanInput, EachOperationBecomesASetting) {
  auto masked = op("HF_TOKEN", "abc");
  masked.masked = true;
  EXPECT_EQ(
      settings_of(plan_of({role("a", {op("A", "1"), op("B", "", Kind::unset), op("C", "2", Kind::prepend),
                                      op("D", "3", Kind::append), op("E", "4", Kind::fallback),
                                      op("F", "${run.dir}/x"), op("G", "$HOME"), masked})})),
      (Texts{"A=1", "-B", "C?", "D?", "E=4", "F?", "G=$HOME", "HF_TOKEN?"}));
}

TEST(PlanInput, AFallbackCountsWhereNobodySetIt) {
  EXPECT_EQ(settings_of(plan_of({role("a", {op("A", "1"), op("A", "2", Kind::fallback), op("A", "3"),
                                            op("B", "4", Kind::fallback), op("B", "5", Kind::fallback)})})),
            (Texts{"A=1", "A=3", "B=4"}));
}

TEST(PlanInput, WhatNlaunchSetsItselfIsLeftOut) {
  auto own = op("RANK", "0");
  own.layer = plan::Layer::nlaunch;
  EXPECT_EQ(settings_of(plan_of({role("a", {own, op("RANK", "1", Kind::fallback)})})), Texts{"RANK=1"});
}

TEST(PlanInput, ConditionsAreDecidedAsFarAsTheyCanBe) {
  auto many = op("A", "1");
  many.when.nodes = *VersionRange::parse(">1");
  auto other = op("B", "1");
  other.when.gpu = "H100";
  auto arch = op("C", "1");
  arch.when.arch = "aarch64";
  auto kind = op("D", "1");
  kind.when.kind = RoleKind::engine;
  auto library = op("E", "1");
  library.when.library = {{"nccl", *VersionRange::parse(">=2.27")}};
  auto plan = plan_of({role("a", {many, other, arch, kind, library, op("A", "2", Kind::fallback)})});
  EXPECT_EQ(settings_of(plan), (Texts{"(E=1)", "A=2"}));
  plan.node.count = 2;
  plan.node.gpu_model = "H100";
  plan.node.arch = "aarch64";
  plan.roles[0].kind = RoleKind::engine;
  PlanFacts facts;
  facts.library_versions = {{"nccl", "2.27.5"}};
  EXPECT_EQ(settings_of(plan, facts), (Texts{"A=1", "B=1", "C=1", "D=1", "E=1"}));
  facts.library_versions = {{"nccl", "2.26.2"}};
  EXPECT_EQ(settings_of(plan, facts), (Texts{"A=1", "B=1", "C=1", "D=1"}));
}

SourceSpan span_of(const std::string& origin, const PlanFacts& facts = {}) {
  auto one = op("NCCL_A", "1");
  one.origin = origin;
  return plan_input(plan_of({role("a", {one})}), facts).environments.at(0).settings.at(0).span;
}

TEST(PlanInput, AnOriginIsAPlaceOrAName) {
  const auto place = span_of("dir/a.yaml:12:5");
  EXPECT_EQ(place.where(), "dir/a.yaml:12:5");
  EXPECT_EQ(place.length, 6U);
  EXPECT_EQ(span_of("a.yaml:1:5").length, 6U);
  for (const auto* name : {"--env learner:A=1", "nlaunch", "", "a:b", "a:1", "a.yaml:0:5", "a.yaml:5:0",
                           "a.yaml:x:5", "a.yaml:5:x"}) {
    const auto span = span_of(name);
    EXPECT_EQ(span.where(), name);
    EXPECT_EQ(span.line, 0U) << name;
    EXPECT_EQ(span.column, 0U) << name;
    EXPECT_EQ(span.length, 1U) << name;
  }
  EXPECT_EQ(span_of(":1:2").where(), ":1:2");
  EXPECT_EQ(span_of(":1:2").line, 1U);
}

TEST(PlanInput, TheFilesOfAPlanAreReadOnce) {
  std::vector<std::string> asked;
  PlanFacts facts;
  facts.source = [&](const std::string& name) -> std::shared_ptr<const SourceFile> {
    asked.push_back(name);
    return name == "a.yaml" ? a_file(name, "text") : nullptr;
  };
  auto second = op("B", "1");
  second.origin = "a.yaml:4:1";
  auto gone = op("C", "1");
  gone.origin = "gone.yaml:1:1";
  auto typed = op("D", "1");
  typed.origin = "--env";
  const auto input = plan_input(plan_of({role("a", {op("A", "1"), second, gone, typed, typed})}), facts);
  EXPECT_EQ(asked, (Texts{"a.yaml", "gone.yaml"}));
  const auto& settings = input.environments.at(0).settings;
  EXPECT_EQ(settings[0].span.file->text, "text");
  EXPECT_EQ(settings[0].span.file, settings[1].span.file);
  EXPECT_EQ(settings[2].span.file->name, "gone.yaml");
  EXPECT_EQ(settings[2].span.file->text, "");
  EXPECT_EQ(settings[3].span.file, settings[4].span.file);
  ASSERT_EQ(input.files.size(), 2U);
  EXPECT_EQ(input.files[0]->name, "a.yaml");
  EXPECT_EQ(input.files[1]->name, "gone.yaml");
}

/// "NCCL 2.27.5, PyTorch 2.9.1".
std::string releases(const plan::Role& one, const PlanFacts& facts) {
  std::string out;
  const auto input = plan_input(plan_of({one}), facts);
  for (const auto& [owner, release] : input.environments.at(0).releases) {
    out += (out.empty() ? "" : ", ") + owner + " " + release.str();
  }
  return out;
}

TEST(PlanInput, WheelsOfTheVenvTellReleases) {
  auto learner = role("a");
  learner.venv = "/venv";
  PlanFacts facts;
  facts.wheels["/venv"] = {
      {"nvidia_nccl_cu12", "2.27.5"}, {"torch", "2.9.1+cu128"}, {"vllm", "0.11.0"}, {"ray", "2.54.0"},
      {"torchvision", "0.24.0"},      {"nvidia_nccl", "x"}};
  EXPECT_EQ(releases(learner, facts), "NCCL 2.27.5, PyTorch 2.9.1, Ray 2.54.0, vLLM 0.11.0");
  facts.wheels["/venv"] = {{"nvidia_nccl_cu12x", "2.27.5"}, {"vllm_cu12", "0.11.0"}, {"my_torch", "1.0"}};
  EXPECT_EQ(releases(learner, facts), "NCCL 2.27.5, vLLM 0.11.0");
  learner.venv = "/other";
  EXPECT_EQ(releases(learner, facts), "");
}

TEST(PlanInput, APreloadedLibraryCountsBeforeTheWheel) {
  auto learner = role("a");
  learner.venv = "/venv";
  PlanFacts facts;
  facts.wheels["/venv"] = {{"nvidia_nccl_cu12", "2.27.5"}};
  facts.library_versions = {{"nccl", "2.28.9"}, {"other", "1.0"}};
  EXPECT_EQ(releases(learner, facts), "NCCL 2.27.5");
  learner.preload = {"other"};
  EXPECT_EQ(releases(learner, facts), "NCCL 2.27.5");
  learner.preload = {"other", "nccl"};
  EXPECT_EQ(releases(learner, facts), "NCCL 2.28.9");
  facts.library_versions = {{"nccl", "unknown"}};
  EXPECT_EQ(releases(learner, facts), "NCCL 2.27.5");
  facts.library_versions.clear();
  EXPECT_EQ(releases(learner, facts), "NCCL 2.27.5");
  EXPECT_EQ(plan_input(plan_of({learner}), facts).environments.at(0).preload, (Texts{"other", "nccl"}));
}

TEST(PlanInput, AWrapperSetsAndTakesAway) {
  auto one = role("a", {op("A", "1")});
  one.wrapper = {"apptainer", "exec", "--cleanenv", "--env", "B=2,C=${run.dir}", "image.sif"};
  one.wrapper_origin = "a.yaml:7:3";
  const auto input = plan_input(plan_of({one}), {});
  const auto& environment = input.environments.at(0);
  EXPECT_EQ(settings_of(environment.settings), (Texts{"A=1", "B=2", "C?"}));
  EXPECT_EQ(environment.settings[1].span.where(), "a.yaml:7:3");
  EXPECT_EQ(environment.wrapper_span.where(), "a.yaml:7:3");
  EXPECT_EQ(environment.wrapper_span.length, 1U);
  EXPECT_EQ(environment.cleaned_by, "--cleanenv");
  EXPECT_TRUE(environment.plan_passes);
  one.wrapper = {"bwrap", "--clearenv"};
  const auto cleared = plan_input(plan_of({one}), {}).environments.at(0);
  EXPECT_EQ(cleared.cleaned_by, "--clearenv");
  EXPECT_FALSE(cleared.plan_passes);
}

TEST(PlanInput, WhatModulesSetIsKnownForCertain) {
  PlanFacts facts;
  facts.modules = {op("NCCL_A", "1"), op("NCCL_B", "", Kind::unset)};
  EXPECT_EQ(settings_of(plan_input(plan_of({}), facts).from_modules), (Texts{"NCCL_A=1", "-NCCL_B"}));
}

TEST(PlanInput, OfSeveralFilesOfNcclTheFirstWins) {
  PlanFacts facts;
  facts.conf = {a_file("/home/me/.nccl.conf", "NCCL_A=1\n#\nNCCL_B=2\n"),
                a_file("/etc/nccl.conf", "NCCL_B=3\nNCCL_C=4\nNCCL_C=5\n")};
  const auto input = plan_input(plan_of({}), facts);
  EXPECT_EQ(settings_of(input.conf), (Texts{"NCCL_A=1", "NCCL_B=2", "NCCL_C=4"}));
  EXPECT_EQ(input.conf[1].span.where(), "/home/me/.nccl.conf:3:1");
  ASSERT_EQ(input.files.size(), 2U);
  EXPECT_EQ(input.files[1]->name, "/etc/nccl.conf");
}

plan::Group group(std::string name, std::vector<std::uint32_t> processes) {
  plan::Group one;
  one.name = std::move(name);
  one.kind = plan::GroupKind::weight_sync;
  for (const auto process : processes) one.members.push_back({process, 0});
  return one;
}

TEST(PlanInput, GroupsAreThoseOfRolesThatLoadOneLibrary) {
  auto plan = plan_of({role("learner"), role("engine"), role("other")});
  for (const std::uint32_t of : {0U, 0U, 1U, 2U}) plan.processes.emplace_back().role = of;
  plan.groups = {group("weight sync", {3, 0, 1, 2}), group("learner world", {0, 1}), group("two", {2, 1})};
  auto by_gloo = group("gloo", {0, 2});
  by_gloo.backend = Backend::gloo;
  auto of_node = group("node 0", {0, 2});
  of_node.kind = plan::GroupKind::node;
  plan.groups.insert(plan.groups.end(), {by_gloo, of_node});
  using Groups = std::vector<std::pair<std::string, std::vector<std::size_t>>>;
  EXPECT_EQ(plan_input(plan, {}).groups, (Groups{{"weight sync", {0, 1, 2}}, {"two", {0, 1}}}));
}

}  // namespace
}  // namespace nlaunch::lint
