#include "plan/build.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/version.h"
#include "plan/environment.h"
#include "plan/groups.h"
#include "plan/json.h"
#include "unit/plan/support.h"

namespace nlaunch::plan {
namespace {

namespace fs = std::filesystem;

using BuildPlan = PlanFiles;

constexpr const char* kCluster = "scheduler: {kind: slurm}\nnode: {gpus: 4, gpu: GH200, arch: aarch64}\n";

TEST_F(BuildPlan, SaysWhatDoesNotFitAndWhatWould) {
  const auto plan = build_from(R"(nodes: 8
roles:
  learner: {kind: learner, per_node: 1, gpus: 1, command: [train]}
  engine: {kind: engine, count: 12, gpus: 2, command: [serve]}
)",
                               kCluster);
  EXPECT_EQ(refusal(plan),
            "experiment.yaml:6:33: error: role 'engine': 12 processes of 2 GPUs do not fit on 8 nodes × 4 "
            "GPUs: 8 fit, and 8 GPUs stay idle [plan.does-not-fit]\n"
            "   6 |   engine: {kind: engine, count: 12, gpus: 2, command: [serve]}\n"
            "     |                                 ^^\n"
            "note: experiment.yaml:5:3: role 'learner' uses 1 GPU on each node\n"
            "note: a process cannot span two nodes\n"
            "hint: --set roles.engine.count=8, or --nodes 12\n");
}

TEST_F(BuildPlan, RefusesATimeLimitThatIsOverWhenItsEndIsAnnounced) {
  const auto with = [&](const std::string& time) {
    return build_from("walltime: {before: 10m}\nslurm: {time: \"" + time +
                          "\"}\nroles: {learner: {kind: learner, gpus: 1, command: [t]}}\n",
                      kCluster);
  };
  EXPECT_EQ(refusal(with("00:05:00")),
            "error: the time limit of the job, 00:05:00 (experiment.yaml:4:15), is not longer than "
            "`walltime.before`, 10m: the end would be announced at once [plan.walltime]\n"
            "hint: write `time: \"00:20:00\"` or more, or a shorter `before` in `walltime`\n");
  EXPECT_TRUE(with("00:11:00"));
}

TEST_F(BuildPlan, WarnsOfAnEngineThatNobodyWaitsFor) {
  const auto warnings = [&](const std::string& engine, const std::string& start = "[[engine], [learner]]") {
    const auto plan = build_from("start: " + start + "\nroles:\n  learner: {kind: learner, command: [t]}\n" +
                                     "  engine: {kind: engine, " + engine + "}\n",
                                 kCluster);
    return plan ? plan->warnings : std::vector<std::string>{refusal(plan)};
  };
  const std::string warning =
      "experiment.yaml:6:3) has no `ready`: the next stage starts at once, before it answers; write ";
  const auto first = [](const std::vector<std::string>& all) {
    return all.empty() ? std::string() : all.front();
  };
  EXPECT_TRUE(first(warnings("command: [vllm, serve, m]")).ends_with(warning + "`ready: vllm` in it"));
  EXPECT_TRUE(first(warnings("command: [serve]")).ends_with(warning + "`ready: {http: URL}` in it"));
  EXPECT_FALSE(first(warnings("command: [serve], ready: {delay: 1s}")).starts_with("engine"));
  EXPECT_FALSE(first(warnings("command: [serve]", "[[learner], [engine]]")).starts_with("engine"));
}

TEST_F(BuildPlan, WarnsOfAVariableThatNoShellExpands) {
  const auto warnings = [&](const std::string& command) {
    const auto plan =
        build_from("roles: {learner: {kind: learner, gpus: 4, command: " + command + "}}\n", kCluster);
    return plan ? plan->warnings : std::vector<std::string>{refusal(plan)};
  };
  const auto told = warnings("[python, t.py, --model, $MODEL_DIR/x]");
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0].starts_with("role 'learner' passes '$MODEL_DIR/x' (")) << told[0];
  EXPECT_TRUE(told[0].ends_with(
      "experiment.yaml:3:76) as it is, since no shell starts its command; write ${env.MODEL_DIR}"))
      << told[0];
  for (const auto* fine : {"[bash, -c, 'echo $HOME']", "[/bin/sh, run.sh, $HOME]",
                           "[python, -c, 'x = \"$y\"']", "[t, 'a$']", "[t, '$1']", "[t, '$${HOME}']"})
    EXPECT_EQ(warnings(fine), std::vector<std::string>{}) << fine;
}

