#include "launch/bind/bind.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "launch/run_dir/run_folder.h"
#include "plan/bound_json.h"

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;

class Bind : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "nlaunch-bind-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    paths_ = make_run_folder(folder_, "test").value();
    ASSERT_TRUE(make_attempt_folder(paths_, 0));
    plan_.name = "test";
    plan_.node = {1, 2, 0, false, "H200", "x86_64", "", "", 0, folder_.string()};
    plan_.weight_syncs.front().world_size = 2;
    plan_.weight_syncs.front().port = 20100;
    add_role("learner", RoleKind::learner, {0});
    add_role("engine", RoleKind::engine, {1});
    plan_.roles[0].rendezvous = Rendezvous::torch;
    plan_.roles[0].rendezvous_port = 20101;
    plan_.processes[0].rank = 0;
    plan_.roles[1].ports = {"http"};
    plan_.processes[1].ports = {20102};
  }
  void TearDown() override { fs::remove_all(folder_); }

  void add_role(const std::string& name, RoleKind kind, std::vector<std::uint16_t> gpus) {
    plan::Role role;
    role.name = name;
    role.kind = kind;
    role.command = {"true"};
    role.workdir = folder_.string();
    role.count = 1;
    role.gpus = 1;
    plan_.processes.push_back(
        {static_cast<std::uint32_t>(plan_.roles.size()), 0, -1, 0, 0, 1, 0, std::move(gpus), {}});
    plan_.roles.push_back(std::move(role));
  }

  /// Its ports are kept while it lives.
  struct Bound {
    plan::BoundNode node;
    Ports ports;
  };
  Result<Bound> bind_here() {
    auto plan = plan_;
    Ports ports;
    if (auto claimed = claim_ports(plan, 0, ports); !claimed) return std::unexpected(claimed.error());
    const Install install{"/no/nlaunch", "/no/probe", "/no/scope.so", ""};
    auto node = bind_node({plan, 0, paths_, machine_, install, environment_, claim_ras_ports(plan, 0, ports)},
                          one_machine(machine_.host));
    if (!node) return std::unexpected(node.error());
    return Bound{std::move(*node), std::move(ports)};
  }

  static std::string value(const plan::BoundProcess& process, const std::string& name) {
    const auto found = std::ranges::find(process.env, name, &std::pair<std::string, std::string>::first);
    return found == process.env.end() ? "(not set)" : found->second;
  }

  fs::path folder_;
  RunPaths paths_;
  plan::Plan plan_;
  Machine machine_{"host", "x86_64", "580", "", {{"0", "3B", "GPU-a", "H200"}, {"1", "5E", "GPU-b", "H200"}},
                   ""};
  std::vector<std::string> environment_{"PATH=/usr/bin:/bin", "HOME=/root", "NCCL_DEBUG=INFO",
                                        "HUSH=very-secret"};
};

TEST_F(Bind, NoTwoProcessesAnswerAboutNcclAtOnePort) {
  const auto first = bind_here();
  ASSERT_TRUE(first) << render(first.error());
  plan_.weight_syncs.front().port += 1;  // another run of this box, whose wishes are one apart
  const auto second = bind_here();
  ASSERT_TRUE(second) << render(second.error());
  std::set<std::string> addresses;
  for (const auto* bound : {&*first, &*second}) {
    for (const auto& process : bound->node.processes) addresses.insert(value(process, "NCCL_RAS_ADDR"));
  }
  EXPECT_EQ(addresses.size(), 4U);
  EXPECT_FALSE(addresses.contains("(not set)"));
}

TEST_F(Bind, FillsInWhatOnlyTheNodeKnows) {
  plan_.roles[1].command = {"true",        "--port", "${self.ports.http}", "${self.sync_rank}",
                            "${run.name}", "$${x}"};
  plan_.roles[0].command = {"true", "${role.engine.addrs}", "${weight_sync.host}:${weight_sync.port}"};
  const auto bound = bind_here();
  ASSERT_TRUE(bound) << render(bound.error());
  const auto& [learner, engine] = std::tie(bound->node.processes[0], bound->node.processes[1]);
  const auto port = std::to_string(engine.ports.at(0));
  EXPECT_EQ(engine.argv, (std::vector<std::string>{"true", "--port", port, "1", "test", "${x}"}));
  EXPECT_EQ(learner.argv[1], "127.0.0.1:" + port);
  EXPECT_EQ(value(learner, "RANK"), "0");
  EXPECT_EQ(value(learner, "WORLD_SIZE"), "1");
  EXPECT_EQ(value(learner, "MASTER_ADDR"), "127.0.0.1");
  EXPECT_EQ(value(learner, "CUDA_VISIBLE_DEVICES"), "0");
  EXPECT_EQ(value(engine, "CUDA_VISIBLE_DEVICES"), "1");
  EXPECT_EQ(value(engine, "RANK"), "(not set)");
  EXPECT_EQ(value(learner, "NCCL_DEBUG"), "(not set)");
  EXPECT_EQ(bound->node.dropped, (std::vector<std::string>{"NCCL_DEBUG"}));
}

