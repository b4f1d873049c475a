#include "plan/environment.h"

#include <gtest/gtest.h>

namespace nlaunch::plan {
namespace {

using Kind = EnvOp::Kind;

EnvOp op(Kind kind, std::string name, std::string value, Layer layer = Layer::site, Condition when = {}) {
  return {kind, std::move(name), std::move(value), layer, "here", std::move(when)};
}

VersionRange range(std::string_view text) {
  return VersionRange::parse(text).value();
}

TEST(Environment, LaterWinsAndUnsetActsOnAllBelow) {
  const std::vector<EnvOp> operations{op(Kind::set, "A", "1"), op(Kind::unset, "B", ""),
                                      op(Kind::set, "A", "2", Layer::role)};
  EXPECT_EQ(apply({{"B", "x"}, {"C", "y"}}, operations, {}), (Environment{{"A", "2"}, {"C", "y"}}));
}

TEST(Environment, PrependAndAppendPutOneColonBetween) {
  const std::vector<EnvOp> operations{op(Kind::prepend, "P", "/a"), op(Kind::append, "P", "/z"),
                                      op(Kind::prepend, "Q", "/q")};
  EXPECT_EQ(apply({{"P", "/m"}}, operations, {}), (Environment{{"P", "/a:/m:/z"}, {"Q", "/q"}}));
}

TEST(Environment, AFallbackYieldsToEverybody) {
  const std::vector<EnvOp> operations{op(Kind::fallback, "A", "0", Layer::nlaunch),
                                      op(Kind::fallback, "B", "0", Layer::nlaunch)};
  EXPECT_EQ(apply({{"A", "1"}}, operations, {}), (Environment{{"A", "1"}, {"B", "0"}}));
}

TEST(Environment, AConditionHoldsWhenAllOfItFits) {
  Condition when;
  when.nodes = range(">1");
  when.library.emplace("nccl", range(">=2.27.3"));
  ConditionFacts facts{2, "GH200", "aarch64", RoleKind::learner, {{"nccl", "2.28.9"}}};
  EXPECT_EQ(applies(when, facts).answer, Applicability::Answer::yes);
  facts.library_versions["nccl"] = "2.26.6";
  EXPECT_EQ(applies(when, facts).why, "nccl is 2.26.6, not >=2.27.3");
  facts.library_versions.clear();
  EXPECT_EQ(applies(when, facts).answer, Applicability::Answer::unknown);
  facts.nodes = 1;
  EXPECT_EQ(applies(when, facts).why, "nodes is 1, not >1");
}

TEST(Environment, ExplainTellsEachLayerWithTheWinnerLast) {
  Condition many;
  many.nodes = range(">1");
  const std::vector<EnvOp> operations{op(Kind::set, "A", "site"),
                                      op(Kind::set, "A", "never", Layer::experiment, many),
                                      op(Kind::set, "A", "role", Layer::role)};
  const auto steps = explain("A", {{"A", "shell"}}, operations, {});
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_EQ(steps[0].op.layer, Layer::inherited);
  EXPECT_EQ(steps[1].after, "site");
  EXPECT_EQ(steps[2].applied.why, "nodes is 1, not >1");
  EXPECT_EQ(steps[2].after, "site");
  EXPECT_EQ(steps[3].after, "role");
}

TEST(Environment, WhatALauncherMustOwnIsNotInherited) {
  const auto inherited = inherit({"PATH=/bin", "NCCL_DEBUG=INFO", "LD_PRELOAD=/x.so", "RANK=3",
                                  "SLURM_JOB_ID=1", "SLINGSHOT_VNIS=9", "SLURM_NTASKS_PER_NODE=1",
                                  "LOCAL_RANK=0", "RANKED=1", "PMIX_RANK=0", "no equals sign"});
  EXPECT_EQ(inherited.kept,
            (Environment{{"PATH", "/bin"}, {"RANKED", "1"}, {"SLINGSHOT_VNIS", "9"}, {"SLURM_JOB_ID", "1"}}));
  EXPECT_EQ(inherited.dropped, (std::vector<std::string>{"LD_PRELOAD", "LOCAL_RANK", "NCCL_DEBUG",
                                                         "PMIX_RANK", "RANK", "SLURM_NTASKS_PER_NODE"}));
}

TEST(Environment, DifferenceHoldsWhatChangedAndWhatWent) {
  const auto changes = difference({{"A", "1"}, {"B", "1"}, {"C", "1"}}, {{"A", "1"}, {"B", "2"}, {"D", "1"}},
                                  Layer::modules, "module x");
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(apply({{"A", "1"}, {"B", "1"}, {"C", "1"}}, changes, {}),
            (Environment{{"A", "1"}, {"B", "2"}, {"D", "1"}}));
  EXPECT_EQ(changes[0].origin, "module x");
}

TEST(Environment, EachPartOfAConditionIsHeldAgainstItsFact) {
  const ConditionFacts facts{4, "NVIDIA GH200 120GB", "aarch64", RoleKind::engine, {{"nccl", "2.28.9"}}};
  const auto why = [&](const Condition& when) {
    const auto told = applies(when, facts);
    EXPECT_NE(told.answer, Applicability::Answer::unknown);
    EXPECT_EQ(told.answer == Applicability::Answer::yes, told.why.empty());
    return told.why;
  };
  EXPECT_EQ(why({}), "");
  EXPECT_EQ(why({range("4"), {}, {}, {}, {}}), "");
  EXPECT_EQ(why({range("<4"), {}, {}, {}, {}}), "nodes is 4, not <4");
  EXPECT_EQ(why({{}, "*GH200*", {}, {}, {}}), "");
  EXPECT_EQ(why({{}, "*H100*", {}, {}, {}}), "gpu is 'NVIDIA GH200 120GB', not '*H100*'");
  EXPECT_EQ(why({{}, {}, "aarch*", {}, {}}), "");
  EXPECT_EQ(why({{}, {}, "x86_64", {}, {}}), "arch is 'aarch64', not 'x86_64'");
  EXPECT_EQ(why({{}, {}, {}, RoleKind::engine, {}}), "");
  EXPECT_EQ(why({{}, {}, {}, RoleKind::learner, {}}), "kind is engine, not learner");
  EXPECT_EQ(why({{}, {}, {}, {}, {{"nccl", range(">=2.28")}}}), "");
}

TEST(Environment, AVersionThatIsNotKnownIsNoAnswer) {
  const Condition when{{}, {}, {}, {}, {{"nccl", range(">=2")}}};
  for (const auto& versions : {std::map<std::string, std::string>{}, {{"nccl", ""}}, {{"aws", "2.28"}}}) {
    const auto told = applies(when, {1, "", "", RoleKind::service, versions});
    EXPECT_EQ(told.answer, Applicability::Answer::unknown);
    EXPECT_EQ(told.why, "the version of library 'nccl' is not known here");
  }
  EXPECT_EQ(apply({}, std::vector{op(Kind::set, "A", "1", Layer::site, when)}, {}), Environment{});
}

TEST(Environment, WhatIsAddedToNothingHasNoColon) {
  const std::vector<EnvOp> operations{op(Kind::append, "NEW", "/a"), op(Kind::append, "EMPTY", "/b"),
                                      op(Kind::prepend, "FULL", ""), op(Kind::append, "FULL", "")};
  EXPECT_EQ(apply({{"EMPTY", ""}, {"FULL", "/f"}}, operations, {}),
            (Environment{{"EMPTY", "/b"}, {"FULL", "/f"}, {"NEW", "/a"}}));
}

TEST(Environment, ExplainTellsOfOneVariableAndOfNoOther) {
  Condition of_a_library;
  of_a_library.library.emplace("nccl", range(">2"));
  const std::vector<EnvOp> operations{
      op(Kind::set, "B", "1"), op(Kind::unset, "A", ""), op(Kind::set, "A", "x", Layer::role, of_a_library),
      op(Kind::fallback, "A", "0", Layer::nlaunch), op(Kind::fallback, "A", "1", Layer::nlaunch)};
  const auto steps = explain("A", {{"A", "old"}, {"B", "old"}}, operations, {});
  ASSERT_EQ(steps.size(), 5U);
  EXPECT_EQ(steps[0].op.origin, "the caller's environment");
  EXPECT_EQ(steps[0].op.value, "old");
  EXPECT_EQ(steps[0].after, "old");
  EXPECT_EQ(steps[1].after, std::nullopt);
  EXPECT_EQ(steps[2].applied.answer, Applicability::Answer::unknown);
  EXPECT_EQ(steps[2].after, std::nullopt);
  EXPECT_EQ(steps[3].applied.answer, Applicability::Answer::yes);
  EXPECT_EQ(steps[3].after, "0");
  EXPECT_EQ(steps[4].applied.answer, Applicability::Answer::no);
  EXPECT_EQ(steps[4].applied.why, "it is already set");
  EXPECT_EQ(steps[4].after, "0");
  EXPECT_TRUE(explain("C", {{"A", "old"}}, operations, {}).empty());
}

TEST(Environment, AVariableOfALauncherHasAFamily) {
  EXPECT_EQ(owned_family("NCCL_DEBUG"), "NCCL_*");
  EXPECT_EQ(owned_family("NLAUNCH_ROLE_INDEX"), "NLAUNCH_ROLE*");
  EXPECT_EQ(owned_family("RANK"), "RANK");
  EXPECT_EQ(owned_family("NLAUNCH_TOKEN"), "NLAUNCH_TOKEN");
  for (const auto* free : {"RANK2", "MY_NCCL_DEBUG", "PATH", "NLAUNCH_RUNS", "nccl_debug", ""}) {
    EXPECT_EQ(owned_family(free), "") << free;
    EXPECT_FALSE(owned_by_launcher(free)) << free;
  }
  EXPECT_TRUE(owned_by_launcher("VLLM_PORT"));
  EXPECT_TRUE(owned_by_launcher("CUDA_DEVICE_ORDER"));
}

TEST(Environment, DifferenceKeepsWhatStayed) {
  const auto changes = difference({{"GONE", "1"}, {"KEPT", "1"}, {"NEW", "1"}},
                                  {{"ADDED", "2"}, {"KEPT", "1"}, {"NEW", "2"}}, Layer::modules, "here");
  std::vector<std::string> told;
  for (const auto& one : changes) {
    told.push_back(std::string(name_of(one.kind)) + " " + one.name + "=" + one.value);
    EXPECT_EQ(one.layer, Layer::modules);
    EXPECT_EQ(one.origin, "here");
  }
  EXPECT_EQ(told, (std::vector<std::string>{"set ADDED=2", "set NEW=2", "unset GONE="}));
}

TEST(Environment, EntriesAreNamesAndValues) {
  const auto environment =
      to_environment({"A=1", "B=x=y", "EMPTY=", "=no name", "no equals sign", "A=second"});
  EXPECT_EQ(environment, (Environment{{"A", "1"}, {"B", "x=y"}, {"EMPTY", ""}}));
  EXPECT_EQ(to_entries(environment), (std::vector<std::string>{"A=1", "B=x=y", "EMPTY="}));
}

}  // namespace
}  // namespace nlaunch::plan