TEST_F(BuildPlan, NumbersRanksOverNodes) {
  const auto plan = build_from(
      "nodes: 2\nroles: {learner: {kind: learner, per_node: 2, gpus: 1, rendezvous: torch, command: [t]}}\n",
      kCluster);
  ASSERT_TRUE(plan) << render(plan.error());
  ASSERT_EQ(plan->processes.size(), 4U);
  const auto& last = plan->processes[3];
  EXPECT_EQ(last.rank, 3);
  EXPECT_EQ(last.node, 1U);
  EXPECT_EQ(last.local_rank, 1U);
  EXPECT_EQ(last.local_size, 2U);
  EXPECT_EQ(last.node_rank, 1U);
  EXPECT_EQ(last.gpus, (std::vector<std::uint16_t>{1}));
}

TEST_F(BuildPlan, WeightSyncIsLearnerZeroAndEveryEngineGpu) {
  const auto plan = build_from(R"(nodes: 2
roles:
  learner: {kind: learner, per_node: 1, gpus: 1, rendezvous: torch, command: [t]}
  engine: {kind: engine, count: 2, gpus: 2, command: [s, "${self.sync_rank}"]}
)",
                               kCluster);
  ASSERT_TRUE(plan) << render(plan.error());
  EXPECT_EQ(plan->weight_syncs.front().world_size, 5U);
  EXPECT_EQ(sync_rank(*plan, plan->weight_syncs.front(), plan->processes[0]), 0);
  EXPECT_EQ(sync_rank(*plan, plan->weight_syncs.front(), plan->processes[1]), -1);
  EXPECT_EQ(sync_rank(*plan, plan->weight_syncs.front(), plan->processes[2]), 1);
  EXPECT_EQ(sync_rank(*plan, plan->weight_syncs.front(), plan->processes[3]), 3);
  const auto& sync = plan->groups.back();
  EXPECT_EQ(sync.kind, GroupKind::weight_sync);
  ASSERT_EQ(sync.members.size(), 5U);
  EXPECT_EQ(sync.members[0].process, 0U);
  EXPECT_EQ(sync.members[4].gpu, 2U);
}

TEST_F(BuildPlan, VarsThatMultiplyEndAtALength) {
  std::string vars = "vars:\n  a0: \"0123456789\"\n";
  for (int i = 1; i < 9; ++i) {
    vars += fmt::format("  a{}: \"", i);
    for (int k = 0; k < 10; ++k) vars += fmt::format("${{vars.a{}}}", i - 1);
    vars += "\"\n";
  }
  const auto message =
      refusal(build_from(vars + "roles: {learner: {kind: learner, command: [t, \"${vars.a8}\"]}}\n",
                         "scheduler: {kind: local}\n"));
  EXPECT_TRUE(
      message.starts_with("experiment.yaml:9:18: error: the value is longer than 128 KiB here, the longest "
                          "argument that Linux passes [plan.reference]\n"))
      << message;
}

TEST_F(BuildPlan, TwoProcessesThatAreAskedOnOnePortAreAnError) {
  const auto with = [&](const std::string& ready, const std::string& count = "2") {
    return build_from(
        "roles:\n  engine: {kind: engine, count: " + count + ", command: [s], ready: " + ready + "}\n",
        "scheduler: {kind: local}\n");
  };
  EXPECT_EQ(refusal(with("{http: 'http://localhost:8000/health'}")),
            "experiment.yaml:4:57: error: engine.0 and engine.1 on node 0 are checked on the same port, 8000 "
            "[plan.port]\n"
            "   4 |   engine: {kind: engine, count: 2, command: [s], ready: {http: "
            "'http://localhost:8000/health'}}\n"
            "     |                                                         ^\n"
            "hint: `ports: [http]` with ${self.ports.http} gives each process its own port\n");
  EXPECT_FALSE(with("{tcp: '${self.host}:8000'}"));
  EXPECT_TRUE(with("{tcp: '${self.host}:8000'}", "1"));
  EXPECT_TRUE(with("{tcp: 'head:6379'}")) << "they wait for another one";
  EXPECT_TRUE(with("{http: 'http://localhost/'}", "1"));
}