TEST_F(Bind, ARankHasAFileForItsExceptionWhereNoSecretIsKept) {
  const auto bound = bind_here();
  ASSERT_TRUE(bound) << render(bound.error());
  const auto& [learner, engine] = std::tie(bound->node.processes[0], bound->node.processes[1]);
  EXPECT_EQ(learner.error_file, bound->node.scratch + "/errors/learner.0.json");
  EXPECT_EQ(value(learner, "TORCHELASTIC_ERROR_FILE"), learner.error_file);
  EXPECT_EQ(value(engine, "TORCHELASTIC_ERROR_FILE"), "(not set)");
  EXPECT_EQ(engine.error_file, "");
  plan_.roles[0].env = {
      {plan::EnvOp::Kind::set, "TORCHELASTIC_ERROR_FILE", "/mine", plan::Layer::role, "", {}}};
  const auto own = bind_here();
  ASSERT_TRUE(own) << render(own.error());
  EXPECT_EQ(value(own->node.processes[0], "TORCHELASTIC_ERROR_FILE"), "/mine");
  EXPECT_EQ(own->node.processes[0].error_file, "") << "whose it is, reads it";
}

TEST_F(Bind, ATorchRoleOfSeveralGpusGetsNoRankOfItsOwn) {
  plan_.roles[0].gpus = 2;
  plan_.processes[0].gpus = {0, 1};
  plan_.processes.pop_back();
  plan_.roles.pop_back();
  const auto bound = bind_here();
  ASSERT_TRUE(bound) << render(bound.error());
  const auto& learner = bound->node.processes[0];
  EXPECT_EQ(value(learner, "RANK"), "(not set)");
  EXPECT_EQ(value(learner, "NNODES"), "1");
  EXPECT_EQ(value(learner, "NODE_RANK"), "0");
  EXPECT_EQ(value(learner, "CUDA_VISIBLE_DEVICES"), "0,1");
}

TEST_F(Bind, ASpawningServiceSeesTheGpusOfWhatItSpawns) {
  plan_.roles[0].kind = RoleKind::service;
  plan_.roles[0].rendezvous = Rendezvous::none;
  plan_.roles[1].spawned_by = {"learner"};
  plan_.roles[1].command.clear();
  plan_.roles[0].ready.exec = {"true", "${self.gpus}"};
  const auto bound = bind_here();
  ASSERT_TRUE(bound) << render(bound.error());
  EXPECT_EQ(value(bound->node.processes[0], "CUDA_VISIBLE_DEVICES"), "0,1");
  EXPECT_EQ(bound->node.processes[0].ready.exec[1], "2");
  EXPECT_TRUE(fs::exists(paths_.attempt / "env" / "engine.json"));
}

TEST_F(Bind, ASecretIsInTheEnvironmentAndInNoFile) {
  plan_.secrets = {{"MUM", plan::Secret::Source::env, "HUSH", "e.yaml:1:1"}};
  plan_.roles[1].spawned_by = {"learner"};
  plan_.roles[0].command = {"true", "very-secret"};
  const auto bound = bind_here();
  ASSERT_TRUE(bound) << render(bound.error());
  EXPECT_EQ(value(bound->node.processes[0], "MUM"), "very-secret");
  EXPECT_EQ(value(bound->node.processes[0], "HUSH"), "very-secret")
      << "where it comes from is handed on, too";
  EXPECT_EQ(plan::to_json(plan_, bound->node).dump().find("very-secret"), std::string::npos);
  std::ifstream file(paths_.attempt / "env" / "engine.json");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}).find("very-secret"), std::string::npos);
}

