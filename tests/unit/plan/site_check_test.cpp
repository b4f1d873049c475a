#include "plan/site_check.h"

#include <gtest/gtest.h>

#include "unit/plan/support.h"

namespace nlaunch::plan {
namespace {

using Lines = std::vector<std::string>;

class CheckSite : public PlanFiles {
 protected:
  SiteCheck check(const std::string& text) {
    const auto site = site_of(text);
    EXPECT_TRUE(site) << (site ? "" : render(site.error()));
    return check_site(site.value_or(config::Site{}), facts_);
  }
  /// What is found, of a profile whose own lines begin with the third one.
  Lines found(const std::string& text) { return listed(check(text).findings); }
};

TEST_F(CheckSite, FindsNothingInAPlainProfile) {
  for (const auto* scheduler : {"local", "slurm", "flux"})
    EXPECT_EQ(found("scheduler: {kind: " + std::string(scheduler) + "}\nenv: {set: {A: 1}}\n"), Lines{})
        << scheduler;
  EXPECT_EQ(found("scheduler: {kind: beaker, beaker: {image: a/b}}\n"), Lines{});
}

TEST_F(CheckSite, HandsOutTheLibrariesOfThePlan) {
  const auto checked = check("libraries: {nccl: {path: ~/lib.so}}\n");
  EXPECT_TRUE(checked.findings.empty());
  ASSERT_EQ(checked.libraries.size(), 1U);
  EXPECT_EQ(checked.libraries.at("nccl").path, "/home/user/lib.so");
}

TEST_F(CheckSite, AMistakeThatEachPlanHasIsToldOnce) {
  const auto checked = check(
      "env: {set: {A: \"${site.nme}\"}}\noverlays:\n  a: {env: {B: \"${run.folder}\"}}\n  b: {env: {B: "
      "1}}\n");
  EXPECT_EQ(listed(checked.findings),
            (Lines{"3:17 unknown name '${site.nme}': did you mean '${site.name}'?",
                   "5:17 unknown name '${run.folder}': 'folder' is not one of dir, attempt_dir, "
                   "id, name, nodes"}));
  EXPECT_TRUE(checked.findings.has_errors());
  EXPECT_TRUE(checked.libraries.empty());
}

TEST_F(CheckSite, AMatchFitsSomethingAndNotAll) {
  const std::string all =
      "3:8 'match' matches every machine that has the named properties -> it conflicts with every other "
      "profile that matches; narrow it, or remove it and use --site";
  EXPECT_EQ(found("match: {hostname: \"*\"}\n"), Lines{all});
  EXPECT_EQ(found("match: {hostname: \"**\", gpu: \"*\", file: \"*\", slurm_cluster: \"*\"}\n"), Lines{all});
  EXPECT_EQ(found("match: {beaker_cluster: \"*\"}\n"), Lines{all});
  EXPECT_EQ(found("match: {hostname: \"*\", gpu: \"*H100*\"}\n"), Lines{});
  EXPECT_EQ(found("match: {gpu: \"*H100*\", file: \"*\"}\n"), Lines{});
  EXPECT_EQ(found("match: {file: /opt/cray}\n"), Lines{});
  EXPECT_EQ(found("match: {slurm_cluster: our-*, hostname: 'nid*'}\n"), Lines{});
}

TEST_F(CheckSite, AMatchWithBlanksFitsNothing) {
  const auto why = [](const std::string& key, const std::string& glob) {
    return "3:8 'match." + key + "' is '" + glob +
           "', which matches nothing -> remove the surrounding blanks, or the key";
  };
  EXPECT_EQ(found("match: {hostname: \" a\"}\n"), Lines{why("hostname", " a")});
  EXPECT_EQ(found("match: {gpu: \"\"}\n"), Lines{why("gpu", "")});
  EXPECT_EQ(found("match: {file: \"a \", beaker_cluster: \"b \"}\n"),
            (Lines{why("beaker_cluster", "b "), why("file", "a ")}));
  EXPECT_EQ(found("match: {slurm_cluster: a, beaker_cluster: b}\n"),
            Lines{"3:8 'match' requires a Slurm job that is also a Beaker job -> all conditions must match: "
                  "keep one"});
}

TEST_F(CheckSite, ADirectiveIsOneThatTheProgramIsKnownToHave) {
  const auto with = [&](const std::string& kind, const std::string& directive) {
    const auto checked = check("scheduler:\n  kind: " + kind + "\n  directives:\n    " + directive + "\n");
    auto lines = listed(checked.findings);
    for (std::size_t i = 0; i < lines.size(); ++i) lines[i] += " [" + checked.findings.items()[i].id + "]";
    return lines;
  };
  EXPECT_EQ(with("slurm", "partition: a"), Lines{});
  EXPECT_EQ(with("slurm", "exclusive: true"), Lines{});
  EXPECT_EQ(
      with("slurm", "partitoin: a"),
      Lines{"6:5 sbatch has no known option --partitoin -> did you mean partition? [plan.slurm-unknown]"});
  EXPECT_EQ(with("slurm", "of-a-plugin-here: a"),
            Lines{"6:5 sbatch has no known option --of-a-plugin-here -> this is fine for an option of a "
                  "newer Slurm or of a plugin; `sbatch --help` lists the options [plan.slurm-unknown]"});
  EXPECT_EQ(with("flux", "bank: a"), Lines{});
  EXPECT_EQ(with("flux", "of-a-plugin-here: a"),
            Lines{"6:5 flux batch has no known option --of-a-plugin-here -> this is fine for an option of a "
                  "newer Flux or of a plugin; `flux batch --help` lists the options [plan.flux-unknown]"});
  // What is refused is told once.
  EXPECT_EQ(with("slurm", "nodes: 3"), Lines{"6:5 'nodes' is set by nlaunch and cannot be set here -> use "
                                             "`nodes:` in the experiment, or --nodes [plan.slurm-owned]"});
  EXPECT_EQ(
      with("local", "partition: a"),
      Lines{
          "6:5 directives are for sbatch, but the scheduler is local -> write scheduler: {kind: slurm, ...} "
          "[plan.site-scheduler]"});
  EXPECT_EQ(
      with("local", "partitoin: a"),
      (Lines{
          "6:5 sbatch has no known option --partitoin -> did you mean partition? [plan.slurm-unknown]",
          "6:5 directives are for sbatch, but the scheduler is local -> write scheduler: {kind: slurm, ...} "
          "[plan.site-scheduler]"}));
}

TEST_F(CheckSite, WhatAProfileInheritsIsNotItsFault) {
  write("base.yaml",
        "version: 1\nname: base\nscheduler: {kind: local, directives: {partitoin: a}}\nnode: {gpus: 2, "
        "bus_ids: [a]}\n"
        "expect: {all_reduce_busbw: [{gpus_per_node: 4, size: 1GiB, min: 0GB/s}]}\noverlays: {x: {}}\n");
  EXPECT_EQ(found("extends: base.yaml\n"), Lines{});
}

TEST_F(CheckSite, EachGpuHasItsBusId) {
  const auto with = [&](const std::string& node) { return found("node: {" + node + "}\n"); };
  EXPECT_EQ(with("gpus: 2, bus_ids: [a]"), Lines{"3:27 'node.bus_ids' has 1 bus id, but 'node.gpus' is 2 -> "
                                                 "write one for each GPU of a node, in PCI order"});
  EXPECT_EQ(with("gpus: 1, bus_ids: [a, b]").size(), 1U);
  EXPECT_EQ(with("gpus: 2, bus_ids: [a, b]"), Lines{});
  EXPECT_EQ(with("bus_ids: [a, b]"), Lines{});
  EXPECT_EQ(with("gpus: 2"), Lines{});
}

TEST_F(CheckSite, AnExpectationCanFit) {
  const auto with = [&](const std::string& row, const std::string& kind = "slurm") {
    return found("scheduler: {kind: " + kind +
                 "}\nnode: {gpus: 2}\nexpect: {all_reduce_busbw: [{size: 1GiB, " + row + "}]}\n");
  };
  const std::string never = "5:29 this expectation never applies: ";
  EXPECT_EQ(with("min: 1GB/s"), Lines{});
  EXPECT_EQ(with("min: 1GB/s, gpus_per_node: 2"), Lines{});
  EXPECT_EQ(with("min: 1GB/s, gpus_per_node: 3"),
            Lines{never + "it is for 3 GPUs on each node, but a node has 2"});
  EXPECT_EQ(with("min: 1GB/s, nodes: \"1\"", "local"), Lines{});
  EXPECT_EQ(with("min: 1GB/s, nodes: \">=2\"", "local"),
            Lines{never + "it is for >=2 nodes, but this site is one machine"});
  EXPECT_EQ(with("min: 1GB/s, nodes: \">=2\""), Lines{});
  EXPECT_EQ(with("min: 1GB/s, nodes: \"10000\""), Lines{});
  EXPECT_EQ(with("min: 1GB/s, nodes: \"<1\""), Lines{never + "no number of nodes is <1"});
  EXPECT_EQ(with("min: 1GB/s, nodes: \">4,<3\""), Lines{never + "no number of nodes is >4,<3"});
  EXPECT_EQ(with("min: 0GB/s"), Lines{"5:29 this expectation has no effect: 'min' is 0"});
  EXPECT_EQ(found("expect: {all_reduce_busbw: [{size: 1GiB, min: 1GB/s, gpus_per_node: 9}]}\n"), Lines{})
      << "nobody says how many GPUs a node has";
}

TEST_F(CheckSite, AnOverlayChangesSomething) {
  const auto with = [&](const std::string& env, const std::string& overlay) {
    return found("env: {" + env + "}\noverlays:\n  x: " + overlay + "\n");
  };
  EXPECT_EQ(with("set: {A: 1}", "{}"), Lines{"5:3 the overlay 'x' sets nothing"});
  EXPECT_EQ(with("set: {A: 1}", "{set: {nodes: 2}}"), Lines{});
  EXPECT_EQ(with("set: {A: 1, B: 2}", "{env: {A: 1, B: 3, C: 1}}"),
            Lines{"5:13 the overlay 'x' sets A=1, which the site already sets"});
  EXPECT_EQ(with("set: {A: 1}", "{env: {A: 2}}"), Lines{});
  EXPECT_EQ(with("set: {A: 1}", "{env: {prepend: {A: 1}}}"), Lines{});
  EXPECT_EQ(with("prepend: {A: 1}", "{env: {A: 1}}"), Lines{});
  // Where the site sets it on some machines only, the overlay is for the others.
  EXPECT_EQ(with("when: [{nodes: \">1\", set: {A: 1}}]", "{env: {A: 1}}"), Lines{});
  EXPECT_EQ(with("set: {A: 1}, when: [{nodes: \">1\", set: {A: 2}}]", "{env: {A: 1}}"), Lines{});
}

}  // namespace
}  // namespace nlaunch::plan