TEST_F(BuildPlan, TwoProcessesWithOnePortInTheirCommandsAreWarnedOf) {
  const auto warnings = [&](const std::string& roles) {
    const auto plan = build_from("roles: {" + roles + "}\n", "scheduler: {kind: local}\n");
    return plan ? plan->warnings : std::vector<std::string>{render(plan.error())};
  };
  const std::vector<std::string> one_port{
      "engine.0 and engine.1 on node 0 use the same port, 8000: `ports: [http]` with ${self.ports.http} "
      "gives each process its own port"};
  EXPECT_EQ(warnings("engine: {kind: engine, count: 2, command: [s, --port=8000]}"), one_port);
  EXPECT_EQ(warnings("engine: {kind: engine, count: 2, command: [s, --port, 8000]}"), one_port);
  EXPECT_TRUE(warnings("engine: {kind: engine, command: [s, --port, 8000]}").empty());
  EXPECT_TRUE(warnings("engine: {kind: engine, command: [s, --port, 8000]}, "
                       "learner: {kind: learner, command: [t, --port, 8000]}")
                  .empty())
      << "a client's";
  EXPECT_EQ(warnings("engine: {kind: engine, command: [s, --port, 8000]}, "
                     "router: {kind: service, command: [r], ready: {tcp: 'localhost:8000'}}")
                .size(),
            1U);
}

TEST_F(BuildPlan, WithoutGpusGlooCountsSlotsAndNcclIsAnError) {
  constexpr const char* kRoles = "roles: {learner: {kind: learner, count: 2, gpus: 1, command: [t]}}\n";
  constexpr const char* kBox = "scheduler: {kind: local}\n";
  const auto plan = build_from(std::string("weight_sync: {backend: gloo}\ncpu_slots: true\n") + kRoles, kBox);
  ASSERT_TRUE(plan) << render(plan.error());
  EXPECT_TRUE(plan->node.cpu_slots);
  EXPECT_EQ(plan->warnings,
            (std::vector<std::string>{"no GPUs found: `gpus` counts CPU slots (2), over Gloo"}));
  EXPECT_EQ(refusal(build_from(kRoles, kBox)),
            "experiment.yaml:3:50: error: role 'learner' requests 1 GPU, but none was found on this machine "
            "[plan.no-gpu]\n"
            "   3 | roles: {learner: {kind: learner, count: 2, gpus: 1, command: [t]}}\n"
            "     |                                                  ^\n"
            "hint: --set weight_sync.backend=gloo --set cpu_slots=true runs on the CPU, with one slot for "
            "each GPU; --set site.node.gpus=N plans for another machine\n");
  for (const auto* one : {"weight_sync: {backend: gloo}\n", "cpu_slots: true\n"}) {
    EXPECT_FALSE(build_from(std::string(one) + kRoles, kBox)) << one;
  }
}

TEST_F(BuildPlan, AddressesOfReadyAreCheckedAsFarAsTheyAreKnown) {
  const auto with_ready = [&](const std::string& ready) {
    return build_from("roles:\n  engine: {kind: engine, ports: [http], command: [s], ready: " + ready + "}\n",
                      "scheduler: {kind: local}\n");
  };
  for (const auto* fine : {"{http: 'http://${self.host}:${self.ports.http}/health'}", "{http: 'http://n1'}",
                           "{tcp: '${role.engine.addrs}'}", "{tcp: '${self.host}:${self.ports.http}'}",
                           "{tcp: '${env.ADDR:-n1:80}'}"}) {
    const auto plan = with_ready(fine);
    EXPECT_TRUE(plan) << fine << render(plan.error());
  }
  EXPECT_EQ(
      refusal(with_ready("{http: 'https://${self.host}:${self.ports.http}/'}")),
      "experiment.yaml:4:69: error: 'https://${self.host}:${self.ports.http}/' does not start with http:// "
      "(https is not supported) [plan.ready]\n"
      "   4 |   engine: {kind: engine, ports: [http], command: [s], ready: {http: "
      "'https://${self.host}:${self.ports.http}/'}}\n"
      "     |                                                                     "
      "^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n");
  const auto message = [&](const std::string& ready) { return with_ready(ready).error().first_message(); };
  EXPECT_EQ(message("{http: 'http://${self.host}:80000/'}"),
            "'http://${self.host}:80000/' is not http://HOST[:PORT][/PATH] with a port from 1 to 65535");
  EXPECT_EQ(message("{tcp: '${self.host}'}"), "'${self.host}' is not HOST:PORT with a port from 1 to 65535");
}

