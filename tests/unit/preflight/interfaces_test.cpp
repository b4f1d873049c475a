#include <gtest/gtest.h>

#include "unit/preflight/host_fixture.h"

namespace nlaunch::preflight {
namespace {

/// A node with lo, hsn0 and hsn1, whose learner has this variable.
Lines told(Machine machine, const std::string& name, const std::string& value) {
  machine.set(0, name, value);
  machine.plan.roles[0].env.push_back(
      {plan::EnvOp::Kind::set, name, value, plan::Layer::role, "e.yaml:7:11", {}});
  auto observations = machine.of_node();
  observations.interfaces = {"lo", "hsn0", "hsn1"};
  return lines(run_check("interfaces", observations));
}

TEST(CheckInterfaces, TakesPrefixesAndListsForNccl) {
  for (const auto* value : {"hsn", "hsn0", "eth,hsn1", "=hsn0", "^docker"})
    EXPECT_EQ(told(Machine(1, 0), "NCCL_SOCKET_IFNAME", value),
              Lines{"pass | learner | NCCL_SOCKET_IFNAME=" + std::string(value) + " (e.yaml:7:11) |  |  | "});
}

TEST(CheckInterfaces, RefusesOneThatDoesNotExist) {
  EXPECT_EQ(
      told(Machine(1, 0), "NCCL_SOCKET_IFNAME", "ib0"),
      Lines{"fail | learner | NCCL_SOCKET_IFNAME=ib0 (e.yaml:7:11) names no interface of this node | one of "
            "lo, hsn0, hsn1 | write one of them there, or its prefix, or remove the variable | user"});
  EXPECT_TRUE(told(Machine(1, 0), "NCCL_SOCKET_IFNAME", "=hsn").front().starts_with("fail"));
  EXPECT_EQ(
      told(Machine(1, 0), "GLOO_SOCKET_IFNAME", "hsn"),
      Lines{"fail | learner | GLOO_SOCKET_IFNAME=hsn (e.yaml:7:11) names no interface of this node | one of "
            "lo, hsn0, hsn1 | write one of them there, or remove the variable | user"});
}

TEST(CheckInterfaces, SaysNothingOfWhatIsNotSetOrNotKnown) {
  EXPECT_EQ(told(Machine(1, 0), "NCCL_DEBUG", "INFO"), Lines{});
  Machine machine(1, 0);
  machine.set(0, "NCCL_SOCKET_IFNAME", "ib0");
  EXPECT_EQ(lines(run_check("interfaces", machine.of_node())), Lines{});
}

}  // namespace
}  // namespace nlaunch::preflight
