#include "plan/fixed_ports.h"

#include <gtest/gtest.h>

#include "unit/plan/support.h"

namespace nlaunch::plan {
namespace {

using Lines = std::vector<std::string>;

class FixedPorts : public PlanFiles {
 protected:
  static constexpr const char* kHint =
      "`ports: [http]` with ${self.ports.http} gives each process its own port";

  /// What is said of these roles, a line each from line 4 on.
  Lines told(const std::string& roles, const std::string& site = "scheduler: {kind: local}\n",
             std::optional<std::uint32_t> nodes = {}) {
    const auto plan = build_from("roles:\n" + roles, site, {nodes, 0, {}, {}});
    return plan ? plan->warnings : listed(plan.error());
  }
  /// Of two processes of a role with this check.
  Lines checked(const std::string& ready) {
    return told("  s: {kind: service, count: 2, command: [s], ready: " + ready + "}\n");
  }
  /// Of two processes of a role with these further words.
  Lines with_words(const std::string& words) {
    return told("  s: {kind: service, count: 2, command: [s, " + words + "]}\n");
  }
};

TEST_F(FixedPorts, AreThoseOfTheProcesssOwnNode) {
  const auto asked = [](const std::string& port) {
    return Lines{"4:53 s.0 and s.1 on node 0 are checked on the same port, " + port + " -> " + kHint};
  };
  for (const auto* own : {"localhost", "127.0.0.1", "127.9.9.9", "0.0.0.0", "[::1]", "${self.host}"}) {
    EXPECT_EQ(checked("{http: 'http://" + std::string(own) + ":8000/health'}"), asked("8000")) << own;
    EXPECT_EQ(checked("{tcp: '" + std::string(own) + ":8000'}"), asked("8000")) << own;
  }
  for (const auto* other : {"head", "128.0.0.1", "[::2]", "localhost.example"})
    EXPECT_EQ(checked("{tcp: '" + std::string(other) + ":8000'}"), Lines{}) << other;
  EXPECT_EQ(checked("{http: 'http://localhost:8000'}"), asked("8000"));
  EXPECT_EQ(checked("{http: 'http://localhost'}"), asked("80"));
  EXPECT_EQ(checked("{tcp: 'localhost:65535'}"), asked("65535"));
  EXPECT_EQ(checked("{tcp: 'localhost:1'}"), asked("1"));
  EXPECT_EQ(checked("{delay: 1s}"), Lines{});
  EXPECT_EQ(checked("{log: 'http://localhost:8000'}"), Lines{});
  EXPECT_EQ(checked("{tcp: '${self.host}:${env.PORT:-8000}'}"), asked("8000"));
}

TEST_F(FixedPorts, AreWholeNumbersOfACommand) {
  const Lines one{"s.0 and s.1 on node 0 use the same port, 8000: " + std::string(kHint)};
  EXPECT_EQ(with_words("--port=8000"), one);
  EXPECT_EQ(with_words("--port, 8000"), one);
  EXPECT_EQ(with_words("--port, 8000, --host, h"), one);
  EXPECT_EQ(with_words("-x, --port, 8000"), one);
  for (const auto* none : {"--port", "--port=", "--port=0", "--port=65536", "--port=8000x", "--port=x",
                           "--port=99999999999", "--port, '-1'", "--ports=8000", "--ports, 8000", "8000"})
    EXPECT_EQ(with_words(none), Lines{}) << none;
  EXPECT_EQ(with_words("--port=65535").size(), 1U);
  EXPECT_EQ(with_words("--port=1").size(), 1U);
}

TEST_F(FixedPorts, OfACheckedRoleTheCommandIsNotLookedAt) {
  EXPECT_EQ(
      told("  s: {kind: service, count: 2, command: [s, --port=9000], ready: {tcp: 'localhost:8000'}}\n"),
      Lines{std::string("4:66 s.0 and s.1 on node 0 are checked on the same port, 8000 -> ") + kHint});
  EXPECT_EQ(told("  s: {kind: service, count: 2, command: [s, --port=9000], ready: {tcp: 'head:8000'}}\n"),
            Lines{std::string("s.0 and s.1 on node 0 use the same port, 9000: ") + kHint});
}

TEST_F(FixedPorts, OfTwoRolesOnOneNodeBothAreNamed) {
  const auto role = [](const std::string& name, const std::string& port, const std::string& rest = "") {
    return "  " + name + ": {kind: service, command: [s]" + rest + ", ready: {tcp: 'localhost:" + port +
           "'}}\n";
  };
  EXPECT_EQ(told(role("a", "8000") + role("b", "9000") + role("c", "8000")),
            Lines{std::string("6:43 a.0 and c.0 on node 0 are checked on the same port, 8000 -> ") + kHint});
  EXPECT_EQ(told(role("a", "8000") + role("b", "9000")), Lines{});
  EXPECT_EQ(told(role("a", "8000") +
                 "  b: {kind: service, command: [s], ready: {http: 'http://127.0.0.1:8000/'}}\n"),
            Lines{std::string("5:43 a.0 and b.0 on node 0 are checked on the same port, 8000 -> ") + kHint});
  EXPECT_EQ(told(role("a", "8000") + "  b: {kind: learner, command: [t, --port=8000]}\n"), Lines{})
      << "a client's";
  EXPECT_EQ(told(role("a", "8000") + "  b: {kind: service, command: [s, --port=8000]}\n"),
            Lines{std::string("a.0 and b.0 on node 0 use the same port, 8000: ") + kHint});
}

TEST_F(FixedPorts, OnNodesOfTheirOwnNobodyShares) {
  constexpr const char* kSite = "scheduler: {kind: slurm}\nnode: {gpus: 1}\n";
  constexpr const char* kEngines = "  engine: {kind: engine, count: 2, gpus: 1, command: [s, --port=8000]}\n";
  EXPECT_EQ(told(kEngines, kSite, 2), Lines{});
  EXPECT_EQ(told(std::string(kEngines) + "  judge: {kind: service, gpus: 1, command: [s, --port=8000]}\n",
                 kSite, 3),
            Lines{});
  constexpr const char* kNoGpus = "scheduler: {kind: slurm}\nnode: {gpus: 0}\n";
  EXPECT_EQ(told("  judge: {kind: service, command: [s, --port=8000]}\n"
                 "  tool: {kind: service, per: node, command: [s, --port=8000]}\n",
                 kNoGpus, 2),
            Lines{std::string("judge.0 and tool.0 on node 0 use the same port, 8000: ") + kHint});
  EXPECT_EQ(told("  tool: {kind: service, per_node: 2, command: [s, --port=8000]}\n", kNoGpus, 2),
            Lines{std::string("tool.0 and tool.1 on node 0 use the same port, 8000: ") + kHint});
}

TEST_F(FixedPorts, OneCommandMayNameAPortTwice) {
  EXPECT_EQ(told("  s: {kind: service, command: [s, --port=8000, --port=8000]}\n"), Lines{});
  EXPECT_EQ(told("  s: {kind: service, per_node: 2, command: [s, --port=8000, --port=8000]}\n"),
            Lines{std::string("s.0 and s.1 on node 0 use the same port, 8000: ") + kHint});
}

TEST_F(FixedPorts, WhatDoesNotFitIsSaidAlone) {
  EXPECT_EQ(told("  a: {kind: service, count: 2, command: [s], ready: {tcp: 'localhost:8000'}}\n"
                 "  b: {kind: engine, gpus: 2, command: [s]}\n",
                 "scheduler: {kind: slurm}\nnode: {gpus: 1}\n")
                .size(),
            1U);
}

}  // namespace
}  // namespace nlaunch::plan