TEST_F(BuildPlan, OneProcessOfAnotherRoleIsCheckedAsFarAsItIsKnown) {
  const auto with_word = [&](const std::string& word) {
    return build_from(
        "roles:\n  engine: {kind: engine, count: 2, ports: [http], command: [s]}\n"
        "  tool: {kind: service, per: node, command: [s]}\n"
        "  learner: {kind: learner, command: [t, '" +
            word + "']}\n",
        "scheduler: {kind: local}\n");
  };
  const auto message = [&](const std::string& word) { return with_word(word).error().first_message(); };
  for (const auto* fine : {"${role.engine.1.host}:${role.engine.1.ports.http}", "${role.tool.7.host}"}) {
    const auto plan = with_word(fine);
    ASSERT_TRUE(plan) << render(plan.error());
    EXPECT_EQ(plan->roles[2].command[1], fine);
  }
  EXPECT_EQ(message("${role.engine.2.host}"),
            "'${role.engine.2.host}': role 'engine' has 2 processes, 'engine.0' to 'engine.1'");
  EXPECT_EQ(message("${role.learner.1.host}"),
            "'${role.learner.1.host}': role 'learner' has 1 process, 'learner.0'");
  EXPECT_EQ(message("${role.engine.0.ports.rpc}"),
            "unknown name '${role.engine.0.ports.rpc}': 'rpc' is not one of http");
  EXPECT_EQ(message("${role.learner.0.ports.http}"),
            "'${role.learner.0.ports.http}': role 'learner' declares no ports");
  EXPECT_EQ(message("${role.engine.0.hots}"),
            "unknown name '${role.engine.0.hots}': did you mean '${role.engine.0.host}'?");
  EXPECT_EQ(message("${role.engine.0}"),
            "unknown name '${role.engine.0}': '' is not one of host, ports.NAME");
}

TEST_F(BuildPlan, WhatVllmNeedsIsSetWhereItIsStarted) {
  const auto with_engine = [&](const std::string& command) {
    return build_from("roles:\n  engine: {kind: engine, command: " + command +
                          "}\n"
                          "  learner: {kind: learner, command: [t]}\n  tool: {kind: service, command: [t]}\n",
                      "scheduler: {kind: local}\n");
  };
  const auto vllm_of = [](const Role& role) {
    std::vector<std::string> out;
    for (const auto& op : role.env) {
      if (!op.name.starts_with("VLLM_")) continue;
      EXPECT_EQ(op.kind, EnvOp::Kind::fallback);
      EXPECT_EQ(op.layer, Layer::nlaunch);
      out.push_back(op.name + "=" + op.value + " (" + op.origin + ")");
    }
    return out;
  };
  const std::string host =
      "VLLM_HOST_IP=${self.host} (nlaunch's default: the node's address, at which the weight-sync "
      "group meets)";
  const std::string sockets =
      "VLLM_RPC_BASE_PATH=${node.scratch} (nlaunch's default: the vLLM sockets that a killed server leaves "
      "are removed with the run)";
  for (const auto* command :
       {"[vllm, serve, m]", "[/opt/venv/bin/vllm, serve, m]", "[uv, run, vllm, serve, m]",
        "[trl, vllm-serve, --model, m]", "[python, -m, vllm.entrypoints.openai.api_server]"}) {
    const auto plan = with_engine(command);
    ASSERT_TRUE(plan) << render(plan.error());
    EXPECT_EQ(vllm_of(plan->roles[0]), (std::vector{sockets, host})) << command;
    EXPECT_EQ(vllm_of(plan->roles[1]), std::vector{host});
    EXPECT_TRUE(vllm_of(plan->roles[2]).empty());
  }
  for (const auto* command :
       {"[python, -m, sglang.launch_server]", "[python, vllm]", "[bash, -c, 'vllm serve m']"}) {
    const auto plan = with_engine(command);
    ASSERT_TRUE(plan) << render(plan.error());
    EXPECT_TRUE(vllm_of(plan->roles[0]).empty()) << command;
    EXPECT_TRUE(vllm_of(plan->roles[1]).empty()) << command;
  }
}

