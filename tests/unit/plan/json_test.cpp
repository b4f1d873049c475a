#include "plan/json.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "plan/described_json.h"

/// The plan as JSON and back; the form itself is in the golden files.
namespace nlaunch::plan {
namespace {

Plan whole_plan() {
  Plan plan;
  plan.name = "grpo";
  plan.scheduler = "slurm";
  plan.node = {2, 4, 72, false, "GH200", "aarch64", "hsn", "cxi", 4, "/tmp"};
  plan.slurm = {{{"time", "1:00:00", "site.yaml:3:5"}, {"exclusive", "", "site.yaml:4:5"}},
                {"sbatch"},
                {"--network=single_node_vni"},
                "/site/job.sh.in",
                1,
                "/site/bad-nodes",
                std::chrono::hours(24)};
  plan.walltime = Walltime{10, std::chrono::minutes(5), Walltime::Then::chain, 3, std::chrono::minutes(1)};
  Role role;
  role.name = "learner";
  role.kind = RoleKind::learner;
  role.command = {"python", "train.py"};
  role.command_origin = "grpo.yaml:4:14";
  role.count = 8;
  role.gpus = 1;
  role.rendezvous = Rendezvous::torch;
  role.scope = PreloadScope::tree;
  role.ready.delay = std::chrono::seconds(3);
  role.stop = {2, std::chrono::seconds(90)};
  role.wrapper = {"apptainer", "exec", "image.sif"};
  role.wrapper_origin = "grpo.yaml:5:14";
  EnvOp op{EnvOp::Kind::prepend, "PATH", "/opt/bin", Layer::command_line, "--env PATH", {}, false};
  op.when.nodes = VersionRange::parse(">1").value();
  op.when.kind = RoleKind::engine;
  op.when.library.emplace("nccl", VersionRange::parse("<2.28").value());
  role.env = {op};
  plan.roles = {role};
  plan.processes = {{0, 0, 0, 0, 0, 1, 0, {0}, {20100}}};
  plan.groups = {{"learner world", GroupKind::tensor_parallel, Backend::gloo, {{0, 0}}}};
  plan.stages = {{0}};
  plan.libraries["nccl"] = {"/opt/nccl/lib/libnccl.so.2", VersionRange::parse(">=2.27").value(),
                            "site.yaml:9:3"};
  plan.modules.set = {{"A", "1"}};
  plan.secrets = {{"HF_TOKEN", Secret::Source::file, "/home/user/token", "grpo.yaml:7:3"}};
  plan.expected.all_reduce_busbw = {
      {4, VersionRange::parse("1").value(), 1U << 30U, 3e11, "site.yaml:20:7", 4e11},
      {std::nullopt, std::nullopt, 8, 1, "site.yaml:21:7", 0}};
  plan.preflight = {PreflightLevel::deep, true};
  plan.audit = AuditMode::enforce;
  plan.signals[12] = {SignalRule::Action::forward, {"learner"}};
  plan.watch = Watch{"step (\\d+)",  std::chrono::minutes(1),  std::chrono::minutes(2), 3,
                     OnStall::abort, {{"loss", "loss (\\S+)"}}};
  plan.checkpoint = Checkpoint{.dir = "${run.dir}/ckpt",
                               .folder = "step_(\\d+)",
                               .complete = "done",
                               .tracker = "",
                               .partial = "",
                               .saved = "",
                               .wait = std::chrono::minutes(5),
                               .resume = {"--resume", "${resume.path}"}};
  plan.leader_grace = std::chrono::minutes(3);
  return plan;
}

Result<Plan> read_back(const json& text) {
  return from_json(json_text(text), "plan.json");
}

TEST(PlanJson, ItsTextIsThatOfItsTree) {
  auto none = whole_plan();
  none.processes.clear();
  none.groups.clear();
  auto lines = whole_plan();
  lines.vars["text"] = "two\nlines, \"processes\": []";
  for (const auto& plan : {whole_plan(), none, lines})
    for (const int indent : {-1, 0, 2, 4}) EXPECT_EQ(to_text(plan, indent), json_text(to_json(plan), indent));
}

TEST(PlanJson, IsReadBackAsItWas) {
  const json written = to_json(whole_plan());
  const auto read = read_back(written);
  ASSERT_TRUE(read) << render(read.error());
  EXPECT_EQ(json(to_json(*read)), written);
  EXPECT_EQ(read->roles[0].env[0].when.library.at("nccl").str(), "<2.28");
  EXPECT_EQ(read->walltime->then, Walltime::Then::chain);
  EXPECT_EQ(read->signals.at(12).action, SignalRule::Action::forward);
  EXPECT_EQ(read->groups[0].kind, GroupKind::tensor_parallel);
  EXPECT_EQ(read->expected.all_reduce_busbw[1].gpus_per_node, std::nullopt);
  EXPECT_EQ(read->modules.set, whole_plan().modules.set);
  EXPECT_EQ(read->checkpoint->folder, "step_(\\d+)");
  EXPECT_EQ(read->checkpoint->wait, std::chrono::minutes(5));
  EXPECT_EQ(read->leader_grace, std::chrono::minutes(3));
}

TEST(PlanJson, LeavesOutWhatARoleDoesNotSay) {
  const json role = to_json(whole_plan())["roles"][0];
  EXPECT_EQ(role["ready"], (json{{"delay_ms", 3000}, {"timeout_ms", 600000}}));
  EXPECT_EQ(role["stop"], (json{{"signal", 2}, {"grace_ms", 90000}}));
  auto plain = whole_plan();
  plain.roles[0].wrapper.clear();
  plain.roles[0].wrapper_origin.clear();
  EXPECT_FALSE(json(to_json(plain))["roles"][0].contains("wrapper"));
}

TEST(PlanJson, ARoleSaysWhoseGpusItIsOn) {
  auto plan = whole_plan();
  EXPECT_FALSE(json(to_json(plan))["roles"][0].contains("share_gpus_with"));
  plan.roles[0].share_gpus_with = {"learner"};
  plan.roles[0].gpu_memory = 0.45;
  const json written = to_json(plan);
  EXPECT_EQ(written["roles"][0]["share_gpus_with"], json{"learner"});
  EXPECT_EQ(written["roles"][0]["gpu_memory"], 0.45);
  const auto read = read_back(written);
  ASSERT_TRUE(read) << render(read.error());
  EXPECT_EQ(json(to_json(*read)), written);
}

TEST(PlanJson, ALibraryMayHaveNoVersion) {
  auto plan = whole_plan();
  plan.libraries["nccl"].version.reset();
  const json written = to_json(plan);
  EXPECT_EQ(written["libraries"]["nccl"]["version"], "");
  const auto read = read_back(written);
  ASSERT_TRUE(read) << render(read.error());
  EXPECT_EQ(read->libraries.at("nccl").version, std::nullopt);
  EXPECT_EQ(json(to_json(*read)), written);
}

TEST(PlanJson, AnOlderPlanLacksTwoKeys) {
  json older = to_json(whole_plan());
  older["roles"][0].erase("command_origin");
  older["roles"][0].erase("heartbeat");
  const auto read = read_back(older);
  ASSERT_TRUE(read) << render(read.error());
  EXPECT_EQ(read->roles[0].command_origin, "plan.json");
}

TEST(PlanJson, SaysWhatDoesNotFit) {
  const auto message = [](const std::function<void(json&)>& damage) {
    json damaged = to_json(whole_plan());
    damage(damaged);
    const auto read = read_back(damaged);
    return read ? "read" : read.error().first_message();
  };
  const std::string kBegin = "'plan.json' cannot be read as a plan: ";
  EXPECT_EQ(message([](json& plan) { plan["audit"] = "loud"; }), kBegin + "unknown word \"loud\"");
  EXPECT_EQ(message([](json& plan) { plan["roles"][0]["kind"] = 3; }), kBegin + "unknown word 3");
  EXPECT_EQ(message([](json& plan) { plan["node"].erase("gpus"); }), kBegin + "key 'gpus' not found");
  EXPECT_EQ(message([](json& plan) { plan["walltime"]["then"] = "rest"; }), kBegin + "unknown word \"rest\"");
  EXPECT_EQ(message([](json& plan) { plan["roles"][0]["command"] = "python"; }),
            kBegin + "type must be array, but is string");
  EXPECT_EQ(message([](json& plan) { plan["roles"][0]["env"][0]["when"]["kind"] = nullptr; }),
            kBegin + "type must be a value, but is null");
  EXPECT_EQ(message([](json& plan) { plan["libraries"] = json::array({1}); }),
            kBegin + "type must be object, but is array");
  EXPECT_EQ(message([](json& plan) { plan["roles"][0]["env"][0]["when"] = 3; }),
            kBegin + "type must be object, but is number");
  EXPECT_EQ(
      message([](json& plan) { plan["libraries"]["nccl"]["version"] = "new"; }).substr(0, kBegin.size()),
      kBegin);
  EXPECT_EQ(message([](json& plan) { plan["scheduler"] = "pbs"; }), kBegin + "unknown word \"pbs\"");
  EXPECT_EQ(message([](json& plan) { plan["processes"][0]["node"] = 2; }), kBegin + "unknown node 2");
  EXPECT_EQ(message([](json& plan) { plan["processes"][0]["node"] = 1; }), "read");
  EXPECT_EQ(message([](json& plan) {
              plan["processes"][0]["gpus"] = json::array({3, 4});
            }),
            kBegin + "a node has no GPU 4");
  EXPECT_EQ(message([](json& plan) { plan["processes"][0]["gpus"] = json::array({3}); }), "read");
  EXPECT_EQ(message([](json& plan) {
              plan["groups"][0]["members"] = {{0, 1}, {1, 0}};
            }),
            kBegin + "a group names no process");
}

TEST(PlanJson, WhoAndWhereIsReadBack) {
  auto plan = whole_plan();
  plan.roles.push_back(plan.roles[0]);
  plan.roles[1].name = "engine";
  plan.processes = {{0, 0, 3, 0, 0, 1, 0, {0}, {20100}}, {1, 1, -1, 1, 2, 3, 1, {1, 2}, {20101, 20102}}};
  plan.groups[0].members = {{0, 0}, {1, 2}};
  plan.idle_gpus = {{1, 3}};
  plan.stages = {{1}, {0}};
  const json written = to_json(plan);
  const auto read = read_back(written);
  ASSERT_TRUE(read) << render(read.error());
  EXPECT_EQ(json(to_json(*read)), written);
  const auto& second = read->processes.at(1);
  EXPECT_EQ(read->name_of(second), "engine.1");
  EXPECT_EQ(second.rank, -1);
  EXPECT_EQ(second.node, 1U);
  EXPECT_EQ(second.local_rank, 2U);
  EXPECT_EQ(second.local_size, 3U);
  EXPECT_EQ(second.node_rank, 1U);
  EXPECT_EQ(second.gpus, (std::vector<std::uint16_t>{1, 2}));
  EXPECT_EQ(second.ports, (std::vector<std::uint16_t>{20101, 20102}));
  EXPECT_EQ(read->groups.at(0).members.at(1).process, 1U);
  EXPECT_EQ(read->groups.at(0).members.at(1).gpu, 2U);
  EXPECT_EQ(read->idle_gpus.at(0).node, 1U);
  EXPECT_EQ(read->idle_gpus.at(0).gpu, 3U);
  EXPECT_EQ(read->stages, (std::vector<std::vector<std::uint32_t>>{{1}, {0}}));
}

TEST(PlanJson, AnOperationOnASecretKeepsNoValue) {
  const auto written = [](EnvOp::Kind kind, const char* name) {
    return write(EnvOp{kind, name, "hush", Layer::role, "here", {}, false}).dump();
  };
  EXPECT_EQ(written(EnvOp::Kind::set, "A"),
            R"({"op":"set","name":"A","value":"hush","layer":"role","origin":"here"})");
  EXPECT_EQ(written(EnvOp::Kind::set, "API_KEY"),
            R"({"op":"set","name":"API_KEY","masked":true,"layer":"role","origin":"here"})");
  EXPECT_EQ(written(EnvOp::Kind::unset, "A"), R"({"op":"unset","name":"A","layer":"role","origin":"here"})");
  EXPECT_EQ(written(EnvOp::Kind::unset, "API_KEY"),
            R"({"op":"unset","name":"API_KEY","layer":"role","origin":"here"})");
  EnvOp back;
  read(json::parse(written(EnvOp::Kind::set, "API_KEY")), back);
  EXPECT_TRUE(back.masked);
  EXPECT_EQ(back.value, "");
  read(json::parse(written(EnvOp::Kind::set, "A")), back);
  EXPECT_FALSE(back.masked);
  EXPECT_EQ(back.value, "hush");
  EXPECT_TRUE(back.when.always());
}

TEST(PlanJson, AnExpectationSaysALimitWhereThereIsOne) {
  EXPECT_EQ(
      write(Expectation{2, VersionRange::parse(">1").value(), 8, 3e9, "here", 4e9}).dump(),
      R"({"gpus_per_node":2,"nodes":">1","size":8,"min":3000000000.0,"origin":"here","limit":4000000000.0})");
  const auto plain = write(Expectation{std::nullopt, std::nullopt, 8, 3e9, "here", 0});
  EXPECT_EQ(plain.dump(), R"({"gpus_per_node":0,"nodes":"","size":8,"min":3000000000.0,"origin":"here"})");
  auto older = json(plain);
  older.erase("nodes");
  Expectation back;
  read(older, back);
  EXPECT_EQ(back.gpus_per_node, std::nullopt);
  EXPECT_EQ(back.nodes, std::nullopt);
  EXPECT_EQ(back.limit, 0);
  older["gpus_per_node"] = 1;
  read(older, back);
  EXPECT_EQ(back.gpus_per_node, 1U);
}

TEST(PlanJson, WhatNobodyAskedForIsLeftOut) {
  auto plan = whole_plan();
  plan.walltime.reset();
  plan.watch.reset();
  plan.scheduler = "local";
  const json written = to_json(plan);
  for (const auto* key : {"walltime", "watch", "bench", "slurm", "local"})
    EXPECT_FALSE(written.contains(key)) << key;
  const auto read = read_back(written);
  ASSERT_TRUE(read) << render(read.error());
  EXPECT_EQ(read->walltime, std::nullopt);
  EXPECT_EQ(read->watch, std::nullopt);
  EXPECT_EQ(json(to_json(*read)), written);
}

TEST(PlanJson, SaysWhatCanBeReadInstead) {
  const auto read = from_json("[1]", "list.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(render(read.error()),
            "error: 'list.json' cannot be read as a plan: it is not JSON [plan.file]\n"
            "hint: --plan accepts the plan.json of a run or the output of `nlaunch plan --json`; pass an "
            "experiment without --plan\n");
}

}  // namespace
}  // namespace nlaunch::plan
