#include "plan/reference_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace nlaunch::plan {
namespace {

/// "role.addrs" as documents write it: "${role.NAME.addrs}".
std::string as_written(std::string name) {
  if (name.starts_with("role.")) name.insert(5, "NAME.");
  if (name == "self.ports") name += ".NAME";
  if (name.starts_with("role.") && name.ends_with(".ports")) name += ".PORT";
  for (auto bar = name.find('|'); bar != std::string::npos; bar = name.find('|', bar + 2))
    name.insert(bar, "\\");
  return "${" + name + "}";
}

TEST(References, TheDocumentHasEveryName) {
  std::ifstream file(NLAUNCH_SOURCE_DIR "/docs/experiment.md");
  std::stringstream text;
  text << file.rdbuf();
  const auto document = text.str();
  ASSERT_NE(document.find("${vars.NAME}"), std::string::npos);
  for (const auto& name : reference_names()) {
    // The second of a pair stands in the first one's row, without braces.
    const auto bare = "`" + name.substr(name.rfind('.') + 1) + "`";
    EXPECT_TRUE(document.find(as_written(name)) != std::string::npos ||
                document.find(bare) != std::string::npos)
        << as_written(name);
  }
}

TEST(References, HaveEachNameOnce) {
  auto names = reference_names();
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

struct OneNode : testing::Test {
  OneNode() {
    plan.name = "demo";
    plan.weight_syncs.front().port = 29600;
    plan.weight_syncs.front().world_size = 3;
    Role learner;
    learner.name = "learner";
    learner.count = 1;
    learner.rendezvous = Rendezvous::torch;
    Role engine;
    engine.name = "engine";
    engine.count = 2;
    engine.ports = {"http"};
    plan.roles = {learner, engine};
    plan.processes.resize(3);
    for (std::uint32_t i = 0; i < 2; ++i) {
      auto& process = plan.processes[i + 1];
      process.role = 1;
      process.index = i;
      process.node = i;
      process.ports = {static_cast<std::uint16_t>(8000 + i)};
    }
    node.scratch = "/tmp/scratch";
    node.libraries["nccl"].path = "/opt/libnccl.so.2";
  }
  std::string resolve(const std::string& text, const Process* process = nullptr) {
    mistakes = {};
    return NodeNames(plan, node, {"10.0.0.1", "10.0.0.2"},
                     {"id-1", "/runs/demo/id-1", "/runs/demo/id-1/attempt-0", checkpoint})
        .resolve(text, process, mistakes);
  }

  Plan plan;
  BoundNode node;
  std::string checkpoint;
  Diagnostics mistakes;
};

TEST_F(OneNode, KnowsTheCheckpointThatTheLearnersBeginWith) {
  EXPECT_EQ(resolve("at '${resume.path}'"), "at ''");
  checkpoint = "/ckpt/step_7";
  EXPECT_EQ(resolve("at '${resume.path}'"), "at '/ckpt/step_7'");
  EXPECT_TRUE(mistakes.empty());
}

TEST_F(OneNode, KnowsTheRunAndWhereEverybodyIs) {
  EXPECT_EQ(resolve("${role.engine.addrs} ${role.engine.hosts} ${role.engine.count}"),
            "10.0.0.1:8000,10.0.0.2:8001 10.0.0.1,10.0.0.2 2");
  EXPECT_EQ(
      resolve("${run.name} ${run.id} ${run.dir} ${run.attempt_dir} ${node.scratch} ${library.nccl.path}"),
      "demo id-1 /runs/demo/id-1 /runs/demo/id-1/attempt-0 /tmp/scratch /opt/libnccl.so.2");
  EXPECT_EQ(resolve("${role.engine.addrs_file} ${role.learner.env_file}"),
            "/runs/demo/id-1/attempt-0/addrs/engine /runs/demo/id-1/attempt-0/env/learner.json");
  EXPECT_EQ(resolve("${weight_sync.host}:${weight_sync.port} ${weight_sync.world_size}"), "10.0.0.1:29600 3");
  EXPECT_TRUE(mistakes.empty());
}

TEST_F(OneNode, KnowsOneProcessOfARole) {
  EXPECT_EQ(resolve("http://${role.engine.1.host}:${role.engine.1.ports.http} ${role.learner.0.host}"),
            "http://10.0.0.2:8001 10.0.0.1");
  EXPECT_TRUE(mistakes.empty());
  resolve("${role.engine.2.host}");
  EXPECT_EQ(mistakes.first_message(),
            "the site's libraries, in '${role.engine.2.host}': '${role.engine.2.host}': role 'engine' has 2 "
            "processes, 'engine.0' to 'engine.1'");
}

TEST_F(OneNode, HasAFolderForCachesThatIsMadeWhenItIsNamed) {
  char folder[] = "/tmp/nlaunch-cache-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  node.cache = std::string(folder) + "/cache";
  EXPECT_EQ(resolve("${node.scratch}"), "/tmp/scratch");
  EXPECT_FALSE(std::filesystem::exists(node.cache));
  EXPECT_EQ(resolve("${node.cache}/vllm"), node.cache + "/vllm");
  EXPECT_TRUE(std::filesystem::is_directory(node.cache));
  std::filesystem::remove_all(folder);
  std::ofstream(folder) << "a file where the folder was";
  resolve("${node.cache}");
  EXPECT_EQ(mistakes.first_message(),
            "the site's libraries, in '${node.cache}': '${node.cache}': cannot create the directory '" +
                node.cache + "': Not a directory");
  std::filesystem::remove(folder);
}

TEST_F(OneNode, KnowsTheProcessWhoseTextItIs) {
  EXPECT_EQ(
      resolve("${self.name} ${self.index} ${self.node} ${self.host} ${self.ports.http}", &plan.processes[2]),
      "engine.1 1 1 10.0.0.2 8001");
  EXPECT_TRUE(mistakes.empty());
}

TEST_F(OneNode, SaysWhatCannotBeTold) {
  EXPECT_EQ(resolve("${self.name}"), "${self.name}");
  ASSERT_EQ(mistakes.items().size(), 1U);
  EXPECT_EQ(mistakes.first_message(),
            "the site's libraries, in '${self.name}': '${self.name}' is not known on this node");
  resolve("${newest:/no/such/*.pt}", &plan.processes[1]);
  ASSERT_EQ(mistakes.items().size(), 1U);
  EXPECT_EQ(mistakes.first_message(),
            "engine.0, in '${newest:/no/such/*.pt}': nothing matches '/no/such/*.pt'");
  EXPECT_EQ(resolve("${newest:/no/such/*.pt:-none}", &plan.processes[1]), "none");
}

TEST_F(OneNode, TellsTheRankInTheWeightSyncGroup) {
  plan.roles[0].kind = RoleKind::learner;
  plan.roles[0].gpus = 1;
  plan.roles[1].kind = RoleKind::engine;
  plan.roles[1].gpus = 1;
  EXPECT_EQ(resolve("${self.sync_rank}", &plan.processes[0]), "0");
  EXPECT_EQ(resolve("${self.sync_rank}", &plan.processes[2]), "2");
  plan.roles[1].kind = RoleKind::service;
  resolve("${self.sync_rank}", &plan.processes[2]);
  EXPECT_EQ(mistakes.first_message(),
            "engine.1, in '${self.sync_rank}': engine.1 is not in the weight-sync group: learner 0 and the "
            "engines are");
  EXPECT_EQ(resolve("${self.sync_rank:-none}", &plan.processes[2]), "none");
  plan.roles[1].kind = RoleKind::engine;
  plan.roles[1].share_gpus_with = {"learner"};
  plan.processes[0].gpus = plan.processes[2].gpus = {0};
  plan.processes[2].node = plan.processes[0].node;
  resolve("${self.sync_rank}", &plan.processes[2]);
  EXPECT_EQ(mistakes.first_message(),
            "engine.1, in '${self.sync_rank}': engine.1 is not in the weight-sync group: it shares its GPUs "
            "with a learner or another engine, and a communicator can use a GPU only once");
  mistakes = {};
  EXPECT_TRUE(mistakes.empty());
}

TEST_F(OneNode, KnowsWhereRanksMeet) {
  auto& learner = plan.roles[0];
  learner.rendezvous_port = 29500;
  learner.count = 1;
  constexpr const char* kAll =
      "${self.world_size} ${self.nnodes} ${self.node_rank} ${self.master_addr}:${self.master_port}";
  plan.processes[0].node_rank = 3;
  EXPECT_EQ(resolve(kAll, &plan.processes[0]),
            "1 1 3 " + resolve("${self.host}", &plan.processes[0]) + ":29500");
  learner.gpus = 4;
  learner.count = 2;
  plan.processes[0].index = 1;
  EXPECT_EQ(resolve("${self.world_size} ${self.nnodes} ${self.node_rank}", &plan.processes[0]), "8 2 1")
      << "a launcher's process counts as a node";
}

TEST_F(OneNode, ListsProcessesInAnyForm) {
  auto& engine = plan.roles[1];
  engine.ports = {"http", "grpc"};
  plan.processes[1].ports = {8000, 9000};
  plan.processes[2].ports = {8001, 9001};
  const auto host = [&](std::size_t i) { return resolve("${self.host}", &plan.processes[i]); };
  EXPECT_EQ(resolve("${role.engine.list|http://{host}:{port}/v1| }", nullptr),
            "http://" + host(1) + ":8000/v1 http://" + host(2) + ":8001/v1");
  EXPECT_EQ(resolve("[${role.engine.list|'{name}={ports.grpc}'}]", nullptr),
            "['engine.0=9000','engine.1=9001']");
  EXPECT_EQ(resolve("${role.engine.list|{index}|}${role.engine.ports.grpc}", nullptr), "019000,9001");
  EXPECT_EQ(resolve("${role.engine.nodes} ${run.nodes}", nullptr).substr(0, 2), "2 ");
}

TEST_F(OneNode, NumbersOfTheProcess) {
  plan.processes[0].rank = 3;
  plan.processes[0].gpus = {1, 2};
  EXPECT_EQ(resolve("${self.rank} ${self.gpus}", &plan.processes[0]), "3 2");
  plan.roles[1].ports = {"http", "grpc"};
  plan.processes[2].ports = {8001, 9001};
  EXPECT_EQ(resolve("${self.ports.http} ${self.ports.grpc} ${role.engine.1.ports.grpc}", &plan.processes[2]),
            "8001 9001 9001");
  EXPECT_TRUE(mistakes.empty());
}

TEST_F(OneNode, ANameThatThePlanShouldHavePutInIsNotKnown) {
  const auto why = [&](const std::string& text) {
    resolve(text, &plan.processes[1]);
    return mistakes.empty() ? std::string() : mistakes.first_message();
  };
  for (const std::string name :
       {"site.name", "vars.a", "env.HOME", "role.engine.gpus", "nothing.at.all", "self.nme"}) {
    const auto text = "${" + name + "}";
    EXPECT_EQ(why(text), "engine.0, in '" + text + "': '" + text + "' is not known on this node");
  }
  EXPECT_EQ(why("${self.ports.grpc}"),
            "engine.0, in '${self.ports.grpc}': '${self.ports.grpc}' is not known");
  EXPECT_EQ(why("${role.judge.count}"), "engine.0, in '${role.judge.count}': unknown role 'judge'");
  for (const std::string name : {"aws.path", "nccl.version", "nccl"}) {
    const auto text = "${library." + name + "}";
    EXPECT_EQ(why(text), "engine.0, in '" + text + "': '" + text + "' is not known on this node");
  }
  EXPECT_EQ(why("${role.learner.1.host}"),
            "engine.0, in '${role.learner.1.host}': '${role.learner.1.host}': role 'learner' has 1 process, "
            "'learner.0'");
}

TEST_F(OneNode, AddressesAreThoseOfTheFirstPortsAndEachHostStandsOnce) {
  plan.processes[2].node = 0;
  EXPECT_EQ(resolve("${role.engine.hosts} ${role.engine.addrs}"), "10.0.0.1 10.0.0.1:8000,10.0.0.1:8001");
  plan.processes[1].ports.clear();
  plan.processes[2].ports = {8001, 9001};
  EXPECT_EQ(resolve("${role.engine.addrs}"), "10.0.0.1:8001");
  EXPECT_EQ(resolve("${role.learner.hosts}"), "10.0.0.1");
  EXPECT_EQ(resolve("${role.learner.addrs}"), "");
}

TEST_F(OneNode, TheNewestFileIsTheOneWrittenLast) {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "nlaunch-newest-XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  // Of two files the glob finds either first.
  for (const auto* newest : {"a", "b"}) {
    const auto part = folder / newest;
    fs::create_directory(part);
    for (const auto* name : {"a.pt", "b.pt", "c.txt"}) std::ofstream(part / name) << "x";
    const auto now = fs::last_write_time(part / "a.pt");
    for (const auto* name : {"a.pt", "b.pt"})
      fs::last_write_time(part / name, now - std::chrono::seconds(name[0] == newest[0] ? 10 : 20));
    const auto glob = (part / "*.pt").string();
    EXPECT_EQ(resolve("${newest:" + glob + "}"), (part / (std::string(newest) + ".pt")).string());
    EXPECT_EQ(resolve("--from=${newest:" + (part / "c.*").string() + "}"),
              "--from=" + (part / "c.txt").string());
  }
  const auto links = folder / "links";
  fs::create_directory(links);
  fs::create_symlink("nowhere", links / "a.pt");
  EXPECT_EQ(resolve("${newest:" + (links / "*.pt").string() + ":-none}"), "none")
      << "what it points at is gone";
  fs::remove_all(folder);
}

/// What a plan makes of a text: an experiment and a site in which each kind of name is defined.
struct AtLogin : testing::Test {
  AtLogin() {
    const auto add = [&](const char* name) -> config::Role& {
      auto& role = experiment.roles.emplace_back();
      role.name.value = name;
      return role;
    };
    add("learner").rendezvous = Rendezvous::torch;
    auto& engine = add("engine");
    engine.count = Located<std::uint32_t>{12, {}};
    engine.gpus.value = 2;
    engine.ports = {{"http", {}}, {"grpc", {}}};
    add("tool").per_node = Located<std::uint32_t>{2, {}};
    add("once").per = Located<config::Role::Per>{config::Role::Per::job, {}};
    add("actor").spawned_by = {{"tool", {}}, {"learner", {}}};
    site.name.value = "tower";
    site.gpus = Located<std::uint32_t>{4, {}};
    site.gpu = config::Text{"GH200", {}};
    site.cpus = 72;
    site.nics.interface = "hsn";
    site.libraries = {{"nccl", {}}};
  }
  const config::Role* role(const char* name) {
    return &*std::ranges::find_if(experiment.roles, [&](const auto& one) { return one.name.value == name; });
  }
  /// What stands in the place of a text, or why nothing can.
  std::string resolve(const std::string& text, const config::Role* whose = nullptr) {
    Diagnostics mistakes;
    PlanNames names(experiment, site, caller);
    names.resolve_vars(mistakes);
    auto made = names.resolve({text, {}}, whose, mistakes);
    return mistakes.empty() ? made : mistakes.first_message();
  }
  /// That a text is kept for the node.
  void expect_kept(const std::string& text, const config::Role* whose = nullptr) {
    EXPECT_EQ(resolve(text, whose), text);
  }

  config::Experiment experiment;
  config::Site site;
  std::map<std::string, std::string> caller{{"HOME", "/home/u"}, {"EMPTY", ""}};
};

TEST_F(AtLogin, PutsInWhatTheFilesSay) {
  EXPECT_EQ(resolve("${site.name} ${site.gpus} ${site.gpu} ${site.cpus} ${site.interface}"),
            "tower 4 GH200 72 hsn");
  EXPECT_EQ(resolve("<${site.arch}${site.scratch}>"), "<>");
  site.gpus.reset();
  site.cpus.reset();
  EXPECT_EQ(resolve("<${site.gpus}${site.cpus}>"), "<>");
  EXPECT_EQ(resolve("${role.engine.gpus} ${role.learner.gpus} ${weight_sync.backend}"), "2 0 nccl");
  EXPECT_EQ(resolve("${env.HOME} <${env.EMPTY}> ${env.NONE:-none} ${env.EMPTY:-none}"), "/home/u <> none ");
  EXPECT_EQ(resolve("${self.gpus}", role("engine")), "2");
  EXPECT_EQ(resolve("${self.gpus}", role("actor")), "0");
  EXPECT_EQ(resolve("${self.gpu_memory}", role("engine")),
            "'${self.gpu_memory}': role 'engine' has no gpu_memory");
  experiment.roles[1].gpu_memory = Located<double>{0.45, {}};
  EXPECT_EQ(resolve("${self.gpu_memory} ${role.engine.gpu_memory}", role("engine")), "0.45 0.45");
  EXPECT_EQ(resolve("${role.tool.gpu_memory}"), "'${role.tool.gpu_memory}': role 'tool' has no gpu_memory");
}

TEST_F(AtLogin, KeepsWhatOnlyANodeKnows) {
  for (const auto* name : {"run.dir",
                           "run.attempt_dir",
                           "run.id",
                           "run.name",
                           "node.scratch",
                           "node.cache",
                           "weight_sync.host",
                           "weight_sync.port",
                           "weight_sync.world_size",
                           "library.nccl.path",
                           "role.engine.addrs",
                           "role.engine.addrs_file",
                           "role.engine.hosts",
                           "role.learner.hosts",
                           "role.learner.count",
                           "role.learner.env_file",
                           "role.engine.0.host",
                           "role.engine.11.host",
                           "role.engine.10.ports.grpc",
                           "role.engine.ports.grpc",
                           "role.engine.list|{host}:{ports.grpc}|;",
                           "role.tool.list|{host} {index} {name} {node}",
                           "role.engine.nodes",
                           "run.nodes",
                           "role.tool.7.host",
                           "newest:/a/*.pt"})
    expect_kept("a${" + std::string(name) + "}b");
  for (const auto* name : {"self.name", "self.index", "self.host", "self.node", "self.sync_rank"})
    expect_kept("${" + std::string(name) + "}", role("tool"));
  for (const auto* name : {"rank", "world_size", "nnodes", "node_rank", "master_addr", "master_port"})
    expect_kept("${self." + std::string(name) + "}", role("learner"));
  EXPECT_EQ(resolve("${self.master_port}", role("tool")),
            "'${self.master_port}': role 'tool' has no rendezvous");
  EXPECT_EQ(resolve("${role.tool.list|{host}:{port}}"),
            "'${role.tool.list|{host}:{port}}': '{port}' is not one of {host}, {index}, {name}, {node}");
  EXPECT_EQ(resolve("${role.engine.list|{ports.htp}}"),
            "'${role.engine.list|{ports.htp}}': '{ports.htp}' is not one of {host}, {index}, {name}, {node}, "
            "{ports.http}, {ports.grpc}, {port}");
  EXPECT_EQ(resolve("${role.engine.ports.htp}"),
            "unknown name '${role.engine.ports.htp}': did you mean '${role.engine.ports.http}'?");
  EXPECT_EQ(resolve("${role.tool.ports.http}"), "'${role.tool.ports.http}': role 'tool' declares no ports");
  expect_kept("${self.ports.http}${self.ports.grpc}", role("engine"));
  // A role that starts others has their GPUs.
  expect_kept("${self.gpus}", role("tool"));
  expect_kept("${self.gpus}", role("learner"));
  EXPECT_EQ(resolve("${self.gpus}", role("once")), "0");
}

TEST_F(AtLogin, SaysWhatIsWrongWithAName) {
  struct Case {
    const char *name, *why;
  };
  const Case cases[] = {
      {"nod.scratch", "unknown name '${nod.scratch}': did you mean '${node.scratch}'?"},
      {"something.else",
       "unknown name '${something.else}': 'something' is not one of vars, self, run, resume, node, role, "
       "pool, library, site, env, weight_sync, newest"},
      {"node", "'${node}' is incomplete: write ${node.NAME}"},
      {"node.", "unknown name '${node.}': '' is not one of scratch, cache"},
      {"site.", "unknown name '${site.}': '' is not one of name, gpus, gpu, arch, cpus, interface, scratch"},
      {"run.folder",
       "unknown name '${run.folder}': 'folder' is not one of dir, attempt_dir, id, name, nodes"},
      {"run.dirr", "unknown name '${run.dirr}': did you mean '${run.dir}'?"},
      {"self.name", "'${self.name}' is only available in a role"},
      {"library.ncl.path", "unknown name '${library.ncl.path}': did you mean '${library.nccl.path}'?"},
      {"library.nccl", "unknown name '${library.nccl}': 'nccl' is not one of nccl.path"},
      {"role.lerner.count", "unknown name '${role.lerner.count}': did you mean '${role.learner.count}'?"},
      {"role.engine",
       "unknown name '${role.engine}': '' is not one of 0.host, 0.ports, ports, list|FORM|SEPARATOR, addrs, "
       "addrs_file, hosts, nodes, count, gpus, gpu_memory, env_file"},
      {"role.engine.cuont", "unknown name '${role.engine.cuont}': did you mean '${role.engine.count}'?"},
      {"role.engine.12.host",
       "'${role.engine.12.host}': role 'engine' has 12 processes, 'engine.0' to 'engine.11'"},
      {"role.once.1.host", "'${role.once.1.host}': role 'once' has 1 process, 'once.0'"},
      {"role.learner.addrs", "'${role.learner.addrs}': role 'learner' declares no ports"},
      {"role.learner.addrs_file", "'${role.learner.addrs_file}': role 'learner' declares no ports"},
      {"env.NONE",
       "'${env.NONE}' is not set in nlaunch's environment: set it, or give a default with "
       "${env.NONE:-VALUE}"},
      {"env.HF_TOKEN",
       "'${env.HF_TOKEN}' would put a secret into the plan: declare it as `secrets: {HF_TOKEN: env}`"},
      {"env.HF_TOKEN:-x",
       "'${env.HF_TOKEN}' would put a secret into the plan: declare it as `secrets: {HF_TOKEN: env}`"},
      {"vars.a", "unknown name '${vars.a}': none of that kind is defined"},
      {"AZ09_", "unknown name '${AZ09_}': did you mean '${env.AZ09_}', or '$${AZ09_}' for a shell?"},
      {"AZ09a",
       "unknown name '${AZ09a}': 'AZ09a' is not one of vars, self, run, resume, node, role, pool, library, "
       "site, env, weight_sync, newest"},
  };
  for (const auto& [name, why] : cases) EXPECT_EQ(resolve("${" + std::string(name) + "}"), why);
}

TEST_F(AtLogin, SaysWhatIsWrongWithANameOfARolesOwn) {
  EXPECT_EQ(resolve("${self.nme}", role("engine")),
            "unknown name '${self.nme}': did you mean '${self.name}'?");
  EXPECT_EQ(
      resolve("${self.}", role("engine")),
      "unknown name '${self.}': '' is not one of name, rank, world_size, nnodes, node_rank, master_addr, "
      "master_port, index, local_rank, host, node, gpus, gpu_memory, ports, replica, pool, sync_rank");
  EXPECT_EQ(resolve("${self.index.x}", role("engine")),
            "unknown name '${self.index.x}': did you mean '${self.index}'?");
  EXPECT_EQ(resolve("${self.rank}", role("engine")),
            "'${self.rank}': role 'engine' has no rendezvous; use ${self.index}");
  EXPECT_EQ(resolve("${self.ports.htp}", role("engine")),
            "unknown name '${self.ports.htp}': did you mean '${self.ports.http}'?");
  EXPECT_EQ(resolve("${self.ports}", role("engine")),
            "unknown name '${self.ports}': '' is not one of http, grpc");
  EXPECT_EQ(resolve("${self.ports.http}", role("tool")),
            "'${self.ports.http}': role 'tool' declares no ports");
}

TEST_F(AtLogin, WithoutLibrariesThereIsNoneToName) {
  site.libraries.clear();
  EXPECT_EQ(resolve("${library.nccl.path}"), "'${library.nccl.path}': the site 'tower' defines no libraries");
}

TEST_F(AtLogin, WhatAPartWithAMistakeDefinesIsNotKnown) {
  experiment.roles[1].whole = false;
  expect_kept("${role.engine.99.ports.x}");
  expect_kept("${self.rank}${self.ports.x}", role("engine"));
  EXPECT_EQ(resolve("${self.nme}", role("engine")),
            "unknown name '${self.nme}': did you mean '${self.name}'?");
  experiment.roles_whole = false;
  expect_kept("${role.judge.count}");
  experiment.vars_whole = false;
  expect_kept("${vars.none}");
}

TEST_F(AtLogin, VarsAreResolvedOnceAndMayBeGivenADefault) {
  experiment.vars = {{{"b", {}}, {"<${vars.a} ${run.dir}>", {}}},
                     {{"a", {}}, {"${env.HOME}", {}}},
                     {{"c", {}}, {"${env.NONE:-${vars.b}}", {}}},
                     {{"dollar", {}}, {"$${x}", {}}}};
  EXPECT_EQ(resolve("${vars.b}${vars.c}"), "</home/u ${run.dir}></home/u ${run.dir}>");
  EXPECT_EQ(resolve("${vars.dollar}"), "$${x}");
  EXPECT_EQ(resolve("${vars.d:-default}"), "default");
  EXPECT_EQ(resolve("${vars.dolar}"), "unknown name '${vars.dolar}': did you mean '${vars.dollar}'?");
  Diagnostics mistakes;
  PlanNames names(experiment, site, caller);
  names.resolve_vars(mistakes);
  EXPECT_TRUE(mistakes.empty());
  EXPECT_EQ(names.vars().at("b"), "</home/u ${run.dir}>");
  EXPECT_EQ(names.vars().size(), 4U);
  const std::map<std::string, std::string> other{{"HOME", "/other"}};
  EXPECT_EQ(names.with_caller(other).resolve({"${env.HOME} ${vars.a}", {}}, nullptr, mistakes),
            "/other /home/u");
}

TEST_F(AtLogin, ACircleOfVarsIsToldFromWhereItBegins) {
  experiment.vars = {{{"first", {}}, {"${vars.a}", {}}},
                     {{"a", {}}, {"x ${vars.b}", {}}},
                     {{"b", {}}, {"${env.HOME}${vars.a}", {}}}};
  Diagnostics mistakes;
  PlanNames names(experiment, site, caller);
  names.resolve_vars(mistakes);
  ASSERT_EQ(mistakes.items().size(), 1U);
  EXPECT_EQ(mistakes.first_message(), "vars refer to each other in a cycle: a → b → a");
  EXPECT_EQ(mistakes.items()[0].id, "plan.cyclic-vars");
  experiment.vars = {{{"a", {}}, {"${vars.a}", {}}}};
  EXPECT_EQ(resolve("x"), "vars refer to each other in a cycle: a → a");
}

TEST_F(AtLogin, VarsReferToEachOtherUpToADepth) {
  const auto chain = [&](int length) {
    experiment.vars.clear();
    for (int i = 0; i + 1 < length; ++i)
      experiment.vars.push_back({{fmt::format("v{}", i), {}}, {fmt::format("${{vars.v{}}}", i + 1), {}}});
    experiment.vars.push_back({{fmt::format("v{}", length - 1), {}}, {"end", {}}});
    return resolve("${vars.v0}");
  };
  EXPECT_EQ(chain(100), "end");
  EXPECT_EQ(chain(101), "vars refer to each other more than 100 levels deep");
}

TEST_F(AtLogin, ATextIsAtMostAsLongAsAnArgument) {
  constexpr std::size_t kLongest = std::size_t{128} << 10U;
  const std::string too_long =
      "the value is longer than 128 KiB here, the longest argument that Linux passes";
  caller["BIG"] = std::string(kLongest, 'x');
  EXPECT_TRUE(resolve("${env.BIG}") == caller["BIG"]);
  caller["BIG"] += 'x';
  EXPECT_EQ(resolve("${env.BIG}"), too_long);
  caller["BIG"] = std::string(kLongest / 2 + 1, 'x');
  EXPECT_EQ(resolve("${env.BIG}${env.BIG}"), too_long);
  experiment.vars = {{{"big", {}}, {"${env.BIG}", {}}}};
  EXPECT_EQ(resolve("${vars.big}").size(), kLongest / 2 + 1);
  EXPECT_EQ(resolve("${vars.big}${vars.big}"), too_long);
}

}  // namespace
}  // namespace nlaunch::plan
