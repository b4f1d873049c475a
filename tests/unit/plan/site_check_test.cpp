#include "plan/site_check.h"

#include <algorithm>

#include "unit/plan/support.h"

namespace nlaunch::plan {
namespace {

class SiteChecks : public PlanFiles {
 protected:
  /// What is said of a profile: each diagnostic as "ID: message; hint".
  std::vector<std::string> said_of(const std::string& profile) {
    const auto site = site_of(profile);
    if (!site) return {said(site.error())};
    std::vector<std::string> lines;
    const auto checked = check_site(*site, facts_);
    for (const auto& item : checked.findings.items())
      lines.push_back(without_folder(
          fmt::format("{}: {}{}{}", item.id, item.message, item.hint.empty() ? "" : "; ", item.hint)));
    return lines;
  }
  using Lines = std::vector<std::string>;
};

constexpr auto kSlurm = "scheduler: {kind: slurm}\nnode: {gpus: 4}\n";

TEST_F(SiteChecks, NothingIsWrongWithAPlainOne) {
  EXPECT_EQ(said_of(kSlurm), Lines{});
  EXPECT_EQ(said_of(std::string(kSlurm) + "match: {slurm_cluster: our-*, hostname: 'nid*'}\n"), Lines{});
}

TEST_F(SiteChecks, AMatchHasToBeNarrow) {
  const auto* wide =
      "plan.match: 'match' fits every machine that has what it asks for; it stands against every other "
      "profile that fits; "
      "narrow it, or leave it out and use --site";
  EXPECT_EQ(said_of(std::string(kSlurm) + "match: {hostname: '*'}\n"), Lines{wide});
  EXPECT_EQ(said_of(std::string(kSlurm) + "match: {hostname: '**', gpu: '*'}\n"), Lines{wide});
  EXPECT_EQ(said_of(std::string(kSlurm) + "match: {hostname: '*', gpu: 'H100*'}\n"), Lines{});
}

TEST_F(SiteChecks, AMatchWithBlanksFitsNothing) {
  EXPECT_EQ(said_of(std::string(kSlurm) + "match: {gpu: ' H100'}\n"),
            Lines{"plan.match: 'match.gpu' is ' H100', which fits nothing; remove the blanks, or the key"});
}

TEST_F(SiteChecks, AJobIsNotOfTwoSchedulers) {
  EXPECT_EQ(said_of(std::string(kSlurm) + "match: {slurm_cluster: a, beaker_cluster: b}\n"),
            Lines{"plan.match: 'match' wants a job of Slurm that is one of Beaker; all that are given must "
                  "fit: keep one"});
}

TEST_F(SiteChecks, ADirectiveThatIsUnknownIsCompared) {
  EXPECT_EQ(said_of("scheduler: {kind: slurm, directives: {partitoin: gpu}}\nnode: {gpus: 4}\n"),
            Lines{"plan.slurm-unknown: sbatch is not known to have --partitoin; did you mean partition?"});
  EXPECT_EQ(said_of("scheduler: {kind: slurm, directives: {zzzzzzzz: gpu}}\nnode: {gpus: 4}\n"),
            Lines{"plan.slurm-unknown: sbatch is not known to have --zzzzzzzz; right for an option of a "
                  "newer Slurm or of a "
                  "plugin; `sbatch --help` lists what there is"});
  EXPECT_EQ(said_of("scheduler: {kind: slurm, directives: {partition: gpu, account: a}}\nnode: {gpus: 4}\n"),
            Lines{});
}

TEST_F(SiteChecks, ThereIsABusIdForEachGpu) {
  const std::string ids = "node: {gpus: 2, bus_ids: ['00000000:1B:00.0'";
  EXPECT_EQ(said_of("scheduler: {kind: slurm}\n" + ids + "]}\n"),
            Lines{"plan.site-gpus: 'node.bus_ids' has 1 bus id, and 'node.gpus' is 2; one for each GPU of a "
                  "node, in PCI order"});
  EXPECT_EQ(said_of("scheduler: {kind: slurm}\n" + ids + ", '00000000:2B:00.0']}\n"), Lines{});
}

TEST_F(SiteChecks, AnOverlayHasToChangeSomething) {
  EXPECT_EQ(said_of(std::string(kSlurm) + "env: {set: {A: 1, B: 2}}\noverlays:\n  none: {}\n"),
            Lines{"plan.overlay: the overlay 'none' sets nothing"});
  EXPECT_EQ(said_of(std::string(kSlurm) +
                    "env: {set: {A: 1, B: 2}}\noverlays:\n  same: {env: {set: {A: 1, B: 3}}}\n"),
            Lines{"plan.overlay: the overlay 'same' sets A=1, as the site does without it"});
  EXPECT_EQ(said_of(std::string(kSlurm) + "env: {set: {A: 1}}\noverlays:\n  other: {env: {set: {A: 2}}}\n"),
            Lines{});
}

class FixedPorts : public PlanFiles {
 protected:
  /// A plan of two engines with this command and readiness.
  std::string roles(const std::string& one, const std::string& two) {
    return "cpu_slots: true\nroles:\n  learner: {kind: learner, gpus: 1, command: [python, train.py, "
           "--port=9000]}\n  one: {kind: engine, gpus: 1, " +
           one + "}\n  two: {kind: engine, gpus: 1, " + two + "}\n";
  }
  static constexpr auto kSite = "scheduler: {kind: local}\nnode: {gpus: 4}\n";
};

TEST_F(FixedPorts, OfTwoThatAreAskedOnOneAreAnError) {
  const auto plan = build_from(roles("command: [serve], ready: {http: 'http://127.0.0.1:8000/health'}",
                                     "command: [serve], ready: {tcp: 'localhost:8000'}"),
                               kSite);
  const auto text = refusal(plan);
  EXPECT_NE(text.find("one.0 and two.0 on node 0 are asked on one port, 8000 [plan.port]"), std::string::npos)
      << text;
  EXPECT_NE(text.find("hint: `ports: [http]` with ${self.ports.http} gives each process a port of its own"),
            std::string::npos)
      << text;
}

TEST_F(FixedPorts, InCommandsAreAWarning) {
  const auto warnings = [this](const std::string& one, const std::string& two) {
    std::vector<std::string> found;
    for (const auto& warning : plan_of(roles(one, two), kSite).warnings)
      if (warning.find("one port") != std::string::npos)
        found.push_back(warning.substr(0, warning.find(':')));
    return found;
  };
  using Found = std::vector<std::string>;
  const Found both{"one.0 and two.0 on node 0 have one port, 9000"};
  EXPECT_EQ(warnings("command: [serve, --port=9000]", "command: [serve, --port, 9000]"), both);
  EXPECT_EQ(warnings("command: [serve, --port=9000]", "command: [serve, --port=9001]"), Found{});
  EXPECT_EQ(warnings("command: [serve, --port=9000]", "command: [serve, --port]"), Found{});
  EXPECT_EQ(warnings("command: [serve, --port=0]", "command: [serve, --port=0]"), Found{}) << "any port";
  EXPECT_EQ(warnings("command: [serve, --port=65535]", "command: [serve, --port=65535]"),
            Found{"one.0 and two.0 on node 0 have one port, 65535"});
  EXPECT_EQ(warnings("command: [serve, --port=65536]", "command: [serve, --port=65536]"), Found{});
  EXPECT_EQ(warnings("command: [serve, --port=1]", "command: [serve, --port=1]"),
            Found{"one.0 and two.0 on node 0 have one port, 1"});
  EXPECT_EQ(warnings("command: [serve, --port=90x]", "command: [serve, --port=90x]"), Found{});
  EXPECT_EQ(warnings("command: [serve, --port=9000]", "command: [serve], ready: {tcp: '127.0.0.1:9000'}"),
            both);
  EXPECT_EQ(warnings("command: [serve, --port=9000]", "command: [serve], ready: {tcp: '10.0.0.7:9000'}"),
            Found{})
      << "of another machine";
}

TEST_F(FixedPorts, OfOneRoleWithTwoProcessesAreSharedToo) {
  const auto plan = plan_of(
      "cpu_slots: true\nroles:\n  learner: {kind: learner, gpus: 1, command: [python, train.py]}\n"
      "  engine: {kind: engine, count: 2, gpus: 1, command: [serve, --port=9000]}\n",
      kSite);
  EXPECT_TRUE(std::ranges::any_of(plan.warnings, [](const auto& warning) {
    return warning.starts_with("engine.0 and engine.1 on node 0 have one port, 9000: ");
  }));
}

}  // namespace
}  // namespace nlaunch::plan