TEST_F(Bind, ASecretThatIsTooShortToBeHiddenIsRefused) {
  environment_.back() = "HUSH=abc";
  plan_.secrets = {{"MUM", plan::Secret::Source::env, "HUSH", "e.yaml:1:1"}};
  const auto bound = bind_here();
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().first_message(),
            "secret MUM (e.yaml:1:1): its value has 3 bytes, fewer than the 4 that nlaunch needs to mask it "
            "in logs");
}

TEST_F(Bind, AllThatIsMissingIsSaidAtOnce) {
  plan_.roles[0].command = {"no-such-program"};
  plan_.roles[0].command_origin = "run.yaml:6:14";
  plan_.roles[0].origin = "run.yaml:5:3";
  plan_.roles[0].ready.exec = {"no-such-probe"};
  plan_.roles[1].workdir = "/no/such/folder";
  plan_.roles[1].workdir_origin = "run.yaml:9:14";
  const auto bound = bind_here();
  ASSERT_FALSE(bound);
  const std::string hint =
      "hint: write `venv: DIRECTORY` in role 'learner' (run.yaml:5:3), load its module in the site profile "
      "(`modules: {load: [NAME]}`), or give its full path\n\n";
  EXPECT_EQ(render(bound.error()),
            "error: learner: program 'no-such-program' was not found in PATH (/usr/bin:/bin) (command: "
            "run.yaml:6:14) [launch.program]\n" +
                hint +
                "error: learner: program 'no-such-probe' was not found in PATH (/usr/bin:/bin) (ready.exec) "
                "[launch.program]\n" +
                hint +
                "error: engine: the working directory '/no/such/folder' (run.yaml:9:14) does not exist "
                "[launch.workdir]\n\n3 errors\n");
}

TEST_F(Bind, AScriptThatIsNotExecutableIsSaidWithWhatMakesItSo) {
  const auto script = paths_.folder / "train.sh";
  std::ofstream(script) << "#!/bin/sh\n";
  plan_.roles[0].command = {script.string()};
  plan_.roles[0].command_origin = "run.yaml:6:14";
  const auto bound = bind_here();
  ASSERT_FALSE(bound);
  EXPECT_EQ(
      render(bound.error()),
      fmt::format("error: learner: '{0}' is not executable (command: run.yaml:6:14) [launch.program]\n"
                  "hint: make it executable with chmod +x, or name the program that reads it: [bash, {0}]\n",
                  script.string()));
}

TEST_F(Bind, ThePythonOfACommandIsNamedWithItsVersion) {
  const auto venv = paths_.folder / "venv";
  std::filesystem::create_directories(venv / "bin");
  std::ofstream(venv / "pyvenv.cfg") << "home = /usr/bin\nversion = 3.11.7\n";
  std::filesystem::copy_file("/bin/true", venv / "bin" / "python3");
  plan_.roles[0].command = {(venv / "bin" / "python3").string(), "train.py"};
  const auto bound = bind_here();
  ASSERT_TRUE(bound) << render(bound.error());
  const auto& python = bound->node.processes[0].python;
  EXPECT_EQ(std::tuple(python.path, python.version, python.named),
            std::tuple((venv / "bin" / "python3").string(), "3.11.7", true));
  EXPECT_EQ(plan::to_json(plan_, bound->node)["processes"][0]["python"]["version"], "3.11.7");
}

TEST_F(Bind, WhatAllProcessesOfARoleMissIsSaidOnce) {
  plan_.roles[0].command = {"no-such-program"};
  plan_.processes.insert(plan_.processes.begin() + 1, plan_.processes[0]);
  plan_.roles[0].count = 2;
  const auto bound = bind_here();
  ASSERT_FALSE(bound);
  const auto said = render(bound.error());
  EXPECT_EQ(said.find("error:"), said.rfind("error:")) << said;
}

TEST_F(Bind, AMissingVenvIsSaidOnceWithItsRolesAndWhereItWasSet) {
  for (auto& role : plan_.roles) {
    role.venv = "/no/.venv";
    role.env.push_back(
        {plan::EnvOp::Kind::set, "VIRTUAL_ENV", "/no/.venv", plan::Layer::venv, "e.yaml:3:7", {}});
  }
  const auto bound = bind_here();
  ASSERT_FALSE(bound);
  EXPECT_EQ(render(bound.error()),
            "error: learner, engine: the venv '/no/.venv' (e.yaml:3:7) does not exist [launch.venv]\n"
            "hint: create it: python3 -m venv /no/.venv\n");
}

