#include "plan/together.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plan/json.h"
#include "unit/plan/support.h"

namespace nlaunch::plan {
namespace {

constexpr const char* kSite =
    "scheduler: {kind: slurm, directives: {partition: gpu}}\n"
    "node: {gpus: 4}\n"
    "topology: {slurm: block, domain: {nodes: 4}, switch: {nodes: 8}, numa: [0, 0, 1, 1], nics: [a, b, c, "
    "d]}\n";

class KeptTogether : public PlanFiles {
 protected:
  static std::string units(const Plan& plan) {
    std::string out;
    for (const auto& unit : kept_together(plan)) {
      out += unit.name + " " + std::string(name_of(unit.within)) + (unit.origin.empty() ? "?" : "") + ":";
      for (const auto node : unit.nodes) out += " " + std::to_string(node);
      out += "\n";
    }
    return out;
  }
  static std::string option(const Plan& plan, const std::string& name) {
    const auto& all = plan.slurm.directives;
    const auto found = std::ranges::find(all, name, &Directive::name);
    return found == all.end() ? "" : found->value;
  }
};

TEST_F(KeptTogether, IsEachReplicaTheWholeRoleOrSoManyNodes) {
  const auto plan = plan_of(
      "nodes: 12\n"
      "roles:\n"
      "  learner: {kind: learner, count: 16, gpus: 1, rendezvous: torch, command: [t], keep_together: "
      "switch}\n"
      "  engine: {kind: engine, count: 2, replica: {nodes: 2}, gpus: 4, command: [s], keep_together: "
      "domain}\n"
      "  other: {kind: engine, count: 1, replica: {nodes: 2}, gpus: 4, command: [s]}\n"
      "  small: {kind: service, per: node, command: [s], keep_together: {within: domain, nodes: 4}}\n",
      kSite);
  EXPECT_EQ(units(plan),
            "learner switch: 0 1 2 3\n"
            "engine.0 domain: 4 5\n"
            "engine.1 domain: 6 7\n"
            "small (nodes 0-3) domain: 0 1 2 3\n"
            "small (nodes 4-7) domain: 4 5 6 7\n"
            "small (nodes 8-11) domain: 8 9 10 11\n"
            "other.0 domain?: 8 9\n");
  EXPECT_EQ(option(plan, "segment"), "4");
  EXPECT_EQ(option(plan, "switches"), "") << "this Slurm knows blocks";
  const auto read = from_json(to_json(plan).dump(), "plan.json");
  ASSERT_TRUE(read) << read.error().first_message();
  EXPECT_EQ(units(*read), units(plan));
  EXPECT_EQ(to_json(*read), to_json(plan));
}

TEST_F(KeptTogether, AsksATreeForOneSwitchWhereAllNodesAreAtIt) {
  constexpr const char* kTree =
      "scheduler: {kind: slurm, directives: {partition: gpu}}\nnode: {gpus: 4}\ntopology: {slurm: tree}\n";
  const auto plan = [&](const std::string& nodes, const std::string& more = "") {
    return plan_of(
        "nodes: " + nodes + "\n" + more +
            "roles: {learner: {kind: learner, count: 2, gpus: 4, command: [t], keep_together: switch}}\n",
        kTree);
  };
  EXPECT_EQ(option(plan("2"), "switches"), "1");
  EXPECT_EQ(option(plan("3"), "switches"), "") << "the third may be elsewhere";
  EXPECT_EQ(option(plan("2", "slurm: {switches: \"2@10\"}\n"), "switches"), "2@10") << "what is given stays";
}

TEST_F(KeptTogether, SaysWhenSlurmCannotBeAsked) {
  const auto plan = plan_of(
      "nodes: 3\n"
      "roles: {e: {kind: engine, count: 1, replica: {nodes: 2}, gpus: 4, command: [s], keep_together: "
      "domain}}\n",
      kSite);
  EXPECT_EQ(option(plan, "segment"), "");
  EXPECT_TRUE(std::ranges::any_of(plan.warnings, [](const auto& warning) {
    return warning ==
           "Slurm is not asked to keep 'e.0' within one NVLink domain: 3 nodes are not a multiple of 2 "
           "(--segment). If its nodes are apart, the run is refused when it starts";
  }));
}

TEST_F(KeptTogether, OnANodeIsPlacedWhole) {
  const auto plan = plan_of(
      "nodes: 2\n"
      "roles:\n"
      "  learner: {kind: learner, count: 3, gpus: 1, command: [t]}\n"
      "  engine: {kind: engine, count: 2, gpus: 1, command: [s], keep_together: node}\n",
      kSite);
  for (const auto& process : plan.processes) {
    EXPECT_EQ(process.node, plan.role_of(process).name == "engine" ? 1U : 0U) << plan.name_of(process);
  }
  EXPECT_EQ(units(plan), "");
}

TEST_F(KeptTogether, InAPlanThatWasEditedIsChecked) {
  const auto plan = plan_of(
      "nodes: 4\nroles: {l: {kind: learner, per_node: 4, gpus: 1, command: [t], keep_together: {within: "
      "domain, nodes: 2}}}\n",
      kSite);
  for (const auto& [key, value] : {std::pair<const char*, nlohmann::json>("nodes", 0), {"origin", ""}}) {
    auto edited = nlohmann::json::parse(to_json(plan).dump());
    edited["roles"][0]["keep_together"][key] = value;
    const auto read = from_json(edited.dump(), "plan.json");
    ASSERT_FALSE(read) << key;
    EXPECT_TRUE(read.error().first_message().ends_with("'l' has an invalid keep_together"))
        << read.error().first_message();
  }
}

TEST_F(KeptTogether, RefusesWhatFitsNowhere) {
  const auto mistake = [&](const std::string& role, const std::string& site, const std::string& nodes = "2") {
    const auto all = mistakes(
        "nodes: " + nodes + "\nroles: {learner: {kind: learner, gpus: 1, command: [t], " + role + "}}\n",
        site);
    return all.empty() ? std::string() : all.front();
  };
  EXPECT_EQ(mistake("per_node: 4, keep_together: domain", kSite, "6"),
            "4:85 'learner' is on 6 nodes, but must be within one NVLink domain -> write keep_together: "
            "{within: domain, nodes: N} for groups of N nodes each");
  EXPECT_EQ(mistake("per_node: 4, keep_together: node", kSite),
            "4:85 'learner' is on 2 nodes, but must be within one node -> use fewer processes, or "
            "keep_together: domain");
  EXPECT_EQ(
      mistake("count: 5, keep_together: node", kSite),
      "4:64 role 'learner': 5 processes of 1 GPU on one node do not fit on 2 nodes × 4 GPUs: none fit, and "
      "8 GPUs stay idle -> --set roles.learner.count=4 (4 GPUs for 'learner')");
  EXPECT_EQ(mistake("per_node: 4, keep_together: switch", "scheduler: {kind: flux}\nnode: {gpus: 4}\n"),
            "4:85 Flux does not report the switch of a node -> remove 'keep_together', or write "
            "keep_together: domain, which NVML reports");
}

}  // namespace
}  // namespace nlaunch::plan
