#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "unit/preflight/host_fixture.h"

namespace nlaunch::preflight {
namespace {

nlohmann::json name(const std::string& text, const std::string& address, const std::string& interface,
                    bool own = false) {
  nlohmann::json out{{"name", text}, {"addresses", {address}}, {"interface", interface}};
  if (own) out["own"] = true;
  return out;
}

/// A node at 10.0.0.2 that was told these names.
NodeObservations told(const Cluster& cluster, const std::vector<nlohmann::json>& names) {
  auto observations = cluster.with("names", {{"event", "names"}, {"names", names}});
  observations.address = "10.0.0.2";
  return observations;
}

const std::string kSite =
    "name the interface that carries the job's traffic: node.nics.interface in the site profile";
const std::string kOwn =
    "Gloo and Ray use it: set GLOO_SOCKET_IFNAME for the roles, and let /etc/hosts or DNS resolve this "
    "host's name to its address in the cluster";

TEST(CheckNames, PassesAnAddressOfTheSitesInterface) {
  Cluster cluster("cxi");
  cluster.plan.node.interface = "hsn";
  EXPECT_EQ(lines(run_check("names", told(cluster, {name("nid2", "10.0.0.2", "hsn0", true),
                                                    name("10.0.0.1", "10.0.0.1", "hsn0")}))),
            (Lines{"pass | this host's name | nid2 is 10.0.0.2, by hsn0 |  |  | ",
                   "pass | MASTER_ADDR | 10.0.0.1, by hsn0 |  |  | "}));
}

TEST(CheckNames, RefusesLoopbackAndBridges) {
  const Cluster cluster("");
  EXPECT_EQ(
      lines(run_check(
          "names", told(cluster, {name("head", "127.0.1.1", "lo"), name("other", "172.17.0.2", "docker0")}))),
      (Lines{"fail | MASTER_ADDR | head is 127.0.1.1, by lo | an address that the other nodes can reach | " +
                 kSite + " | user",
             "fail | MASTER_ADDR | other is 172.17.0.2, by docker0 | an address that the other nodes can "
             "reach | " +
                 kSite + " | user"}));
}

TEST(CheckNames, WarnsOfAnotherInterface) {
  Cluster cluster("cxi");
  cluster.plan.node.interface = "hsn";
  EXPECT_EQ(lines(run_check("names", told(cluster, {name("head", "192.168.0.1", "nmn0")}))),
            (Lines{"warn | MASTER_ADDR | head is 192.168.0.1, by nmn0 | an address of hsn* | " + kSite +
                   " | user"}));
}

TEST(CheckNames, SaysWhatCannotBeResolved) {
  EXPECT_EQ(lines(run_check("names",
                            told(Cluster(""), {{{"name", "head"}, {"error", "Name or service not known"}}}))),
            (Lines{"fail | MASTER_ADDR | head: Name or service not known | an address that the other nodes "
                   "can reach | " +
                   kSite + " | user"}));
}

TEST(CheckNames, AHostsOwnNameCountsWhereTheSiteHasAnInterface) {
  Cluster cluster("");
  const auto own = name("vm", "127.0.1.1", "lo", true);
  EXPECT_EQ(lines(run_check("names", told(cluster, {own}))), Lines{});
  cluster.plan.node.interface = "hsn";
  EXPECT_EQ(
      lines(run_check("names", told(cluster, {own}))),
      (Lines{"warn | this host's name | vm is 127.0.1.1, by lo | an address of hsn* | " + kOwn + " | user"}));
  cluster.set(0, "GLOO_SOCKET_IFNAME", "hsn0");
  EXPECT_EQ(lines(run_check("names", told(cluster, {own}))), Lines{});
}

TEST(CheckNames, NodesThatAreOneMachineMayMeetThere) {
  const Cluster cluster("");
  auto observations = told(cluster, {name("127.0.0.1", "127.0.0.1", "lo")});
  observations.address = "127.0.0.1";
  EXPECT_EQ(lines(run_check("names", observations)),
            (Lines{"skip | this machine | the nodes are on one machine |  |  | "}));
}

TEST(CheckNames, AsksForEachLeaderOnce) {
  Machine machine(2, 1);
  machine.set(0, "MASTER_ADDR", "10.0.0.1");
  machine.set(1, "MASTER_ADDR", "10.0.0.1");
  EXPECT_EQ(inquiry_of("names").arguments(machine.of_node(), nullptr), (Lines{"10.0.0.1"}));
}

TEST(CheckNames, KnowsTheBridgesOfContainersAndVirtualMachines) {
  const Cluster cluster("");
  for (const auto* interface : {"docker0", "br-1234", "virbr0", "veth12", "cni0", "podman1"})
    EXPECT_EQ(worst(run_check("names", told(cluster, {name("head", "10.0.0.1", interface)}))), Status::fail)
        << interface;
  for (const auto* interface : {"eth0", "bridge", "hsn0", ""})
    EXPECT_EQ(worst(run_check("names", told(cluster, {name("head", "10.0.0.1", interface)}))), Status::pass)
        << interface;
}

TEST(CheckNames, AnAddressWithoutAnInterfaceIsTold) {
  const Cluster cluster("");
  EXPECT_EQ(lines(run_check("names", told(cluster, {name("head", "10.0.0.1", "")}))),
            Lines{"pass | MASTER_ADDR | head is 10.0.0.1 |  |  | "});
}

TEST(CheckNames, WithoutAnAnswerItIsUnknown) {
  const Cluster cluster("");
  EXPECT_TRUE(run_check("names", cluster.of_node()).empty());
  EXPECT_EQ(lines(run_check("names", cluster.without("names", "it did not answer"))),
            Lines{"unknown | this machine | it did not answer |  |  | "});
}

TEST(CheckNames, AllRolesHaveToNameTheirInterface) {
  Machine machine(1, 1);
  machine.plan.node.interface = "hsn";
  auto observations = machine.of_node();
  observations.answers["names"] = {{{"names", nlohmann::json::array({name("vm", "127.0.1.1", "lo", true)})}},
                                   ""};
  observations.address = "10.0.0.2";
  EXPECT_EQ(run_check("names", observations).size(), 1U);
  machine.set(0, "GLOO_SOCKET_IFNAME", "hsn0");
  EXPECT_EQ(run_check("names", observations).size(), 1U);
  machine.set(1, "GLOO_SOCKET_IFNAME", "hsn0");
  EXPECT_TRUE(run_check("names", observations).empty());
}

TEST(CheckNames, AreAskedForOnSeveralNodesAlone) {
  Machine machine(1, 1);
  EXPECT_FALSE(inquiry_of("names").applies(machine.of_node()));
  machine.plan.node.count = 2;
  EXPECT_TRUE(inquiry_of("names").applies(machine.of_node()));
}

}  // namespace
}  // namespace nlaunch::preflight
