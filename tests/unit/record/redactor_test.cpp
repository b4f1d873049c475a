#include "record/redactor.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace nlaunch::record {
namespace {

using Kind = Redactor::Kind;

TEST(Redactor, TheSameNameIsTheSameEverywhere) {
  Redactor redactor;
  redactor.add(Kind::host, "nid001");
  redactor.add(Kind::host, "nid0012");
  redactor.add(Kind::user, "alice");
  redactor.add(Kind::home, "/home/alice");
  redactor.add(Kind::account, "brics.u5x");
  EXPECT_EQ(redactor.redact("nid001:12 [0] nid0012 bound.nid001.json trace_nid001_0"),
            "node-1:12 [0] node-2 bound.node-1.json trace_node-1_0");
  EXPECT_EQ(redactor.redact("/home/alice/x alice@nid0012 --account=brics.u5x malice"),
            "/home-1/x user-1@node-2 --account=account-1 malice");
  EXPECT_EQ(redactor.redact("xnid001 nid001x"), "xnid001 nid001x");
  const auto counts = redactor.counts();
  ASSERT_EQ(counts.size(), 4U);
  EXPECT_EQ(counts[0].kind, "host names");
  EXPECT_EQ(counts[0].names, 2U);
  EXPECT_EQ(counts[0].times, 5U);
}

TEST(Redactor, AHostWithItsDomainIsOneHost) {
  Redactor redactor;
  redactor.add(Kind::host, "login1.cluster.example.org");
  EXPECT_EQ(redactor.redact("login1 login1.cluster.example.org gw.cluster.example.org"),
            "node-1 node-1 gw.domain-1");
}

TEST(Redactor, TakesAddressesOfNetworksAlone) {
  Redactor redactor;
  EXPECT_EQ(redactor.redact("10.1.2.3:29500 10.1.2.4 10.1.2.3 fe80::1%eth0 2001:db8:0:1::7"),
            "ip-1:29500 ip-2 ip-1 ip-3%eth0 ip-4");
  for (const std::string text : {"127.0.0.1:80", "0.0.0.0", "::1", "12:34:56", "std::vector c10d::add",
                                 "00000000:3B:00.0", "1.2.3.400", "2.28.9"})
    EXPECT_EQ(redactor.redact(text), text);
}

TEST(Redactor, SomeNamesAreNobodys) {
  Redactor redactor;
  redactor.add(Kind::user, "root");
  redactor.add(Kind::home, "/root");
  redactor.add(Kind::home, "/");
  redactor.add(Kind::host, "localhost");
  redactor.add(Kind::host, "10.0.0.1");
  redactor.add(Kind::user, "");
  EXPECT_EQ(redactor.redact("root rank /root / localhost"), "root rank /root / localhost");
}

}  // namespace
}  // namespace nlaunch::record
