#include "unit/config/support.h"

namespace nlaunch::config {
namespace {

using namespace std::chrono_literals;
using SiteFile = Folder;

constexpr std::string_view kWhole = R"(
version: 1
name: isambard
description: GH200 behind Slingshot
match: {slurm_cluster: "*isambard*", hostname: "nid*"}
scheduler:
  kind: slurm
  submit: [isambard_sbatch, sbatch]
  directives: {partition: workq, exclusive: true, gpus-per-node: 4, time: "24:00:00"}
  srun: [--network=disable_rdzv_get]
  template: job.sbatch
  bad_nodes: {file: /projects/bad_nodes.tsv, ttl: 7d}
node: {gpus: 4, gpu: GH200, arch: aarch64, cpus: 288, bus_ids: ["0009:01:00.0", "0019:01:00.0"],
       nics: {kind: cxi, count: 4, interface: hsn}, scratch: /tmp}
modules: {init: /opt/init/bash, reset: true, use: [/opt/more], load: [PrgEnv-cray, cuda/12.6]}
env:
  unset: [LD_PRELOAD]
  set: {NCCL_SOCKET_IFNAME: hsn}
  prepend: {LD_LIBRARY_PATH: /opt/x/lib}
  when:
  - {nodes: ">1", set: {NCCL_NET: AWS Libfabric}}
  - {nccl: ">=2.27.3", nodes: ">1", set: {NCCL_PROTO: "^LL128"}}
libraries:
  nccl: {path: "${env.VIRTUAL_ENV:-.venv}/lib/libnccl.so.2", version: ">=2.27"}
overlays: {nccl-debug: {env: {set: {NCCL_DEBUG: INFO, NCCL_DEBUG_SUBSYS: "INIT,NET,ENV"}}}}
expect:
  all_reduce_busbw:
  - {gpus_per_node: 4, nodes: 1, size: 1GiB, min: 150GB/s}
  - {nodes: ">1", size: 128MiB, min: 15GB/s}
  transport: {intra_node: P2P, inter_node: "NET/AWS Libfabric"}
)";

TEST_F(SiteFile, ReadsTheMachine) {
  const auto read = site(kWhole);
  EXPECT_EQ(read.name.value, "isambard");
  EXPECT_EQ(read.comment, "GH200 behind Slingshot");
  EXPECT_EQ(read.match.hostname, "nid*");
  EXPECT_EQ(read.scheduler, "slurm");
  EXPECT_EQ(words(read.submit), "isambard_sbatch sbatch");
  EXPECT_EQ(read.directives[2].second.value, "4");
  EXPECT_EQ(words(read.srun), "--network=disable_rdzv_get");
  EXPECT_EQ(read.template_file->value, "job.sbatch");
  EXPECT_EQ(*read.bad_nodes_ttl, 24h * 7);
  EXPECT_EQ(read.gpus->value, 4U);
  EXPECT_EQ(read.cpus, 288U);
  EXPECT_EQ(words(read.bus_ids), "0009:01:00.0 0019:01:00.0");
  EXPECT_EQ(read.nics.interface, "hsn");
  EXPECT_EQ(read.scratch->value, "/tmp");
  EXPECT_EQ(read.sources, std::vector<std::string>{folder() + "/input.yaml"});
}

TEST_F(SiteFile, ReadsWhatRunsThere) {
  const auto read = site(kWhole);
  EXPECT_TRUE(read.modules.reset);
  EXPECT_EQ(words(read.modules.use), "/opt/more");
  EXPECT_EQ(words(read.modules.load), "PrgEnv-cray cuda/12.6");
  EXPECT_EQ(words(read.env),
            "LD_PRELOAD! NCCL_SOCKET_IFNAME=hsn LD_LIBRARY_PATH</opt/x/lib NCCL_NET=AWS Libfabric? "
            "NCCL_PROTO=^LL128?");
  EXPECT_EQ(read.env.back().when.library.at("nccl").str(), ">=2.27.3");
  EXPECT_EQ(read.libraries[0].first, "nccl");
  EXPECT_EQ(read.libraries[0].second.version->str(), ">=2.27");
  EXPECT_EQ(words(read.overlays[0].env), "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,ENV");
  EXPECT_EQ(read.all_reduce_busbw[0].size, 1ULL << 30U);
  EXPECT_EQ(read.all_reduce_busbw[0].min, 150e9);
  EXPECT_FALSE(read.all_reduce_busbw[1].gpus_per_node);
  EXPECT_EQ(read.inter_node, "NET/AWS Libfabric");
}

TEST_F(SiteFile, ExtendsByMergingMapsAndAddingEnvironments) {
  write("base.yaml",
        "version: 1\nname: base\ndescription: old\nmatch: {hostname: '*'}\nnode: {gpus: 4, gpu: A100}\n"
        "scheduler: {submit: [a, b]}\nenv: {set: {A: 1, B: 1}}\nlibraries: {nccl: {path: /x}}\n");
  write("middle.yaml", "version: 1\nname: middle\nextends: base\nenv: {unset: [A]}\n");
  const auto top =
      write("top.yaml",
            "version: 1\nname: top\nextends: middle\nnode: {gpu: H100}\nscheduler: {submit: [c]}\n"
            "env: {when: [{nccl: '>2', set: {B: 2}}]}\n");
  const auto read = value(load_site("top", {folder()}, {}));
  EXPECT_EQ(read.gpus->value, 4U);
  EXPECT_EQ(read.gpus->span.file->name, folder() + "/base.yaml");
  EXPECT_EQ(read.gpu->value, "H100");
  EXPECT_EQ(read.gpu->span.file->name, top);
  EXPECT_EQ(words(read.submit), "c");
  EXPECT_EQ(words(read.env), "A=1 B=1 A! B=2?");
  EXPECT_EQ(read.env[0].name.span.file->name, folder() + "/base.yaml");
  EXPECT_FALSE(read.match.any());
  EXPECT_EQ(read.comment, "");
  EXPECT_EQ(read.sources.size(), 3U);
}

TEST_F(SiteFile, LooksForABaseInItsOwnFolderFirst) {
  write("one/base.yaml", "version: 1\nnode: {gpus: 1}\n");
  write("two/base.yaml", "version: 1\nnode: {gpus: 2}\n");
  write("two/top.yaml", "version: 1\nextends: base\n");
  EXPECT_EQ(value(load_site("top", {folder() + "/one", folder() + "/two"}, {})).gpus->value, 2U);
}

TEST_F(SiteFile, AppliesItsSettings) {
  const auto read = site(kWhole, {"site.node.gpus=8", "nodes=2", "site.env.set.A=1"});
  EXPECT_EQ(read.gpus->value, 8U);
  EXPECT_EQ(read.gpus->span.where(), "--set:1:16");
  EXPECT_EQ(read.env[2].name.value, "A");
}

TEST_F(SiteFile, HasABuiltInProfile) {
  const auto read = value(load_site("local", {}, {}));
  EXPECT_EQ(read.name.value, "local");
  EXPECT_EQ(read.path, "built in");
  EXPECT_EQ(read.scheduler, "local");
  EXPECT_TRUE(read.sources.empty());
}

TEST_F(SiteFile, ListsTheFirstOfAName) {
  write("one/b.yaml", "");
  write("one/a.yaml", "");
  write("two/a.yaml", "");
  write("two/notes.txt", "");
  std::string listed;
  for (const auto& entry : list_sites({folder() + "/one", folder() + "/none", folder() + "/two"})) {
    listed += entry.name + (entry.shadowed ? "(shadowed) " : " ");
  }
  EXPECT_EQ(listed, "a b a(shadowed) common local ");
}

TEST_F(SiteFile, AnOverlayTakesThePlaceOfTheBases) {
  write("base.yaml",
        "version: 1\noverlays: {a: {env: {set: {A: 1}}, set: {nodes: 2}}, b: {env: {set: {B: 1}}}}\n");
  write("top.yaml", "version: 1\nextends: base\noverlays: {a: {env: {X: 1}}, c: {env: {C: 1}}}\n");
  const auto read = value(load_site("top", {folder()}, {}));
  std::string all;
  for (const auto& overlay : read.overlays) all += overlay.name.value + ":" + words(overlay.env) + " ";
  EXPECT_EQ(all, "a:X=1 b:B=1 c:C=1 ");
  EXPECT_TRUE(read.overlays[0].set.empty());
}

TEST_F(SiteFile, ABuiltInProfileExtendsABuiltInOne) {
  write("common.yaml", "version: 1\nenv: {set: {A: 1}}\n");
  const auto own = value(load_site("common", {folder()}, {}));
  EXPECT_EQ(words(own.env), "A=1");
  const auto read = value(load_site("local", {folder()}, {}));
  EXPECT_EQ(words(read.env), "NCCL_DEBUG=WARN GLOO_SOCKET_IFNAME=lo NCCL_SOCKET_IFNAME=lo");
  EXPECT_TRUE(read.sources.empty());
}

TEST_F(SiteFile, SaysItselfWhetherAnybodyTriedIt) {
  write("base.yaml", "version: 1\nuntried: true\n");
  write("top.yaml", "version: 1\nextends: base\n");
  EXPECT_TRUE(value(load_site("base", {folder()}, {})).untried);
  EXPECT_FALSE(value(load_site("top", {folder()}, {})).untried);
}

TEST_F(SiteFile, IsChosenWhenAllThatItAsksForFits) {
  write("nid.yaml", "version: 1\nmatch: {hostname: 'nid*', slurm_cluster: '*ai*'}\n");
  write("hopper.yaml", "version: 1\nmatch: {gpu: 'NVIDIA H?00*', file: " + folder() + "/*.yaml}\n");
  write("plain.yaml", "version: 1\n");
  const auto chosen = [&](const MatchFacts& facts) {
    return value(choose_site({folder()}, facts, {})).name.value;
  };
  EXPECT_EQ(chosen({"nid001", "isambard-ai", "", {}}), "nid");
  EXPECT_EQ(chosen({"nid001", "", "", {}}), "local");
  EXPECT_EQ(chosen({"box", "", "", {"NVIDIA L4", "NVIDIA H200"}}), "hopper");
  EXPECT_EQ(chosen({"box", "", "", {}}), "local");
}

TEST(ShippedProfiles, Load) {
  const std::string folder = NLAUNCH_SOURCE_DIR "/site-profiles";
  for (const auto& entry : list_sites({folder})) {
    const auto read = load_site(entry.name, {folder}, {});
    EXPECT_TRUE(read) << render(read.error());
  }
}

}  // namespace
}  // namespace nlaunch::config
