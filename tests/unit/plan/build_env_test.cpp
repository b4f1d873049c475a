#include "plan/build_env.h"

#include <gtest/gtest.h>

#include "unit/plan/support.h"

namespace nlaunch::plan {
namespace {

using Lines = std::vector<std::string>;

class EnvLayers : public PlanFiles {
 protected:
  static constexpr const char* kSite = "scheduler: {kind: local}\n";
  static constexpr const char* kRoles =
      "roles:\n  learner: {kind: learner, command: [t]}\n  engine: {kind: engine, command: [s]}\n";

  /// "set A=1 (role, experiment.yaml:3:5)": the operations on these roles' variables, in order.
  Lines operations(const Role& role) {
    Lines out;
    for (const auto& op : role.env) {
      if (op.layer == Layer::nlaunch) continue;
      out.push_back(std::string(name_of(op.kind)) + " " + op.name + "=" + op.value + " (" +
                    std::string(name_of(op.layer)) + ", " + without_folder(op.origin) + ")");
    }
    return out;
  }
  /// The message about an --env option, or what it sets on the first role.
  std::string option(const std::string& text) {
    const auto plan = build_from(kRoles, kSite, {{}, 0, {}, {text}});
    if (!plan) return plan.error().first_message();
    const auto found = operations(plan->roles[0]);
    return found.empty() ? "nothing" : found.front();
  }
};

TEST_F(EnvLayers, StandInTheirOrderWithTheirPlaces) {
  const auto plan =
      plan_of(R"(env: {A: experiment}
venv: .venv
overlays: {own: {env: {A: overlay}}}
roles:
  learner: {kind: learner, command: [t], env: {set: {A: "${self.name}"}, unset: [B], prepend: {P: /p}, append: {P: /q}}}
  engine: {kind: engine, command: [s], venv: /opt/venv}
)",
              std::string(kSite) + "env: {set: {A: site}}\noverlays: {of-site: {env: {set: {A: of-site}}}}\n",
              {{}, 0, {"own", "of-site"}, {"A=all", "engine:A=one", "learner:B=2"}});
  const auto venv = (folder_ / ".venv").string();
  EXPECT_EQ(
      operations(plan.roles[0]),
      (Lines{"set A=site (site, site.yaml:4:13)", "set VIRTUAL_ENV=" + venv + " (venv, experiment.yaml:4:7)",
             "prepend PATH=" + venv + "/bin (venv, experiment.yaml:4:7)",
             "unset PYTHONHOME= (venv, experiment.yaml:4:7)",
             "set A=experiment (experiment, experiment.yaml:3:7)", "unset B= (role, experiment.yaml:7:82)",
             "set A=${self.name} (role, experiment.yaml:7:54)", "prepend P=/p (role, experiment.yaml:7:96)",
             "append P=/q (role, experiment.yaml:7:113)", "set A=overlay (overlay, experiment.yaml:5:24)",
             "set A=of-site (overlay, site.yaml:5:34)", "set A=all (command line, --env A)",
             "set B=2 (command line, --env learner:B)"}));
  const auto engine = operations(plan.roles[1]);
  EXPECT_EQ(engine[1], "set VIRTUAL_ENV=/opt/venv (venv, experiment.yaml:8:46)");
  EXPECT_EQ(engine.back(), "set A=one (command line, --env engine:A)");
  const auto& last = plan.roles[0].env.back();
  EXPECT_EQ(last.name, "PYTHONUNBUFFERED");
  EXPECT_EQ(last.kind, EnvOp::Kind::fallback);
  EXPECT_EQ(last.value, "1");
}

TEST_F(EnvLayers, WithoutAVenvNothingIsSaidOfPython) {
  EXPECT_EQ(operations(plan_of(kRoles, kSite).roles[0]), Lines{});
}

TEST_F(EnvLayers, AnOptionSetsAVariableOfAnyName) {
  EXPECT_EQ(option("A=1"), "set A=1 (command line, --env A)");
  EXPECT_EQ(option("A="), "set A= (command line, --env A)");
  EXPECT_EQ(option("A=b=c:d"), "set A=b=c:d (command line, --env A)");
  EXPECT_EQ(option("learner:A=x:y"), "set A=x:y (command line, --env learner:A)");
  EXPECT_EQ(option("engine:A=1"), "nothing");
  EXPECT_EQ(option("M=${env.MODEL}"), "set M=small (command line, --env M)");
  for (const auto* name : {"A", "Z", "a", "z", "_", "A0", "_9", "aZ_z9"})
    EXPECT_EQ(option(std::string(name) + "=1"),
              "set " + std::string(name) + "=1 (command line, --env " + name + ")");
}

TEST_F(EnvLayers, AnOptionWithoutANameIsRefused) {
  for (const auto* text : {"A", "", "=1", "0A=1", "9=1", "A-B=1", "A.B=1", "A@=1", "A[=1", "A`=1", "A{=1",
                           "A/=1", "@=1", "[=1", "`=1", "{=1", "learner:=1", "learner:A", "\xc3\xa4=1"})
    EXPECT_EQ(option(text), "--env accepts NAME=VALUE or ROLE:NAME=VALUE") << text;
  EXPECT_EQ(option("A\tB=1"),
            "the name 'A\tB' contains a blank: --env accepts NAME=VALUE or ROLE:NAME=VALUE");
  EXPECT_EQ(option("RANK=1"), "RANK is set by nlaunch for each process");
  EXPECT_EQ(option("x:RANK=1"), "RANK is set by nlaunch for each process");
}

TEST_F(EnvLayers, MistakesInAnOptionAreShownInIt) {
  const auto refused = [&](const std::string& text) {
    return refusal(build_from(kRoles, kSite, {{}, 0, {}, {text}}));
  };
  EXPECT_EQ(refused("learner:0A=1"),
            "--env:1:9: error: --env accepts NAME=VALUE or ROLE:NAME=VALUE [plan.env-option]\n"
            "   1 | learner:0A=1\n     |         ^^\n");
  EXPECT_EQ(refused("1A"),
            "--env:1:1: error: --env accepts NAME=VALUE or ROLE:NAME=VALUE [plan.env-option]\n"
            "   1 | 1A\n     | ^^\n");
  EXPECT_EQ(refused("=12"),
            "--env:1:1: error: --env accepts NAME=VALUE or ROLE:NAME=VALUE [plan.env-option]\n"
            "   1 | =12\n     | ^\n");
  EXPECT_EQ(refused("learner:RANK=1"),
            "--env:1:9: error: RANK is set by nlaunch for each process [plan.env-option]\n"
            "   1 | learner:RANK=1\n     |         ^^^^\n");
  EXPECT_EQ(refused("lerner:A=1"),
            "--env:1:1: error: unknown role 'lerner' [plan.env-option]\n"
            "   1 | lerner:A=1\n     | ^^^^^^\n"
            "hint: the roles are learner, engine\n");
  EXPECT_EQ(refused("AB=x${run.nme}"),
            "--env:1:5: error: unknown name '${run.nme}': did you mean '${run.name}'? [plan.reference]\n"
            "   1 | AB=x${run.nme}\n     |     ^^^^^^^^^^\n");
}

TEST_F(EnvLayers, AnOverlayThatNobodyHasIsSaidWithThoseThatAreThere) {
  constexpr const char* kOwn = "overlays: {debug: {env: {A: 1}}}\n";
  const auto with = [&](const std::string& name, const std::string& experiment, const std::string& site) {
    return mistakes(experiment + kRoles, kSite + site, {{}, 0, {name}, {}});
  };
  EXPECT_EQ(with("debg", kOwn, ""),
            Lines{"--with debg: overlay not found in the experiment or in site 'site' -> did you mean "
                  "'--with debug'?"});
  EXPECT_EQ(with("something", kOwn, "overlays: {slow: {env: {B: 1}}}\n"),
            Lines{"--with something: overlay not found in the experiment or in site 'site' -> available: "
                  "slow, debug"});
  EXPECT_EQ(with("something", "", ""), Lines{"--with something: overlay not found in the experiment or in "
                                             "site 'site' -> no overlays are defined"});
}

TEST_F(EnvLayers, TheExperimentsOverlayIsTakenBeforeTheSitesOfThatName) {
  const auto plan = plan_of(std::string("overlays: {x: {env: {A: own}}}\n") + kRoles,
                            std::string(kSite) + "overlays: {x: {env: {A: site}}}\n", {{}, 0, {"x"}, {}});
  EXPECT_EQ(operations(plan.roles[0]), Lines{"set A=own (overlay, experiment.yaml:3:22)"});
}

TEST_F(EnvLayers, AValueIsAtMostWhatLinuxTakes) {
  const auto site = site_of(kSite);
  ASSERT_TRUE(site);
  auto experiment = experiment_of(kRoles);
  ASSERT_TRUE(experiment);
  const auto with = [&](std::size_t bytes) {
    experiment->env = {{config::EnvEntry::Kind::set, {"BIG", {}}, {std::string(bytes, 'x'), {}}, {}}};
    const auto plan = build(*experiment, *site, facts_, {});
    return plan ? Lines{} : listed(plan.error());
  };
  EXPECT_EQ(with(131'071), Lines{});
  const std::string told =
      "the value of BIG has 131072 bytes; a variable can hold at most 131071 -> write it to a file and pass "
      "the path; for addresses of roles, use ${role.NAME.addrs_file}";
  EXPECT_EQ(with(131'072), (Lines{told, told})) << "for each role";
}

TEST_F(EnvLayers, VllmsAddressIsForThoseWhomNlaunchStartsBesideAServer) {
  const auto plan = plan_of(R"(roles:
  engine: {kind: engine, command: [vllm, serve, m]}
  judge: {kind: engine, command: [s]}
  driver: {kind: learner, command: [t]}
  actor: {kind: learner, spawned_by: [driver]}
  server: {kind: service, command: [vllm, serve, m]}
)",
                            kSite);
  std::vector<Lines> vllm;
  for (const auto& role : plan.roles) {
    auto& names = vllm.emplace_back();
    for (const auto& op : role.env) {
      if (op.name.starts_with("VLLM_")) names.push_back(op.name);
    }
  }
  EXPECT_EQ(vllm, (std::vector<Lines>{{"VLLM_RPC_BASE_PATH", "VLLM_HOST_IP"},
                                      Lines{"VLLM_HOST_IP"},
                                      Lines{"VLLM_HOST_IP"},
                                      {},
                                      Lines{"VLLM_RPC_BASE_PATH"}}));
  const auto service_alone = plan_of(R"(roles:
  server: {kind: service, command: [vllm, serve, m]}
  learner: {kind: learner, command: [t]}
)",
                                     kSite);
  for (const auto& op : service_alone.roles[1].env) EXPECT_NE(op.name, "VLLM_HOST_IP");
}

}  // namespace
}  // namespace nlaunch::plan
