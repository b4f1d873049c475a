#include "launch/bind/node_addresses.h"

#include <gtest/gtest.h>

namespace nlaunch::launch {
namespace {

/// A learner and two engines on each of two nodes; all wish for the same ports.
plan::Plan two_nodes() {
  plan::Plan plan;
  plan.node.count = 2;
  plan.roles.resize(2);
  plan.roles[0].rendezvous = Rendezvous::torch;
  for (std::uint32_t node = 0; node < 2; ++node) {
    for (const std::uint32_t role : {0U, 1U, 1U}) {
      plan::Process process{};
      process.role = role;
      process.node = node;
      if (role == 1) process.ports = {20100, 20200};
      plan.processes.push_back(std::move(process));
    }
  }
  return plan;
}

TEST(NodeAddresses, EachNodeLearnsThePortsOfAll) {
  auto first = two_nodes();
  first.weight_syncs.front().port = 1;
  first.roles[0].rendezvous_port = 2;
  first.processes[1].ports = {3, 4};
  first.processes[2].ports = {5, 6};
  auto second = two_nodes();
  second.processes[4].ports = {7, 8};
  second.processes[5].ports = {9, 10};
  const NodeAddresses told{{"n0", "10.0.0.1", ports_of(first, 0)}, {"n1", "10.0.0.2", ports_of(second, 1)}};
  EXPECT_EQ(nodes_text(told), R"([{"address":"10.0.0.1","host":"n0","ports":[1,2,3,4,5,6]},)"
                              R"({"address":"10.0.0.2","host":"n1","ports":[7,8,9,10]}])"
                              "\n");
  const auto read = read_nodes(nodes_text(told));
  ASSERT_TRUE(read);
  for (auto* plan : {&first, &second}) {
    ASSERT_TRUE(take_ports(*plan, *read));
    EXPECT_EQ(plan->weight_syncs.front().port, 1);
    EXPECT_EQ(plan->roles[0].rendezvous_port, 2);
    EXPECT_EQ(plan->processes[2].ports, (std::vector<std::uint16_t>{5, 6}));
    EXPECT_EQ(plan->processes[4].ports, (std::vector<std::uint16_t>{7, 8}));
    EXPECT_EQ(plan->processes[5].ports, (std::vector<std::uint16_t>{9, 10}));
  }
}

TEST(NodeAddresses, ADirectoryThatLacksANodeOrAPortIsRefused) {
  auto plan = two_nodes();
  NodeAddresses told{{"n0", "10.0.0.1", ports_of(plan, 0)}, {"n1", "10.0.0.2", ports_of(plan, 1)}};
  told[1].ports.pop_back();
  const auto fewer = take_ports(plan, told);
  ASSERT_FALSE(fewer);
  EXPECT_EQ(fewer.error().first_message(), "nodes.json does not have every port of the plan's 2 nodes");
  told.pop_back();
  EXPECT_FALSE(take_ports(plan, told));
  for (const char* text : {"", "{", "[1]", R"([{"host":"n0"}])", R"([{"host":1,"address":"a","ports":[]}])"})
    EXPECT_FALSE(read_nodes(text)) << text;
}

}  // namespace
}  // namespace nlaunch::launch