TEST_F(BuildPlan, ATrackerThatWasMistypedIsARegularExpressionWithAWarning) {
  const auto with_progress = [&](const std::string& progress) {
    return build_from(
        "roles: {learner: {kind: learner, command: [t]}}\nwatch: {progress: " + progress + "}\n",
        "scheduler: {kind: local}\n");
  };
  EXPECT_EQ(with_progress("megatron")->watch->progress, R"(iteration +(?P<step>\d+)/ *(?P<total>\d+) \|)");
  EXPECT_EQ(with_progress("megatron")->warnings, std::vector<std::string>{});
  EXPECT_EQ(with_progress("'step (\\d+)'")->warnings, std::vector<std::string>{});
  const auto mistyped = with_progress("megatrn");
  EXPECT_EQ(mistyped->watch->progress, "megatrn");
  EXPECT_EQ(mistyped->warnings,
            std::vector<std::string>{
                "`watch.progress` is the regular expression 'megatrn': did you mean the tracker "
                "'megatron'?"});
}

TEST_F(BuildPlan, AServersNameStandsForItsHealthPath) {
  using namespace std::chrono_literals;
  const auto with_ready = [&](const std::string& ready, const std::string& ports = "[http]") {
    return build_from(
        "roles:\n  engine: {kind: engine, ports: " + ports + ", command: [s], ready: " + ready + "}\n",
        "scheduler: {kind: local}\n");
  };
  const auto vllm = with_ready("vllm");
  ASSERT_TRUE(vllm) << render(vllm.error());
  EXPECT_EQ(vllm->roles[0].ready.http, "http://${self.host}:${self.ports.http}/health");
  EXPECT_EQ(vllm->roles[0].ready.timeout, 20min);
  const auto sglang = with_ready("{server: sglang, timeout: 1h}", "[grpc, http]");
  ASSERT_TRUE(sglang) << render(sglang.error());
  EXPECT_EQ(sglang->roles[0].ready.http, "http://${self.host}:${self.ports.http}/health_generate");
  EXPECT_EQ(sglang->roles[0].ready.timeout, 1h);
  EXPECT_EQ(with_ready("{http: 'http://n1'}")->roles[0].ready.timeout, 10min);
  EXPECT_TRUE(with_ready("exited")->roles[0].ready.exited);
  EXPECT_EQ(refusal(with_ready("vllm", "[rpc]")),
            "experiment.yaml:4:61: error: vllm is checked on port 'http', which role 'engine' does not have "
            "[plan.ready]\n"
            "   4 |   engine: {kind: engine, ports: [rpc], command: [s], ready: vllm}\n"
            "     |                                                             ^^^^\n"
            "hint: add `ports: [http]`, and `--port, \"${self.ports.http}\"` to the command\n");
}

TEST_F(BuildPlan, NamesThatPeopleTakeForOthers) {
  const auto role = [&](const std::string& word) {
    return build_from("roles: {learner: {kind: learner, command: [t, '" + word + "']}}\n",
                      "scheduler: {kind: local}\n");
  };
  EXPECT_EQ(role("${HOME}").error().first_message(),
            "unknown name '${HOME}': did you mean '${env.HOME}', or '$${HOME}' for a shell?");
  const auto blank = build_from("roles: {learner: {kind: learner, command: [t]}}\n",
                                "scheduler: {kind: local}\n", {{}, 0, {}, {"A B=1"}});
  EXPECT_EQ(blank.error().first_message(),
            "the name 'A B' contains a blank: --env accepts NAME=VALUE or ROLE:NAME=VALUE");
}

