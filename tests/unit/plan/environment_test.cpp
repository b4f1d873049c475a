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

}  // namespace
}  // namespace nlaunch::plan