TEST_F(Bind, AMissingLibraryIsRefusedWhereItIsPreloadedAndNotedElsewhere) {
  plan_.libraries["nccl"] = {"/no/libnccl.so*", std::nullopt, "site.yaml:9:3"};
  const auto noted = bind_here();
  ASSERT_TRUE(noted) << render(noted.error());
  EXPECT_EQ(noted->node.notes,
            (std::vector<std::string>{"library 'nccl' (site.yaml:9:3): no file matches '/no/libnccl.so*'"}));
  plan_.roles[0].preload = {"nccl"};
  const auto refused = bind_here();
  ASSERT_FALSE(refused);
  EXPECT_EQ(render(refused.error()),
            "error: library 'nccl' (site.yaml:9:3): no file matches '/no/libnccl.so*' [launch.library]\n");
}

TEST_F(Bind, SocketsOfVllmGoToTheScratchFolderWhereTheirPathsHaveRoom) {
  plan_.roles[1].env.push_back({plan::EnvOp::Kind::fallback,
                                "VLLM_RPC_BASE_PATH",
                                "${node.scratch}",
                                plan::Layer::nlaunch,
                                "nlaunch's default",
                                {}});
  const auto bound = bind_here();
  ASSERT_TRUE(bound) << render(bound.error());
  EXPECT_EQ(value(bound->node.processes[1], "VLLM_RPC_BASE_PATH"), bound->node.scratch);
  EXPECT_EQ(bound->node.notes, std::vector<std::string>{});

  plan_.node.scratch = (folder_ / std::string(60, 'x')).string();
  const auto noted = bind_here();
  ASSERT_TRUE(noted) << render(noted.error());
  EXPECT_EQ(value(noted->node.processes[1], "VLLM_RPC_BASE_PATH"), "(not set)");
  EXPECT_EQ(noted->node.notes,
            std::vector<std::string>{
                "VLLM_RPC_BASE_PATH is not set: the path '" + noted->node.scratch +
                "' is too long for vLLM's sockets, which stay in /tmp when a server is killed; use "
                "a shorter `node.scratch` in the profile"});
}

TEST_F(Bind, TheFolderForCachesIsTheSameInEachRunAndMadeWhereItIsNamed) {
  auto bound = bind_here();
  ASSERT_TRUE(bound) << render(bound.error());
  EXPECT_EQ(bound->node.cache, fmt::format("{}/nlaunch-{}-cache", folder_.string(), ::getuid()));
  EXPECT_FALSE(fs::exists(bound->node.cache));
  plan_.roles[1].env.push_back(
      {plan::EnvOp::Kind::set, "VLLM_CACHE_ROOT", "${node.cache}/vllm", plan::Layer::site, "s.yaml:3:7", {}});
  bound = bind_here();
  ASSERT_TRUE(bound) << render(bound.error());
  EXPECT_EQ(value(bound->node.processes[1], "VLLM_CACHE_ROOT"), bound->node.cache + "/vllm");
  EXPECT_TRUE(fs::is_directory(bound->node.cache));
}

TEST_F(Bind, FewerGpusThanThePlanUsesIsAnError) {
  environment_.emplace_back("CUDA_VISIBLE_DEVICES=1");
  const auto bound = bind_here();
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().first_message(), "the plan uses 2 GPUs per node, but this node shows 1");
}

TEST_F(Bind, TheLearnersBeginWithACheckpointWhereThereIsOne) {
  plan_.roles[0].command = {"true", "--x"};
  plan_.roles[1].command = {"true", "${resume.path}"};
  plan_.checkpoint.emplace().resume = {"--resume_from_checkpoint", "${resume.path}"};
  const auto first = bind_here();
  ASSERT_TRUE(first) << render(first.error());
  EXPECT_EQ(first->node.processes[0].argv, (std::vector<std::string>{"true", "--x"}));
  EXPECT_EQ(first->node.processes[1].argv, (std::vector<std::string>{"true", ""}));
  paths_.resume = "/ckpt/step_7";
  const auto second = bind_here();
  ASSERT_TRUE(second) << render(second.error());
  EXPECT_EQ(second->node.processes[0].argv,
            (std::vector<std::string>{"true", "--x", "--resume_from_checkpoint", "/ckpt/step_7"}));
  EXPECT_EQ(second->node.processes[1].argv, (std::vector<std::string>{"true", "/ckpt/step_7"}));
}

}  // namespace
}  // namespace nlaunch::launch
