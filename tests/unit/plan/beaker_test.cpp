#include "plan/beaker.h"

#include <gtest/gtest.h>

#include "unit/plan/support.h"

namespace nlaunch::plan {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

class BeakerPlan : public PlanFiles {
 protected:
  static constexpr const char* kRoles = "roles:\n  learner: {kind: learner, command: [t]}\n";

  /// `keys` are those of the section, a line each.
  static std::string site_with(const std::string& keys) {
    return "node: {gpus: 4}\nscheduler:\n  kind: beaker\n  beaker:\n    image: me/image\n" + keys;
  }
  static std::string experiment_with(const std::string& keys) {
    return kRoles + (keys.empty() ? "" : "beaker:\n" + keys);
  }
  Beaker made(const std::string& experiment, const std::string& site) {
    return plan_of(experiment_with(experiment), site_with(site)).beaker;
  }
  /// Of an experiment with these keys, whose first one is in line 6.
  Lines refused(const std::string& keys) { return mistakes(experiment_with(keys), site_with("")); }
};

TEST_F(BeakerPlan, WhatNobodySaysHasADefaultOrIsLeftToBeaker) {
  const auto beaker = made("", "");
  EXPECT_EQ(beaker.submit, Lines{"beaker"});
  EXPECT_EQ(beaker.image, "me/image");
  EXPECT_EQ(beaker.workspace + beaker.budget + beaker.description + beaker.priority + beaker.memory +
                beaker.shared_memory,
            "");
  EXPECT_TRUE(beaker.cluster.empty());
  EXPECT_TRUE(beaker.hostname.empty());
  EXPECT_EQ(beaker.preemptible, std::nullopt);
  EXPECT_EQ(beaker.auto_resume, std::nullopt);
  EXPECT_EQ(beaker.min_runtime, std::nullopt);
  EXPECT_EQ(beaker.timeout, std::nullopt);
  EXPECT_EQ(beaker.start_timeout, 30min);
  EXPECT_EQ(beaker.token, "nlaunch_token");
  EXPECT_EQ(beaker.program, "/nlaunch/bin/nlaunch");
  EXPECT_EQ(beaker.result, "/results");
  EXPECT_TRUE(beaker.host_networking);
  EXPECT_EQ(beaker.port, 25806) << "the same for this name everywhere";
  EXPECT_TRUE(beaker.datasets.empty());
  EXPECT_TRUE(beaker.secrets.empty());
}

TEST_F(BeakerPlan, TheExperimentSaysWhatTheSiteSaysOtherwise) {
  constexpr const char* kSite = R"(    workspace: site/work
    budget: site/budget
    description: of ${env.MODEL}
    cluster: [a, b]
    hostname: [n1]
    priority: low
    preemptible: false
    timeout: 2h
    start_timeout: 10m
    memory: 10GiB
    shared_memory: 1GiB
    host_networking: false
    port: 5000
    token: site_token
    nlaunch: /opt/nlaunch
    result: /out
  submit: [my-beaker, "${env.MODEL}"]
)";
  const auto of_site = made("", kSite);
  EXPECT_EQ(of_site.submit, (Lines{"my-beaker", "small"}));
  EXPECT_EQ(of_site.workspace, "site/work");
  EXPECT_EQ(of_site.budget, "site/budget");
  EXPECT_EQ(of_site.description, "of small");
  EXPECT_EQ(of_site.cluster, (Lines{"a", "b"}));
  EXPECT_EQ(of_site.hostname, Lines{"n1"});
  EXPECT_EQ(of_site.priority, "low");
  EXPECT_EQ(of_site.preemptible, false);
  EXPECT_EQ(of_site.timeout, 2h);
  EXPECT_EQ(of_site.start_timeout, 10min);
  EXPECT_EQ(of_site.memory, "10GiB");
  EXPECT_EQ(of_site.shared_memory, "1GiB");
  EXPECT_FALSE(of_site.host_networking);
  EXPECT_EQ(of_site.port, 5000);
  EXPECT_EQ(of_site.token, "site_token");
  EXPECT_EQ(of_site.program, "/opt/nlaunch");
  EXPECT_EQ(of_site.result, "/out");
  const auto own = made(R"(  image: docker://mine
  cluster: [c]
  priority: urgent
  preemptible: true
  start_timeout: 48h
  memory: 20GiB
  host_networking: true
  port: 6000
)",
                        kSite);
  EXPECT_EQ(own.image, "docker://mine");
  EXPECT_EQ(own.cluster, Lines{"c"});
  EXPECT_EQ(own.hostname, Lines{"n1"});
  EXPECT_EQ(own.priority, "urgent");
  EXPECT_EQ(own.preemptible, true);
  EXPECT_EQ(own.start_timeout, 48h);
  EXPECT_EQ(own.memory, "20GiB");
  EXPECT_TRUE(own.host_networking);
  EXPECT_EQ(own.port, 6000);
  EXPECT_EQ(own.workspace, "site/work");
}

