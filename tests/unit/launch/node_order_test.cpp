#include "launch/job/node_order.h"

#include <gtest/gtest.h>

#include <set>

#include "base/text.h"

namespace nlaunch::launch {
namespace {

using Names = std::vector<std::string>;

Allocation of(Names nodes) {
  return {"17", std::move(nodes), 8, {}, {}};
}

/// A plan of so many nodes. Roles are added with `add`.
plan::Plan of_nodes(std::uint32_t nodes) {
  plan::Plan plan;
  plan.scheduler = "slurm";
  plan.node.count = nodes;
  return plan;
}

/// A role with a process on each node from `first` on; `size`: nodes of a replica, 0: it has none.
void add(plan::Plan& plan, const std::string& name, std::uint32_t first, std::uint32_t nodes,
         std::uint32_t size, std::optional<Closeness> within) {
  plan::Role role;
  role.name = name;
  role.count = nodes;
  if (size > 0) role.replica = {size, 1};
  if (within) role.keep_together = {*within, std::nullopt, name + ".yaml:1:1"};
  for (std::uint32_t i = 0; i < nodes; ++i) {
    plan::Process process;
    process.role = static_cast<std::uint32_t>(plan.roles.size());
    process.index = i;
    process.node = first + i;
    plan.processes.push_back(process);
  }
  plan.roles.push_back(std::move(role));
}

TEST(ChooseNodes, WithoutPlacesKeepsTheOrderOfTheAllocation) {
  auto plan = of_nodes(3);
  add(plan, "engine", 1, 2, 2, std::nullopt);
  EXPECT_EQ(choose_nodes(plan, of({"c", "a", "b", "d"}), {}), (Names{"c", "a", "b"}));
  EXPECT_EQ(choose_nodes(plan, of({"c", "a", "b", "d"}), {"a"}), (Names{"c", "b", "d"}));
  EXPECT_EQ(choose_nodes(plan, of({"c", "a", "b"}), {"a"}).error(),
            "job 17 has 2 nodes left, but the plan uses 3");
}

TEST(ChooseNodes, PutsNodesOfOneSwitchBesideEachOther) {
  const Places places{
      {"a", {"", "top.left"}}, {"b", {"", "top.right"}}, {"c", {"", "top.left"}}, {"d", {"", "top.right"}}};
  EXPECT_EQ(choose_nodes(of_nodes(4), of({"a", "b", "c", "d"}), {}, places), (Names{"a", "c", "b", "d"}));
}

TEST(ChooseNodes, KeepsAReplicaInOneDomainWhoeverElseNeedsThePlace) {
  auto plan = of_nodes(5);
  add(plan, "learner", 0, 1, 0, std::nullopt);
  add(plan, "engine", 1, 4, 2, Closeness::domain);
  const Places places{
      {"a", {"x", ""}}, {"b", {"x", ""}}, {"c", {"y", ""}}, {"d", {"y", ""}}, {"e", {"y", ""}}};
  const auto nodes = choose_nodes(plan, of({"a", "b", "c", "d", "e"}), {}, places);
  ASSERT_TRUE(nodes) << nodes.error();
  EXPECT_EQ((std::set{(*nodes)[1], (*nodes)[2]}), (std::set<std::string>{"a", "b"}))
      << "the smaller one first";
  EXPECT_EQ((std::set{(*nodes)[3], (*nodes)[4]}), (std::set<std::string>{"c", "d"}));
  EXPECT_EQ((*nodes)[0], "e");
}

TEST(ChooseNodes, LeavesASpareWhereNothingFitsIt) {
  auto plan = of_nodes(2);
  add(plan, "engine", 0, 2, 2, Closeness::domain);
  const Places places{{"a", {"x", ""}}, {"b", {"y", ""}}, {"c", {"y", ""}}};
  EXPECT_EQ(choose_nodes(plan, of({"a", "b", "c"}), {}, places), (Names{"b", "c"}));
  EXPECT_EQ(choose_nodes(plan, of({"a", "b", "c"}), {"c"}, places).error(),
            "'engine.0' must be within one NVLink domain (keep_together, engine.yaml:1:1) and needs 2 "
            "nodes: in job 17 no NVLink domain has more than 1 for it");
  EXPECT_EQ(choose_nodes(plan, of({"a", "b"}), {}, {{"a", {}}, {"b", {}}}).error(),
            "'engine.0' must be within one NVLink domain (keep_together, engine.yaml:1:1), but no node of "
            "job 17 reports which one it is in");
}

TEST(ChooseNodes, GoesBackWhereTheFirstChoiceLeavesNoRoom) {
  // Best fit puts the three into the place of four; only five and four-with-one leave room for all.
  auto plan = of_nodes(9);
  add(plan, "a", 0, 3, 3, Closeness::domain);
  add(plan, "b", 3, 4, 2, Closeness::domain);
  add(plan, "c", 7, 2, 2, Closeness::domain);
  Places places;
  Names names;
  for (int i = 0; i < 9; ++i) {
    names.push_back("n" + std::to_string(i));
    places[names.back()] = {i < 4 ? "x" : "y", ""};
  }
  const auto nodes = choose_nodes(plan, of(names), {}, places);
  ASSERT_TRUE(nodes) << nodes.error();
  for (const auto& [first, size] : {std::pair(0, 3), {3, 2}, {5, 2}, {7, 2}}) {
    for (int i = first; i < first + size; ++i)
      EXPECT_EQ(places[(*nodes)[static_cast<std::size_t>(i)]].domain,
                places[(*nodes)[static_cast<std::size_t>(first)]].domain);
  }
}

TEST(ChooseNodes, AReplicaIsAtOneSwitchWhereNoDomainIsKnown) {
  auto plan = of_nodes(3);
  add(plan, "engine", 1, 2, 2, std::nullopt);
  const Places places{{"a", {"", "s"}}, {"b", {"", "s"}}, {"c", {"", "t"}}};
  EXPECT_EQ(choose_nodes(plan, of({"a", "b", "c"}), {}, places), (Names{"c", "a", "b"}));
}

TEST(ChooseNodes, SetsThatShareNodesMakePlacesOfOneSizeDiffer) {
  auto plan = of_nodes(5);
  add(plan, "learner", 0, 2, 0, Closeness::switch_);
  add(plan, "reward", 2, 2, 0, Closeness::switch_);
  add(plan, "engine", 1, 4, 0, Closeness::switch_);
  plan.processes.resize(4);
  for (const auto node : {1U, 4U}) {
    plan::Process process;
    process.role = 2;
    process.node = node;
    plan.processes.push_back(process);
  }
  const Places places{{"n1", {"", "a"}}, {"n2", {"", "a"}}, {"n3", {"", "a"}},
                      {"n4", {"", "a"}}, {"n5", {"", "b"}}, {"n6", {"", "b"}}};
  const auto nodes = choose_nodes(plan, of({"n1", "n2", "n3", "n4", "n5", "n6"}), {}, places);
  ASSERT_TRUE(nodes) << nodes.error();
  EXPECT_EQ((std::set{(*nodes)[2], (*nodes)[3]}), (std::set<std::string>{"n5", "n6"}));
}

TEST(ChooseNodes, WhatAnotherEnclosesComesFirst) {
  auto plan = of_nodes(4);
  add(plan, "learner", 0, 4, 0, Closeness::domain);
  add(plan, "engine", 0, 2, 2, Closeness::switch_);
  const Places places{{"n1", {"d", "a"}}, {"n2", {"d", "b"}}, {"n3", {"d", "b"}}, {"n4", {"d", "b"}}};
  const auto nodes = choose_nodes(plan, of({"n1", "n2", "n3", "n4"}), {}, places);
  ASSERT_TRUE(nodes) << nodes.error();
  EXPECT_EQ((std::set{(*nodes)[0], (*nodes)[1]}), (std::set<std::string>{"n2", "n3"}));
}

TEST(ChooseNodes, OnlyTheReplicaWithoutRoomGivesWay) {
  auto plan = of_nodes(6);
  add(plan, "engine", 0, 6, 2, std::nullopt);
  const Places places{{"n1", {"", "a"}}, {"n2", {"", "b"}}, {"n3", {"", "b"}},
                      {"n4", {"", "c"}}, {"n5", {"", "d"}}, {"n6", {"", "d"}}};
  const auto nodes = choose_nodes(plan, of({"n1", "n2", "n3", "n4", "n5", "n6"}), {}, places);
  ASSERT_TRUE(nodes) << nodes.error();
  EXPECT_EQ(*nodes, (Names{"n2", "n3", "n5", "n6", "n1", "n4"}));
}

TEST(ChooseNodes, WhatNobodyAskedForGivesWay) {
  auto plan = of_nodes(2);
  add(plan, "engine", 0, 2, 2, std::nullopt);
  EXPECT_EQ(choose_nodes(plan, of({"a", "b"}), {}, {{"a", {"x", ""}}, {"b", {"y", ""}}}), (Names{"a", "b"}));
}

TEST(ChooseNodes, ARoleMayHaveItsDomainWithinTheSwitchOfAnother) {
  auto plan = of_nodes(4);
  add(plan, "learner", 0, 4, 0, Closeness::switch_);
  add(plan, "engine", 2, 2, 2, Closeness::domain);
  Places places{{"a", {"x", "s"}}, {"b", {"y", "t"}}, {"c", {"x", "s"}},
                {"d", {"z", "s"}}, {"e", {"w", "s"}}, {"f", {"y", "t"}}};
  const auto nodes = choose_nodes(plan, of({"a", "b", "c", "d", "e", "f"}), {}, places);
  ASSERT_TRUE(nodes) << nodes.error();
  EXPECT_EQ((std::set(nodes->begin(), nodes->end())), (std::set<std::string>{"a", "c", "d", "e"}));
  EXPECT_EQ((std::set{(*nodes)[2], (*nodes)[3]}), (std::set<std::string>{"a", "c"}));
}

TEST(ChooseNodes, OfTenThousandNodesIsQuick) {
  auto plan = of_nodes(10'000);
  add(plan, "engine", 0, 9'984, 16, Closeness::domain);
  Places places;
  Names names;
  for (int i = 0; i < 10'000; ++i) {
    names.push_back("n" + std::to_string(i));
    places[names.back()] = {"d" + std::to_string(i % 555), ""};
  }
  // 555 domains of 18 have room for 555 replicas of 16, and 624 are asked for.
  EXPECT_FALSE(choose_nodes(plan, of(names), {}, places));
}

TEST(ChooseNodes, OfMoreSetsThanTheStackHoldsIsInOnePass) {
  constexpr std::uint32_t kNodes = 20'004;
  auto plan = of_nodes(kNodes);
  add(plan, "engine", 0, kNodes, 2, Closeness::domain);
  add(plan, "judge", 0, kNodes, 2, Closeness::domain);  // on the same nodes: they have their places then
  Places places;
  Names names;
  for (std::uint32_t i = 0; i < kNodes; ++i) {
    names.push_back("n" + std::to_string(i));
    places[names.back()] = {i % 2 == 0 ? "x" : "y", ""};
  }
  const auto nodes = choose_nodes(plan, of(names), {}, places);
  ASSERT_TRUE(nodes) << nodes.error();
  for (std::size_t i = 0; i < kNodes; i += 2)
    ASSERT_EQ(places[(*nodes)[i]].domain, places[(*nodes)[i + 1]].domain) << i;
}

TEST(PlaceOf, IsWhatNvmlAndSlurmSay) {
  Machine machine;
  const std::vector<std::string> tree{"SLURM_TOPOLOGY_ADDR=top.leaf3.n7",
                                      "SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node"};
  EXPECT_EQ(place_of(tree, machine).at_switch, "top.leaf3");
  EXPECT_EQ(place_of(tree, machine).domain, "");
  EXPECT_EQ(
      place_of({"SLURM_TOPOLOGY_ADDR=b01.n7", "SLURM_TOPOLOGY_ADDR_PATTERN=block.node"}, machine).domain,
      "b01");
  machine.gpus = {{"0", "", "", "", "uuid.1"}, {"1", "", "", "", "uuid.1"}};
  EXPECT_EQ(
      place_of({"SLURM_TOPOLOGY_ADDR=b01.n7", "SLURM_TOPOLOGY_ADDR_PATTERN=block.node"}, machine).domain,
      "uuid.1");
  machine.gpus[1].domain = "uuid.2";
  EXPECT_EQ(place_of(tree, machine).domain, "");
}

TEST(ParsePlaces, LeavesOutWhatIsNone) {
  const auto places =
      parse_places("module loaded\n" + place_line("n1", {"x", "s"}) + "{\"node\": 3}\n[1]\n{\"node\":");
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places.at("n1").domain, "x");
  EXPECT_EQ(places.at("n1").at_switch, "s");
}

TEST(NeedsPlaces, OnlyWhereTheyMatterAndSomebodyMayKnow) {
  EXPECT_FALSE(needs_places(of_nodes(4), {}));
  EXPECT_FALSE(needs_places(of_nodes(4), {"SLURM_TOPOLOGY_ADDR_PATTERN=node"}));
  EXPECT_TRUE(needs_places(of_nodes(4), {"SLURM_TOPOLOGY_ADDR_PATTERN=switch.node"}));
  EXPECT_FALSE(needs_places(of_nodes(1), {"SLURM_TOPOLOGY_ADDR_PATTERN=switch.node"}));
  auto plan = of_nodes(4);
  add(plan, "engine", 0, 2, 0, Closeness::switch_);
  EXPECT_TRUE(needs_places(plan, {}));
}

TEST(HostsFor, AreThoseOfTheSameComponentThatAreNotOut) {
  const auto plan = of_nodes(2);
  EXPECT_EQ(hosts_for(plan, of({"a", "b", "c", "d"}), {"c"}, {}, 1, "b"), (Names{"a", "b", "d"}));
  EXPECT_EQ(hosts_for(plan, of({"a", "b"}), {}, {}, 7, "b"), Names{}) << "no node of the plan";
  auto pools = of_nodes(3);
  pools.slurm.components = {{{"train"}, 1, 0, {}}, {{"serve"}, 2, 0, {}}};
  auto job = of({"a", "b", "c", "d"});
  job.components = {{2, 0}, {2, 0}};
  EXPECT_EQ(hosts_for(pools, job, {}, {}, 0, "a"), (Names{"a", "b"}));
  EXPECT_EQ(hosts_for(pools, job, {}, {}, 2, "d"), (Names{"c", "d"}));
}

TEST(HostsFor, WhatIsKeptTogetherStaysWhereTheOthersAre) {
  auto plan = of_nodes(3);
  add(plan, "engine", 1, 2, 0, Closeness::switch_);
  const Places places{{"a", {"", "left"}}, {"b", {"", "left"}}, {"c", {"", "right"}}, {"d", {"", "left"}}};
  const auto job = of({"a", "b", "c", "d", "e"});
  EXPECT_EQ(hosts_for(plan, job, {}, places, 1, "a"), (Names{"a", "b", "d"}));
  EXPECT_EQ(hosts_for(plan, job, {}, places, 0, "c"), (Names{"a", "b", "c", "d", "e"})) << "it is of no set";
  EXPECT_EQ(hosts_for(plan, job, {}, {}, 1, "a"), Names{"a"}) << "where anything else is, nobody knows";
}

}  // namespace
}  // namespace nlaunch::launch
