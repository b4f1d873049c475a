#include <csignal>

#include "unit/config/support.h"

namespace nlaunch::config {
namespace {

using namespace std::chrono_literals;
using ExperimentFile = Folder;

constexpr std::string_view kWhole = R"(
version: 1
name: grpo-olmo3-7b
nodes: 2
workdir: .
venv: .venv
vars: {model: allenai/OLMo-3-1025-7B, size: 7}
roles:
  learner:
    kind: learner
    per_node: 1
    gpus: 1
    command: [python, train.py, --model, "${vars.model}", --sync, "${weight_sync.backend}"]
    rendezvous: torch
    preload: [nccl]
    env: {PYTORCH_CUDA_ALLOC_CONF: "expandable_segments:True"}
    stop: {signal: INT, grace: 60s}
    restart: {policy: never}
  engine:
    kind: engine
    count: 6
    gpus: 1
    ports: [http]
    command: [vllm, serve, --port, "${self.ports.http}", 8]
    ready: {http: "http://${self.host}:${self.ports.http}/health", timeout: 20m}
    restart: {policy: on-failure, max: 2, backoff: 1s}
  judge: {kind: service, per: node, except: engine, command: [judge], exit: ok, leave: true, scope: tree}
  actor: {kind: learner, spawned_by: [judge], classify: "ray::PolicyTrainer*", ends_run: false}
start: [[engine, learner], judge]
weight_sync: {backend: gloo}
secrets: {HF_TOKEN: env, WANDB_API_KEY: {netrc: api.wandb.ai}, OTHER: {file: ~/.other}, MINE: {env: YOURS}}
walltime: {signal: USR1, before: 10m, then: chain, max: 3, min_runtime: 15m}
preflight: {level: quick, strict: true}
audit: {mode: enforce}
watch: {progress: 'step (\d+)', start: 60m, stall: 10m, on_stall: abort, metrics: {sync: 'took ([\d.]+)s'}}
restart: {policy: on-failure, max: 1}
signals: {USR1: [learner, judge], USR2: all, HUP: ignore}
slurm: {time: "24:00:00", exclusive: true, gpus-per-node: 4}
overlays: {debug: {env: {set: {NCCL_DEBUG: INFO}}, set: {preflight.level: standard, nodes: 1}}}
)";

TEST_F(ExperimentFile, ReadsTheHead) {
  const auto read = experiment(kWhole);
  EXPECT_EQ(read.path, folder() + "/input.yaml");
  EXPECT_EQ(read.name.value, "grpo-olmo3-7b");
  EXPECT_EQ(read.nodes.value, 2U);
  EXPECT_EQ(read.nodes.span.where(), folder() + "/input.yaml:4:8");
  EXPECT_EQ(read.workdir->value, ".");
  ASSERT_EQ(read.vars.size(), 2U);
  EXPECT_EQ(read.vars[1].first.value, "size");
  EXPECT_EQ(read.vars[1].second.value, "7");
  EXPECT_EQ(read.slurm[0].second.value, "24:00:00");
  EXPECT_EQ(read.slurm[1].second.value, "true");
}

TEST_F(ExperimentFile, ReadsARole) {
  const auto learner = experiment(kWhole).roles.at(0);
  EXPECT_EQ(learner.name.value, "learner");
  EXPECT_EQ(learner.kind, RoleKind::learner);
  EXPECT_EQ(learner.per_node->value, 1U);
  EXPECT_EQ(learner.gpus.value, 1U);
  EXPECT_EQ(words(learner.command), "python train.py --model ${vars.model} --sync ${weight_sync.backend}");
  EXPECT_EQ(learner.rendezvous, Rendezvous::torch);
  EXPECT_EQ(words(learner.preload), "nccl");
  EXPECT_EQ(words(learner.env), "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  EXPECT_EQ(learner.stop.signal, SIGINT);
  EXPECT_EQ(learner.stop.grace, 60s);
  EXPECT_FALSE(learner.restart.on_failure);
}

TEST_F(ExperimentFile, ReadsEnginesAndServices) {
  const auto roles = experiment(kWhole).roles;
  EXPECT_EQ(roles[1].count->value, 6U);
  EXPECT_EQ(words(roles[1].ports), "http");
  EXPECT_EQ(roles[1].command.back().value, "8");
  EXPECT_EQ(roles[1].ready->http->value, "http://${self.host}:${self.ports.http}/health");
  EXPECT_EQ(roles[1].ready->timeout->value, 20min);
  EXPECT_TRUE(roles[1].restart.on_failure);
  EXPECT_EQ(roles[1].restart.backoff, 1s);
  EXPECT_EQ(roles[2].per->value, Role::Per::node);
  EXPECT_EQ(roles[2].except->value, "engine");
  EXPECT_TRUE(roles[2].exit_ok && roles[2].leave);
  EXPECT_EQ(roles[2].scope, PreloadScope::tree);
  EXPECT_EQ(words(roles[3].spawned_by), "judge");
  EXPECT_EQ(roles[3].classify->value, "ray::PolicyTrainer*");
  EXPECT_EQ(roles[3].ends_run, false);
}

TEST_F(ExperimentFile, ReadsOrderAndPolicies) {
  const auto read = experiment(kWhole);
  ASSERT_EQ(read.start.size(), 2U);
  EXPECT_EQ(words(read.start[0]), "engine learner");
  EXPECT_EQ(words(read.start[1]), "judge");
  EXPECT_EQ(read.weight_syncs.front().backend.value, SyncBackend::gloo);
  EXPECT_EQ(read.walltime->signal, SIGUSR1);
  EXPECT_EQ(read.walltime->then, Walltime::Then::chain);
  EXPECT_EQ(read.walltime->max, 3U);
  EXPECT_EQ(read.preflight_level, PreflightLevel::quick);
  EXPECT_TRUE(read.preflight_strict);
  EXPECT_EQ(read.audit, AuditMode::enforce);
  EXPECT_EQ(read.watch->progress->value, "step (\\d+)");
  EXPECT_EQ(read.watch->on_stall, OnStall::abort);
  EXPECT_EQ(read.watch->metrics[0].first.value, "sync");
  EXPECT_EQ(read.restart.max, 1U);
}

TEST_F(ExperimentFile, ATaskIsReadyWhenItHasExited) {
  const auto read = experiment(R"(version: 1
name: a
roles:
  convert: {kind: task, gpus: 1, timeout: 1h, retries: 2, command: [a]}
  learner: {kind: learner, command: [a]}
  fetch: {kind: task, command: [a]}
  actor: {kind: learner, spawned_by: learner}
)");
  const auto& convert = read.roles.at(0);
  EXPECT_EQ(convert.kind, RoleKind::task);
  EXPECT_TRUE(convert.ready->exited);
  EXPECT_EQ(convert.ready->timeout->value, 1h);
  EXPECT_TRUE(convert.restart.on_failure);
  EXPECT_EQ(convert.restart.max, 2U);
  EXPECT_EQ(read.roles.at(2).ready->timeout, std::nullopt);
  EXPECT_FALSE(read.roles.at(2).restart.on_failure);
  ASSERT_EQ(read.start.size(), 3U);
  EXPECT_EQ(words(read.start[0]), "convert");
  EXPECT_EQ(words(read.start[1]), "fetch");
  EXPECT_EQ(words(read.start[2]), "learner");
}

TEST_F(ExperimentFile, ARoleMayShareTheGpusOfOthers) {
  const auto read = experiment(R"(version: 1
name: a
roles:
  actor: {kind: learner, gpus: 1, gpu_memory: 0.5, command: [a]}
  critic: {kind: learner, gpus: 1, command: [a]}
  engine: {kind: engine, gpus: 2, share_gpus_with: [actor, critic], gpu_memory: 0.45, command: [a]}
)");
  EXPECT_EQ(words(read.roles.at(2).share_gpus_with), "actor critic");
  EXPECT_EQ(read.roles.at(2).gpu_memory->value, 0.45);
  EXPECT_EQ(read.roles.at(0).gpu_memory->value, 0.5);
  EXPECT_TRUE(read.start.empty());
}

TEST_F(ExperimentFile, ReadsSecretsBySource) {
  const auto secrets = experiment(kWhole).secrets;
  ASSERT_EQ(secrets.size(), 4U);
  EXPECT_EQ(secrets[0].source, Secret::Source::env);
  EXPECT_EQ(secrets[0].from.value, "HF_TOKEN");
  EXPECT_EQ(secrets[1].source, Secret::Source::netrc);
  EXPECT_EQ(secrets[1].from.value, "api.wandb.ai");
  EXPECT_EQ(secrets[2].source, Secret::Source::file);
  EXPECT_EQ(secrets[3].source, Secret::Source::env);
  EXPECT_EQ(secrets[3].from.value, "YOURS");
}

TEST_F(ExperimentFile, ReadsSignals) {
  const auto signals = experiment(kWhole).signals;
  EXPECT_EQ(signals.at(SIGTERM).action, SignalRule::Action::stop);
  EXPECT_EQ(signals.at(SIGHUP).action, SignalRule::Action::ignore);
  EXPECT_EQ(signals.at(SIGUSR1).action, SignalRule::Action::forward);
  EXPECT_EQ(signals.at(SIGUSR1).roles, (std::vector<std::string>{"learner", "judge"}));
  EXPECT_EQ(signals.at(SIGUSR2).action, SignalRule::Action::forward);
  EXPECT_TRUE(signals.at(SIGUSR2).roles.empty());
}

TEST_F(ExperimentFile, ForwardsUserSignalsToLearnersByDefault) {
  const auto signals = experiment(with_role("")).signals;
  EXPECT_EQ(signals.at(SIGTERM).action, SignalRule::Action::stop);
  EXPECT_EQ(signals.at(SIGHUP).action, SignalRule::Action::stop);
  EXPECT_EQ(signals.at(SIGUSR2).action, SignalRule::Action::forward);
  EXPECT_EQ(signals.at(SIGUSR2).roles, std::vector<std::string>{"learner"});
  const auto without = experiment("version: 1\nname: a\nroles: {a: {kind: service, command: [a]}}\n").signals;
  EXPECT_EQ(without.at(SIGUSR1).action, SignalRule::Action::ignore);
}

TEST_F(ExperimentFile, TakesValuesOfAnEnvironmentAsWritten) {
  const auto env =
      experiment(with_role("env: {A: 1, B: true, C: 010, D: null, E: '', F: 1.50, G: off}\n")).env;
  EXPECT_EQ(words(env), "D! A=1 B=true C=010 E= F=1.50 G=off");
}

TEST_F(ExperimentFile, ReadsAnEnvironmentBlock) {
  const auto env =
      experiment(with_role("env:\n  append: {PATH: /b}\n  set: {A: 1}\n  prepend: {PATH: /a}\n"
                           "  unset: B\n  when:\n"
                           "  - {nodes: '>1', nccl: '>=2.27', kind: engine, gpu: 'H*', set: {C: 3}}\n"))
          .env;
  EXPECT_EQ(words(env), "B! A=1 PATH</a PATH>/b C=3?");
  const auto& when = env.back().when;
  EXPECT_EQ(when.nodes->str(), ">1");
  EXPECT_EQ(when.library.at("nccl").str(), ">=2.27");
  EXPECT_EQ(when.kind, RoleKind::engine);
  EXPECT_EQ(when.gpu, "H*");
}

TEST_F(ExperimentFile, CopiesWhatAnAliasStandsFor) {
  const auto read = experiment(
      "version: 1\nname: a\nroles:\n"
      "  one: {kind: engine, command: &command [serve, --fast], env: &env {A: 1}}\n"
      "  two: {kind: engine, command: *command, env: *env}\n");
  EXPECT_EQ(words(read.roles[1].command), "serve --fast");
  EXPECT_EQ(words(read.roles[1].env), "A=1");
}

TEST_F(ExperimentFile, AppliesSettingsFirstToLast) {
  const auto read =
      experiment(kWhole, {"roles.engine.count=2", "roles.engine.count=12", "site.node.gpus=8",
                          "vars.size=a=b", "roles.learner.command=[bash, -c, 'a b']", "nodes=4"});
  EXPECT_EQ(read.roles[1].count->value, 12U);
  EXPECT_EQ(read.roles[1].count->span.where(), "--set:1:20");
  EXPECT_EQ(read.vars.back().second.value, "a=b");
  EXPECT_EQ(read.roles[0].command.back().value, "a b");
  EXPECT_EQ(read.nodes.value, 4U);
}

TEST_F(ExperimentFile, AppliesChosenOverlaysBelowSettings) {
  EXPECT_EQ(experiment(kWhole).preflight_level, PreflightLevel::quick);
  const auto chosen = experiment(kWhole, {}, {"debug", "of-the-site"});
  EXPECT_EQ(chosen.preflight_level, PreflightLevel::standard);
  EXPECT_EQ(chosen.nodes.value, 1U);
  EXPECT_EQ(words(chosen.overlays[0].env), "NCCL_DEBUG=INFO");
  EXPECT_EQ(experiment(kWhole, {"nodes=3"}, {"debug"}).nodes.value, 3U);
}

TEST_F(ExperimentFile, ReadsAFileWithByteOrderMarkAndCrlf) {
  auto text = "\xEF\xBB\xBF" + with_role("workdir: /data\n");
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2)
    text.replace(at, 1, "\r\n");
  const auto read = experiment(text);
  EXPECT_EQ(read.name.span.where(), folder() + "/input.yaml:2:7");
  EXPECT_EQ(read.workdir->value, "/data");
}

TEST(ShippedConfigs, Load) {
  for (const auto& entry : std::filesystem::directory_iterator(NLAUNCH_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    const auto read = load_experiment(entry.path(), {}, {});
    EXPECT_TRUE(read) << render(read.error());
  }
}

}  // namespace
}  // namespace nlaunch::config