TEST_F(BeakerPlan, ContainersNeedAnImage) {
  EXPECT_EQ(mistakes(kRoles, "scheduler: {kind: beaker}\n"),
            Lines{"site 'site' runs containers, but no image is set -> write `beaker: {image: USER/IMAGE}` "
                  "(or docker://TAG) in the experiment, or --set beaker.image=..."});
}

TEST_F(BeakerPlan, TheStartMayTakeSomeTimeUpToBeakersLimit) {
  const std::string why = "'start_timeout' must be more than 0s and at most 2d, found ";
  EXPECT_EQ(refused("  start_timeout: 0s\n"), Lines{"6:18 " + why + "0s"});
  EXPECT_EQ(refused("  start_timeout: 49h\n"), Lines{"6:18 " + why + "2d1h"});
  EXPECT_EQ(refused("  start_timeout: 1ms\n"), Lines{});
  EXPECT_EQ(refused("  start_timeout: 48h\n"), Lines{});
}

TEST_F(BeakerPlan, ThreeKeysSayWhetherAJobMayBeInterrupted) {
  const std::string why =
      "Beaker does not accept 'preemptible' together with 'min_runtime' or 'auto_resume' -> remove "
      "'preemptible': the other two replace it";
  EXPECT_EQ(refused("  preemptible: true\n  min_runtime: 1h\n"), Lines{"6:16 " + why});
  EXPECT_EQ(refused("  auto_resume: true\n  preemptible: true\n"), Lines{"7:16 " + why});
  const auto both = made("  auto_resume: true\n  min_runtime: 1h\n", "");
  EXPECT_EQ(both.auto_resume, true);
  EXPECT_EQ(both.min_runtime, 1h);
  EXPECT_EQ(both.preemptible, std::nullopt);
}

TEST_F(BeakerPlan, SizesAndPathsAreChecked) {
  EXPECT_EQ(refused("  memory: 10\n").size(), 1U);
  EXPECT_TRUE(refused("  memory: 10\n").at(0).starts_with("6:11 'memory': "));
  EXPECT_TRUE(refused("  shared_memory: lots\n").at(0).starts_with("6:18 'shared_memory': "));
  EXPECT_TRUE(refused("  shared_memory: lots\n").at(0).ends_with(" -> write 10GiB"));
  EXPECT_EQ(refused("  nlaunch: bin/nlaunch\n"),
            Lines{"6:12 'bin/nlaunch' of 'nlaunch' must be a path in the container that starts with /"});
  EXPECT_EQ(refused("  result: out\n"),
            Lines{"6:11 'out' of 'result' must be a path in the container that starts with /"});
  EXPECT_EQ(refused("  datasets: {data: {weka: b}}\n"),
            Lines{"6:14 'data' of 'datasets' must be a path in the container that starts with /"});
}