TEST_F(BuildPlan, ALibraryIsLookedForInTheVenvOfThoseThatPreloadIt) {
  constexpr const char* kSite =
      "scheduler: {kind: local}\nlibraries: {nccl: {path: \"${env.VIRTUAL_ENV:-.venv}/libnccl.so.2\"}}\n";
  facts_.caller["VIRTUAL_ENV"] = "/home/user/other";
  const auto path_with = [&](const std::string& keys, const std::string& learner) {
    const auto plan = build_from(keys + "roles:\n  learner: {kind: learner, command: [train]" + learner +
                                     "}\n  tool: {kind: service, command: [x]}\n",
                                 kSite);
    return plan ? plan->libraries.at("nccl").path : refusal(plan);
  };
  const auto here = folder_.string();
  const std::string preload = ", preload: [nccl]";
  EXPECT_EQ(path_with("", preload), "/home/user/other/libnccl.so.2");
  EXPECT_EQ(path_with("venv: .venv\n", preload), here + "/.venv/libnccl.so.2");
  EXPECT_EQ(path_with("venv: .venv\n", ""), here + "/.venv/libnccl.so.2");
  EXPECT_EQ(path_with("venv: .venv\n", preload + ", venv: train"), here + "/train/libnccl.so.2");
  EXPECT_EQ(path_with("venv: /opt/venv\n", preload + ", wrapper: [apptainer, exec, a.sif]"),
            "/home/user/other/libnccl.so.2")
      << "the venv of a role in a container is its image's";
}

TEST_F(BuildPlan, AnUnknownLibraryIsSaidWithWhatElse) {
  constexpr const char* kRoles = "roles: {learner: {kind: learner, preload: [nccl], command: [t]}}\n";
  EXPECT_EQ(build_from(kRoles, "scheduler: {kind: local}\n").error().items().front().hint,
            "choose a profile that has it with --site (`nlaunch sites` lists them), or add it under "
            "`libraries:` of this one");
  EXPECT_EQ(build_from(kRoles, "scheduler: {kind: local}\nlibraries: {aws: {path: /a}}\n")
                .error()
                .items()
                .front()
                .hint,
            "it defines aws; --site selects another profile");
}

TEST_F(BuildPlan, ReferencesAreResolvedOrKeptForTheNode) {
  const auto plan = build_from(R"(vars: {model: "${env.MODEL}", path: "/m/${vars.model}"}
roles:
  engine: {kind: engine, gpus: 1, ports: [http], command: [s, "${vars.path}", "${self.ports.http}", "${env.NO:-d}", "$${x}"]}
)",
                               kCluster);
  ASSERT_TRUE(plan) << render(plan.error());
  EXPECT_EQ(plan->roles[0].command,
            (std::vector<std::string>{"s", "/m/small", "${self.ports.http}", "d", "$${x}"}));
}

TEST_F(BuildPlan, VarsAndWorkingFoldersMayHoldWhatOnlyTheNodeKnows) {
  const auto plan = build_from(R"(vars: {out: "${run.dir}/out"}
roles:
  learner: {kind: learner, gpus: 1, workdir: "${run.dir}", command: [python, train.py, "${vars.out}/${self.index}"]}
)",
                               kCluster);
  ASSERT_TRUE(plan) << render(plan.error());
  EXPECT_EQ(plan->roles[0].command.back(), "${run.dir}/out/${self.index}");
  EXPECT_EQ(plan->roles[0].workdir, "${run.dir}");
}

