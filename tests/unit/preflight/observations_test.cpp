#include "preflight/observations.h"

#include <gtest/gtest.h>

#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

using namespace std::chrono_literals;

TEST(Texts, ATimeHasTheUnitThatFits) {
  EXPECT_EQ(time_text(0), "0.0 µs");
  EXPECT_EQ(time_text(9.514e-5), "95.1 µs");
  EXPECT_EQ(time_text(0.000999), "999.0 µs");
  EXPECT_EQ(time_text(0.001), "1.00 ms");
  EXPECT_EQ(time_text(0.999), "999.00 ms");
  EXPECT_EQ(time_text(1), "1.00 s");
  EXPECT_EQ(time_text(61.5), "61.50 s");
  EXPECT_EQ(seconds_text(20s), "20 s");
  EXPECT_EQ(seconds_text(1500ms), "1.5 s");
}

TEST(Texts, AnAgeHasTheUnitThatFits) {
  EXPECT_EQ(age_text(40), "40 s");
  EXPECT_EQ(age_text(119), "119 s");
  EXPECT_EQ(age_text(120), "2 min");
  EXPECT_EQ(age_text(7199), "120 min");
  EXPECT_EQ(age_text(7200), "2 h");
  EXPECT_EQ(age_text(172799), "48 h");
  EXPECT_EQ(age_text(172800), "2 days");
}

TEST(Texts, ASizeIsRoundedAndThatOfAMessageIsExact) {
  EXPECT_EQ(size_text(1023), "0 kiB");
  EXPECT_EQ(size_text(3000), "2 kiB");
  EXPECT_EQ(size_text((1U << 20U) - 1), "1023 kiB");
  EXPECT_EQ(size_text(1U << 20U), "1.0 MiB");
  EXPECT_EQ(size_text((1U << 30U) - 1), "1024.0 MiB");
  EXPECT_EQ(size_text(1U << 30U), "1.0 GiB");
  EXPECT_EQ(size_text(3U << 29U), "1.5 GiB");
  EXPECT_EQ(message_text(8), "8 B");
  EXPECT_EQ(message_text(1U << 20U), "1MiB");
  EXPECT_EQ(message_text((1U << 20U) + 1), "1048577 B");
}

TEST(Rows, TheWorstDecides) {
  const auto fails = failed("a", "b", "c", "d", {"e"});
  const auto warns = warned("a", "b", "c", "d", {"e", Responsible::admin});
  EXPECT_EQ(worst({}), Status::pass);
  EXPECT_EQ(worst({passed("a", "b", "c"), skipped("a", "b", "c")}), Status::pass);
  EXPECT_EQ(worst({passed("a", "b", "c"), warns}), Status::warn);
  EXPECT_EQ(worst({warns, unknown("a", "b", "c")}), Status::unknown);
  EXPECT_EQ(worst({warns, unknown("a", "b", "c"), fails}), Status::fail);
  EXPECT_EQ(line(fails), "fail | b | c | d | e | user");
  EXPECT_EQ(line(warns), "warn | b | c | d | e | admin");
  EXPECT_EQ(line(passed("a", "b", "c", "d")), "pass | b | c | d |  | ");
}

TEST(VariableOf, IsTheProcesssOwn) {
  Machine machine(1, 1);
  machine.set(1, "EMPTY", "");
  EXPECT_EQ(variable_of(machine.node.processes[0], "PATH"), "/usr/bin:/bin");
  EXPECT_EQ(variable_of(machine.node.processes[0], "EMPTY"), std::nullopt);
  EXPECT_EQ(variable_of(machine.node.processes[1], "EMPTY"), "");
}

TEST(NodeObservations, KnowWhetherThePlanIsOfTheMachine) {
  Machine machine(2, 1);
  machine.plan.experiment = "grpo.yaml";
  EXPECT_TRUE(machine.of_node().for_the_machine());
  machine.plan.sources = {"site.yaml", "grpo.yaml"};
  EXPECT_FALSE(machine.of_node().for_the_machine());
  const auto observations = machine.of_node();
  const auto first = observations.first_of_roles();
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first.at(0)->name, "learner.0");
  EXPECT_EQ(first.at(1)->name, "engine.0");
}

TEST(Observations, NameTheNodesOfRanks) {
  const Machine machine(3, 0);
  auto observations = machine.observations();
  observations.ranks[1].node = 1;
  GroupTrial all{"all", plan::GroupKind::world, Backend::nccl, {0, 1, 2}, {}, false, ""};
  GroupTrial one{"one", plan::GroupKind::node, Backend::nccl, {0, 2}, {}, false, ""};
  EXPECT_EQ(observations.hosts_of({0, 1, 2}), Lines{}) << "there is one machine alone";
  observations.hosts = {"a", "b"};
  EXPECT_EQ(observations.hosts_of({1, 0, 2, 1}), (Lines{"b", "a"}));
  EXPECT_TRUE(observations.crosses_nodes(all));
  EXPECT_FALSE(observations.crosses_nodes(one));
  EXPECT_EQ(observations.host_of(all), Lines{});
  EXPECT_EQ(observations.host_of(one), Lines{"a"});
}

}  // namespace
}  // namespace nlaunch::preflight