TEST_F(BeakerPlan, AMountOfTheExperimentTakesThePlaceOfTheSites) {
  const auto beaker = made(
      "  datasets:\n    /data: {beaker: \"set-${env.MODEL}\", sub_path: train}\n    /gone: false\n    /new/: "
      "{secret: key}\n",
      "    datasets:\n      /data/: {weka: bucket}\n      /gone: {host: /mnt}\n      /kept: {weka: other}\n");
  Lines told;
  for (const auto& mount : beaker.datasets)
    told.push_back(mount.path + " " + mount.kind + " " + mount.source + " " + mount.sub_path);
  EXPECT_EQ(told, (Lines{"/kept weka other ", "/data beaker set-small train", "/new secret key "}));
}

TEST_F(BeakerPlan, NoMountIsWithinAnother) {
  const auto with = [&](const std::string& first, const std::string& second) {
    return refused("  datasets:\n    " + first + ": {weka: b}\n    " + second + ": {weka: b}\n");
  };
  EXPECT_EQ(with("/data", "/data/x"), Lines{"8:5 the mounts '/data/x' and '/data' overlap"});
  EXPECT_EQ(with("/data/x", "/data"), Lines{"8:5 the mounts '/data' and '/data/x' overlap"});
  EXPECT_EQ(with("/data", "/Data/x"), Lines{"8:5 the mounts '/Data/x' and '/data' overlap"});
  EXPECT_EQ(with("/data", "/database"), Lines{});
  EXPECT_EQ(with("/data/x", "/data/y"), Lines{});
  EXPECT_EQ(with("/data", "/results/x"),
            Lines{"8:5 the mount '/results/x' overlaps with 'result', which is '/results'"});
  for (const auto& line : with("/", "/data"))
    EXPECT_FALSE(line.contains("must be a path in the container"))
        << "all of the container has a path, too: " << line;
}

TEST_F(BeakerPlan, EachSecretComesFromOneOfBeakers) {
  const auto plan =
      plan_of(std::string(kRoles) +
                  "secrets: {HF_TOKEN: env, WANDB_API_KEY: {file: /home/key}, OTHER_TOKEN: env}\n"
                  "beaker: {secrets: {OTHER_TOKEN: \"mine_${env.MODEL}\"}}\n",
              site_with("    secrets: {HF_TOKEN: site_token, OTHER_TOKEN: site_other, UNUSED: x}\n"));
  Lines told;
  for (const auto& secret : plan.beaker.secrets) told.push_back(secret.name + "=" + secret.secret);
  EXPECT_EQ(told, (Lines{"HF_TOKEN=site_token", "WANDB_API_KEY=WANDB_API_KEY", "OTHER_TOKEN=mine_small"}));
  ASSERT_EQ(plan.secrets.size(), 3U);
  EXPECT_EQ(plan.secrets[1].source, Secret::Source::env) << "the submitter's file is not there";
  EXPECT_EQ(plan.secrets[1].from, "WANDB_API_KEY");
  EXPECT_EQ(refused("  secrets: {MY_TOKEN: x}\n"),
            Lines{"6:13 the experiment has no secret 'MY_TOKEN' -> declare it: `secrets: {MY_TOKEN: env}`"});
}

TEST_F(BeakerPlan, CommandsRunInAFolderOfTheContainer) {
  const auto workdir = [&](const std::string& experiment, const std::string& site) {
    return plan_of(experiment_with(experiment), site_with(site)).roles.at(0).workdir;
  };
  EXPECT_EQ(workdir("", ""), folder_.string());
  EXPECT_EQ(workdir("", "    workdir: /code\n"), "/code");
  EXPECT_EQ(workdir("  workdir: /mine/${env.MODEL}\n", "    workdir: /code\n"), "/mine/small");
}

TEST_F(BeakerPlan, AWalltimeIsIgnoredThere) {
  EXPECT_EQ(plan_of(std::string(kRoles) + "walltime: {before: 5m}\n", site_with("")).warnings,
            (Lines{"4 GPUs of 4 stay idle",
                   "`walltime` has no effect under Beaker, which does not announce the end of a job"}));
}

}  // namespace
}  // namespace nlaunch::plan