TEST_F(BuildPlan, WrongReferencesAreAllReportedAtTheirPlaces) {
  const auto plan = build_from(R"(vars: {a: "${vars.b}", b: "${vars.a}"}
roles:
  engine: {kind: engine, command: [s, "--m=${vars.aa}", "${env.API_KEY}", "${self.rank}", "${role.engin.count}"]}
)",
                               kCluster);
  const auto text = refusal(plan);
  EXPECT_NE(
      text.find(
          "experiment.yaml:3:28: error: vars refer to each other in a cycle: a → b → a [plan.cyclic-vars]"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("experiment.yaml:5:44: error: unknown name '${vars.aa}': did you mean '${vars.a}'?"),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find("'${env.API_KEY}' would put a secret into the plan: declare it as `secrets: {API_KEY: env}`"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("'${self.rank}': role 'engine' has no rendezvous; use ${self.index}"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("did you mean '${role.engine.count}'?"), std::string::npos) << text;
  EXPECT_NE(text.find("\n5 errors\n"), std::string::npos) << text;
}

TEST_F(BuildPlan, EnvironmentLayersStandInTheirOrder) {
  const auto plan = build_from(R"(env: {A: experiment}
overlays: {extra: {env: {set: {A: overlay}}}}
roles:
  engine: {kind: engine, command: [s], env: {A: role}}
)",
                               std::string(kCluster) + "env: {set: {A: site}}\n",
                               {{}, 0, {"extra"}, {"engine:A=typed", "learner:A=no"}});
  EXPECT_EQ(
      refusal(plan),
      "--env:1:1: error: unknown role 'learner' [plan.env-option]\n   1 | learner:A=no\n     | ^^^^^^^\n"
      "hint: the roles are engine\n");
  const auto good =
      build_from("env: {A: experiment}\nroles: {engine: {kind: engine, command: [s], env: {A: role}}}\n",
                 std::string(kCluster) + "env: {set: {A: site}}\n", {{}, 0, {}, {"A=typed"}});
  ASSERT_TRUE(good) << render(good.error());
  std::vector<std::string> values;
  for (const auto& op : good->roles[0].env) {
    if (op.name == "A") values.push_back(op.value);
  }
  EXPECT_EQ(values, (std::vector<std::string>{"site", "experiment", "role", "typed"}));
}

TEST_F(BuildPlan, PathsOfSlurmAreAbsolute) {
  fs::create_directory(folder_ / "bases");
  write("bases/base.yaml",
        "version: 1\nname: base\nscheduler: {kind: slurm, template: own/job.sbatch, directives: {error: "
        "\"~/%u/%j.err\"}}\n");
  const auto plan = build_from(
      "workdir: work\nslurm: {output: logs/%j.log}\nroles: {engine: {kind: engine, command: [s]}}\n",
      "extends: bases/base.yaml\nnode: {gpus: 4}\n");
  ASSERT_TRUE(plan) << render(plan.error());
  EXPECT_EQ(plan->slurm.template_file, (folder_ / "bases/own/job.sbatch").string());
  ASSERT_EQ(plan->slurm.directives.size(), 2U);
  EXPECT_EQ(plan->slurm.directives[0].value, "/home/user/%u/%j.err");
  EXPECT_EQ(plan->slurm.directives[1].value, (folder_ / "work/logs/%j.log").string());
}

TEST_F(BuildPlan, JsonReadsBackAsTheSamePlan) {
  const auto plan = build_from(R"(nodes: 2
secrets: {TOKEN: env}
roles:
  learner: {kind: learner, per_node: 1, gpus: 1, rendezvous: torch, command: [t], stop: {signal: INT, grace: 5s}, ready: {exec: [ask, "${self.rank}"]}}
  engine: {kind: engine, count: 2, gpus: 2, ports: [http], command: [s], ready: {tcp: "h:1", timeout: 3s}, env: {MY_API_KEY: hush}}
start: [[engine], [learner]]
)",
                               std::string(kCluster) +
                                   "env: {when: [{nodes: \">1\", nccl: \">=2.27\", set: {A: "
                                   "b}}]}\nlibraries: {nccl: {path: /x/lib*.so}}\n");
  ASSERT_TRUE(plan) << render(plan.error());
  const auto text = to_json(*plan).dump();
  EXPECT_EQ(text.find("hush"), std::string::npos);
  const auto back = from_json(text, "plan.json");
  ASSERT_TRUE(back) << render(back.error());
  EXPECT_EQ(to_json(*back).dump(), text);
  EXPECT_TRUE(std::ranges::any_of(back->roles[1].env,
                                  [](const EnvOp& op) { return op.name == "MY_API_KEY" && op.masked; }));
}

TEST(PlanJson, DamagedTextsAreRefusedWithTheReason) {
  const auto message = [](const std::string& text) {
    const auto plan = from_json(text, "p.json");
    return plan ? std::string() : plan.error().first_message();
  };
  EXPECT_EQ(message("{}"), "'p.json' cannot be read as a plan: it is not an nlaunch plan");
  EXPECT_EQ(message(R"({"format": "nlaunch plan", "version": 9})"),
            fmt::format("'p.json' has version 9 of the format 'nlaunch plan'; this nlaunch ({}) supports 1",
                        version()));
  EXPECT_EQ(message(R"({"format": "nlaunch plan", "version": 1, "name": "../x"})"),
            "'p.json' cannot be read as a plan: '../x' is not a valid experiment name");
  EXPECT_EQ(message("{"), "'p.json' cannot be read as a plan: it is not JSON");
  EXPECT_EQ(message(R"({"format": "nlaunch plan", "version": 1})"),
            "'p.json' cannot be read as a plan: key 'name' not found");
}

}  // namespace
}  // namespace nlaunch::plan
