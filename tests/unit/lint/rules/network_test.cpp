#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

Texts interfaces(const std::string& name, const std::string& value) {
  return found("interfaces", scene({set(name, value)}));
}

TEST(Interfaces, AListThatLeavesOutLetsLoopbackIn) {
  for (const std::string name : {"NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME"}) {
    for (const std::string list : {"^docker", "^docker,virbr", "^=docker", "^lo0"}) {
      EXPECT_EQ(interfaces(name, list), Texts{"error a.env:1:1 " + name + "=" + list +
                                              " excludes only what it names, and so allows loopback"});
    }
    for (const std::string list :
         {"docker", "^docker,lo", "^lo", "^l", "^=lo", "^", "", "=hsn0", "hsn0,lo"}) {
      EXPECT_EQ(interfaces(name, list), Texts{}) << list;
    }
  }
  EXPECT_EQ(whole("interfaces", scene({set("NCCL_SOCKET_IFNAME", "^docker")})).at(2),
            "NCCL_SOCKET_IFNAME=^docker,lo");
}

TEST(Interfaces, TheSignCountsInFrontAlone) {
  EXPECT_EQ(interfaces("NCCL_SOCKET_IFNAME", "hsn,^docker"),
            Texts{"error a.env:1:1 NCCL_SOCKET_IFNAME=hsn,^docker has a ^ that is not the first character"});
  EXPECT_EQ(interfaces("NCCL_SOCKET_IFNAME", "^lo,^docker"),
            Texts{"error a.env:1:1 NCCL_SOCKET_IFNAME=^lo,^docker has a ^ that is not the first character"});
  EXPECT_EQ(interfaces("NCCL_SOCKET_IFNAME", "^docker,^lo").size(), 2U);
}

TEST(Interfaces, GlooTakesWholeNames) {
  for (const std::string prefix : {"hsn", "ib", "eth", "en", "bond"}) {
    EXPECT_EQ(interfaces("GLOO_SOCKET_IFNAME", prefix),
              Texts{"error a.env:1:1 GLOO_SOCKET_IFNAME=" + prefix + " is not an interface"});
    EXPECT_EQ(whole("interfaces", scene({set("GLOO_SOCKET_IFNAME", "eth0," + prefix)})).at(2),
              "GLOO_SOCKET_IFNAME=" + prefix + "0");
  }
  for (const std::string list : {"^docker", "=eth0", "eth0,^docker"}) {
    EXPECT_EQ(interfaces("GLOO_SOCKET_IFNAME", list),
              Texts{"error a.env:1:1 GLOO_SOCKET_IFNAME=" + list + " is not an interface"});
    EXPECT_EQ(whole("interfaces", scene({set("GLOO_SOCKET_IFNAME", list)})).at(2),
              "the name of one interface");
  }
  for (const std::string list : {"eth0", "lo", "eth0,eth1", "docker", ""}) {
    EXPECT_EQ(interfaces("GLOO_SOCKET_IFNAME", list), Texts{}) << list;
  }
  EXPECT_EQ(interfaces("GLOO_SOCKET_IFNAME", "hsn,ib").size(), 1U);
}

TEST(NetOnOneNode, OnlyThere) {
  const auto said = [](const Setting& setting, std::optional<std::uint32_t> nodes) {
    auto input = scene({setting});
    input.nodes = nodes;
    return found("net-on-one-node", input);
  };
  EXPECT_EQ(said(set("NCCL_NET", "OFI"), 1), Texts{"warning a.env:1:1 NCCL_NET=OFI in a single-node job"});
  EXPECT_EQ(said(set("NCCL_NET", "OFI"), 2), Texts{});
  EXPECT_EQ(said(set("NCCL_NET", "OFI"), 0), Texts{});
  EXPECT_EQ(said(set("NCCL_NET", "OFI"), std::nullopt), Texts{});
  EXPECT_EQ(said(set("NCCL_NET", ""), 1), Texts{});
  EXPECT_EQ(said(maybe(set("NCCL_NET", "OFI")), 1), Texts{});
}

TEST(NetSocket, WhereThereIsAFasterOne) {
  const auto said = [](const std::string& net, const std::string& nics, std::optional<std::uint32_t> nodes) {
    auto input = scene({set("NCCL_NET", net)});
    input.nics = nics;
    input.nodes = nodes;
    return found("net-socket", input);
  };
  const Texts told{"warning a.env:1:1 NCCL_NET=Socket sends everything between nodes over TCP"};
  EXPECT_EQ(said("Socket", "cxi", 2), told);
  EXPECT_EQ(said("Socket", "ib", std::nullopt), told);
  EXPECT_EQ(said("Socket", "", 2), Texts{});
  EXPECT_EQ(said("Socket", "efa", 1), Texts{});
  EXPECT_EQ(said("IB", "ib", 2), Texts{});
}

Texts with_release(const std::string& net, const std::string& release) {
  auto input = scene({set("NCCL_NET", net)});
  input.environments[0].releases["aws-ofi-nccl"] = version(release);
  return found("net-plugin", input);
}

TEST(NetPlugin, AnOldPluginHasOneName) {
  for (const std::string net : {"OFI", "ofi", "libfabric", "Libfabric"}) {
    EXPECT_EQ(with_release(net, "1.12.1"),
              Texts{"error a.env:1:1 aws-ofi-nccl 1.12.1 is named \"AWS Libfabric\", not " + net});
    EXPECT_EQ(with_release(net, "1.13.0"), Texts{});
    EXPECT_EQ(found("net-plugin", scene({set("NCCL_NET", net)})), Texts{});
  }
  EXPECT_EQ(with_release("AWS Libfabric", "1.12.1"), Texts{});
  EXPECT_EQ(with_release("IB", "1.12.1"), Texts{});
}

Texts with_plugin(const std::string& net, const std::string& plugin) {
  return found("net-plugin", scene({set("NCCL_NET", net), set("NCCL_NET_PLUGIN", plugin)}));
}

TEST(NetPlugin, WithoutAPluginThereIsNothingButIbAndSocket) {
  for (const std::string net : {"OFI", "AWS Libfabric", "mlx"}) {
    EXPECT_EQ(with_plugin(net, "none"),
              Texts{"error a.env:1:1 NCCL_NET=" + net + " with NCCL_NET_PLUGIN=none"});
  }
  for (const std::string net : {"IB", "ib", "Socket"}) EXPECT_EQ(with_plugin(net, "none"), Texts{}) << net;
}

TEST(NetPlugin, TheFileHasToFitTheName) {
  for (const std::string net : {"OFI", "AWS Libfabric", "libfabric"}) {
    EXPECT_EQ(with_plugin(net, "spcx"),
              Texts{"error a.env:1:1 NCCL_NET=" + net +
                    " requests aws-ofi-nccl, but NCCL_NET_PLUGIN=spcx loads another plugin"});
    for (const std::string plugin : {"ofi", "aws", "my-aws-ofi", "/opt/libnccl-net.so", ""}) {
      EXPECT_EQ(with_plugin(net, plugin), Texts{}) << plugin;
    }
  }
  EXPECT_EQ(with_plugin("IB", "spcx"), Texts{});
  EXPECT_EQ(with_plugin("spcx", "spcx"), Texts{});
  EXPECT_EQ(found("net-plugin", scene({set("NCCL_NET", "OFI"), maybe(set("NCCL_NET_PLUGIN", "none"))})),
            Texts{});
}

TEST(IbDisabled, WhereInfiniBandIsTheNetwork) {
  const auto why = [](std::vector<Setting> settings, const char* nics) {
    auto input = scene(std::move(settings));
    input.nics = nics;
    const auto said = whole("ib-disabled", input);
    return said.empty() ? "" : said.at(1);
  };
  const std::string slow = "NCCL then uses TCP, at a fraction of the speed";
  EXPECT_EQ(why({set("NCCL_IB_DISABLE", "1")}, "ib"), slow);
  EXPECT_EQ(why({set("NCCL_IB_DISABLE", "2")}, "ib"), slow);
  EXPECT_EQ(why({set("NCCL_IB_DISABLE", "1"), set("NCCL_IB_HCA", "mlx5")}, ""),
            "NCCL_IB_HCA selects adapters that NCCL then does not use: traffic goes over TCP");
  EXPECT_EQ(why({set("NCCL_IB_DISABLE", "1")}, "cxi"), "");
  EXPECT_EQ(why({set("NCCL_IB_DISABLE", "1")}, ""), "");
  EXPECT_EQ(why({set("NCCL_IB_DISABLE", "0")}, "ib"), "");
  EXPECT_EQ(why({set("NCCL_IB_DISABLE", "1x")}, "ib"), "");
  EXPECT_EQ(why({set("NCCL_IB_DISABLE", "1"), set("NCCL_IB_DISABLE", "0")}, "ib"), "");
}

TEST(SameIdentity, OneIdForAllIsTold) {
  EXPECT_EQ(found("same-identity", scene({set("NCCL_COMM_ID", "a:1"), set("NCCL_HOSTID", "me")})),
            (Texts{"error a.env:1:1 NCCL_COMM_ID in the environment of a job",
                   "error a.env:2:1 NCCL_HOSTID=me is the same on every node"}));
  EXPECT_EQ(found("same-identity", scene({open("NCCL_COMM_ID")})).size(), 1U);
  EXPECT_EQ(found("same-identity", scene({open("NCCL_HOSTID"), unset("NCCL_COMM_ID"), unset("NCCL_HOSTID"),
                                          once(set("NCCL_COMM_ID", "a:1")), once(set("NCCL_HOSTID", "me")),
                                          set("NCCL_NET", "x")})),
            Texts{});
}

LintInput alt_read() {
  auto input = scene({set("FI_CXI_RDZV_PROTO", "alt_read")});
  input.slurm = true;
  return input;
}

StepOption option(std::string text) {
  return {std::move(text), {}};
}

constexpr const char* kAltRead =
    "warning a.env:1:1 FI_CXI_RDZV_PROTO=alt_read has no effect without srun --network=disable_rdzv_get";

TEST(AltRead, TheJobOrEachStepHasToAskForIt) {
  auto input = alt_read();
  EXPECT_EQ(found("alt-read", input), Texts{kAltRead});
  input.batch = {option("--time=1"), option("--network=disable_rdzv_get")};
  EXPECT_EQ(found("alt-read", input), Texts{});
  input.batch = {option("--network=job_vni"), option("--comment=disable_rdzv_get")};
  EXPECT_EQ(found("alt-read", input), Texts{kAltRead});
  Step with;
  with.options = {option("--mpi=none"), option("--network=job_vni,disable_rdzv_get")};
  input.steps = {with};
  EXPECT_EQ(found("alt-read", input), Texts{});
  input.steps = {with, Step()};
  EXPECT_EQ(found("alt-read", input), Texts{kAltRead});
  input.steps[1].open_ended = true;
  EXPECT_EQ(found("alt-read", input), Texts{});
}

TEST(AltRead, WhatStartsNothingCannotSay) {
  auto input = alt_read();
  input.slurm = false;
  EXPECT_EQ(found("alt-read", input), Texts{});
  input.plan = true;
  EXPECT_EQ(found("alt-read", input), Texts{kAltRead});
  EXPECT_EQ(found("alt-read", script("export FI_CXI_RDZV_PROTO=alt_read\npython a.py\n")), Texts{});
  EXPECT_EQ(found("alt-read", script("export FI_CXI_RDZV_PROTO=alt_read\nsrun python a.py\n")).size(), 1U);
}

TEST(AltRead, WhatItComesTo) {
  auto input = alt_read();
  EXPECT_EQ(whole("alt-read", input),
            (Texts{"FI_CXI_RDZV_PROTO=alt_read has no effect without srun --network=disable_rdzv_get",
                   "the protocol requires that the NIC does not offload the rendezvous get; where it does, "
                   "libfabric silently uses its default protocol",
                   "srun --network=disable_rdzv_get (Slurm 23.11 or newer)",
                   "HPE shs-ccl-docs nccl_tuning_guide.md; fi_cxi(7)"}));
  input.environments = {environment(
      "", {set("FI_CXI_RDZV_PROTO", "alt_read"), set("SLURM_NETWORK", "single_node_vni,disable_rdzv_get")})};
  EXPECT_EQ(found("alt-read", input), Texts{});
}

TEST(AltRead, OnlyTheValueThatHolds) {
  auto input = alt_read();
  input.environments = {
      environment("", {set("FI_CXI_RDZV_PROTO", "alt_read"), set("FI_CXI_RDZV_PROTO", "default")})};
  EXPECT_EQ(found("alt-read", input), Texts{});
  input.environments = {
      environment("", {set("FI_CXI_RDZV_PROTO", "default"), set("FI_CXI_RDZV_PROTO", "alt_read")})};
  EXPECT_EQ(found("alt-read", input).size(), 1U);
}

LintInput grace(std::vector<Setting> settings) {
  auto input = scene(std::move(settings));
  input.gpu = "GH200";
  return input;
}

TEST(Gdrcopy, OnGraceHopperWithoutTheRendezvousSettings) {
  for (const std::string name : {"NCCL_GDRCOPY_ENABLE", "FI_HMEM_CUDA_USE_GDRCOPY"}) {
    auto input = grace({set(name, "1")});
    const Texts told{"warning a.env:1:1 " + name +
                     " enables GDRCopy on Grace Hopper without the rendezvous settings"};
    EXPECT_EQ(found("gdrcopy", input), told);
    input.nodes = 2;
    EXPECT_EQ(found("gdrcopy", input), told);
    input.nodes = 1;
    EXPECT_EQ(found("gdrcopy", input), Texts{});
    input.nodes.reset();
    input.gpu = "H100";
    EXPECT_EQ(found("gdrcopy", input), Texts{});
    EXPECT_EQ(found("gdrcopy", grace({set(name, "0")})), Texts{});
    EXPECT_EQ(found("gdrcopy", grace({set(name, "true")})), Texts{});
    EXPECT_EQ(found("gdrcopy", grace({maybe(set(name, "1"))})), Texts{});
    EXPECT_EQ(found("gdrcopy", grace({set(name, "1"), set(name, "0")})), Texts{});
    EXPECT_EQ(found("gdrcopy", grace({set(name, "1"), set(name, "2")})).size(), 1U);
  }
}

TEST(Gdrcopy, BothRendezvousSettingsGuardIt) {
  const auto said = [](std::vector<Setting> beside) {
    beside.push_back(set("NCCL_GDRCOPY_ENABLE", "1"));
    return found("gdrcopy", grace(std::move(beside))).size();
  };
  EXPECT_EQ(said({set("FI_CXI_RDZV_THRESHOLD", "0"), set("FI_CXI_RDZV_GET_MIN", "0")}), 0U);
  EXPECT_EQ(said({open("FI_CXI_RDZV_THRESHOLD"), set("FI_CXI_RDZV_GET_MIN", "0x0")}), 0U);
  EXPECT_EQ(said({set("FI_CXI_RDZV_THRESHOLD", "0")}), 1U);
  EXPECT_EQ(said({set("FI_CXI_RDZV_GET_MIN", "0")}), 1U);
  EXPECT_EQ(said({set("FI_CXI_RDZV_THRESHOLD", "0"), set("FI_CXI_RDZV_GET_MIN", "1")}), 1U);
  EXPECT_EQ(said({set("FI_CXI_RDZV_THRESHOLD", "16384"), set("FI_CXI_RDZV_GET_MIN", "0")}), 1U);
  EXPECT_EQ(said({set("FI_CXI_RDZV_THRESHOLD", "off"), set("FI_CXI_RDZV_GET_MIN", "0")}), 1U);
}

TEST(MpichGpu, BesideNcclAlone) {
  const auto mpich = set("MPICH_GPU_SUPPORT_ENABLED", "1");
  const Texts told{"warning a.env:1:1 MPICH_GPU_SUPPORT_ENABLED=1 together with NCCL"};
  EXPECT_EQ(found("mpich-gpu", scene({mpich, set("A", "1"), set("NCCL_DEBUG", "WARN")})), told);
  EXPECT_EQ(found("mpich-gpu", scene({mpich, set("TORCH_NCCL_DESYNC_DEBUG", "1")})), told);
  EXPECT_EQ(found("mpich-gpu", scene({mpich, set("TORCH_CPP_LOG_LEVEL", "INFO")})), Texts{});
  EXPECT_EQ(found("mpich-gpu", scene({mpich})), Texts{});
  EXPECT_EQ(found("mpich-gpu", scene({set("MPICH_GPU_SUPPORT_ENABLED", "0"), set("NCCL_DEBUG", "WARN")})),
            Texts{});
}

TEST(IbElsewhere, OnAnotherNetwork) {
  auto input = scene({set("NCCL_IB_HCA", "mlx5"), set("NCCL_IB_DISABLE", "1"), set("NCCL_DEBUG", "WARN")});
  EXPECT_EQ(found("ib-elsewhere", input), Texts{});
  input.nics = "cxi";
  EXPECT_EQ(found("ib-elsewhere", input),
            Texts{"warning a.env:1:1 NCCL_IB_HCA is for InfiniBand, but the network here is Slingshot"});
  input.nics = "efa";
  EXPECT_EQ(found("ib-elsewhere", input),
            Texts{"warning a.env:1:1 NCCL_IB_HCA is for InfiniBand, but the network here is EFA"});
  input.environments.push_back(environment("", {set("NCCL_NET", "IB"), set("NCCL_IB_TC", "106")}));
  EXPECT_EQ(found("ib-elsewhere", input).size(), 1U);
}

TEST(VisibleDevices, FewerThanTheJobHas) {
  const auto seen = [](const std::string& text) {
    return found("visible-devices", script("#SBATCH --gres=gpu:4\n" + text + "\n"));
  };
  EXPECT_EQ(
      seen("export CUDA_VISIBLE_DEVICES=0,1\npython a.py"),
      Texts{"warning job.sh:2:8 CUDA_VISIBLE_DEVICES=0,1 exposes 2 of the 4 GPUs that the job requests"});
  for (const auto* fine :
       {"export CUDA_VISIBLE_DEVICES=0,1,2,3\npython a.py",
        "CUDA_VISIBLE_DEVICES=0 a &\nCUDA_VISIBLE_DEVICES=1,2,3 b", "CUDA_VISIBLE_DEVICES=0 a &\nb",
        "python a.py", "export CUDA_VISIBLE_DEVICES=$X\npython a.py"}) {
    EXPECT_EQ(seen(fine), Texts{}) << fine;
  }
  EXPECT_EQ(found("visible-devices", script("export CUDA_VISIBLE_DEVICES=0\npython a.py\n")), Texts{});
}

TEST(DebugLeftOn, InTheJobsOwnOutput) {
  EXPECT_EQ(found("debug-left-on", scene({set("NCCL_DEBUG", "INFO")})),
            Texts{"note a.env:1:1 NCCL_DEBUG=INFO writes NCCL's log into the job's output"});
  EXPECT_EQ(found("debug-left-on", scene({set("NCCL_DEBUG", "WARN")})), Texts{});
  EXPECT_EQ(found("debug-left-on", scene({set("NCCL_DEBUG", "INFO"), set("NCCL_DEBUG_FILE", "/tmp/x")})),
            Texts{});
  auto plan = scene({set("NCCL_DEBUG", "INFO")});
  plan.plan = true;
  EXPECT_EQ(found("debug-left-on", plan), Texts{});
}

TEST(DebugLeftOn, OfOthersToo) {
  for (const std::string log :
       {"FI_LOG_LEVEL=info", "FI_LOG_LEVEL=Trace", "UCX_LOG_LEVEL=debug", "NVSHMEM_DEBUG=INFO",
        "RAY_BACKEND_LOG_LEVEL=debug", "VLLM_LOGGING_LEVEL=DEBUG"}) {
    const auto equals = log.find('=');
    EXPECT_EQ(found("debug-left-on", scene({set(log.substr(0, equals), log.substr(equals + 1))})),
              Texts{"note a.env:1:1 " + log + " is for debugging"});
  }
  for (const auto* fine : {"FI_LOG_LEVEL", "UCX_LOG_LEVEL", "NVSHMEM_DEBUG", "RAY_BACKEND_LOG_LEVEL"})
    EXPECT_EQ(found("debug-left-on", scene({set(fine, "warn")})), Texts{}) << fine;
}

TEST(TransportOff, WithinANode) {
  EXPECT_EQ(found("transport-off", scene({set("NCCL_P2P_DISABLE", "1")})),
            Texts{"warning a.env:1:1 NCCL_P2P_DISABLE=1: the GPUs of a node copy through host memory "
                  "instead of "
                  "NVLink or PCIe"});
  EXPECT_EQ(found("transport-off", scene({set("NCCL_P2P_LEVEL", "LOC")})).size(), 1U);
  EXPECT_EQ(found("transport-off", scene({set("NCCL_SHM_DISABLE", "1")})).size(), 1U);
  EXPECT_EQ(found("transport-off", scene({set("NCCL_P2P_DISABLE", "0"), set("NCCL_P2P_LEVEL", "NVL")})),
            Texts{});
  EXPECT_EQ(found("transport-off", scene({set("NCCL_P2P_DISABLE", "1"), set("NCCL_P2P_DISABLE", "0")})),
            Texts{});
}

TEST(IbDisabled, WhereTheNetworkIsNotKnown) {
  auto input = scene({set("NCCL_IB_DISABLE", "1")});
  EXPECT_EQ(found("ib-disabled", input), Texts{});
  input.nodes = 2;
  EXPECT_EQ(found("ib-disabled", input), Texts{"warning a.env:1:1 NCCL_IB_DISABLE=1 in a multi-node job"});
  input.nics = "efa";
  EXPECT_EQ(found("ib-disabled", input), Texts{});
}

TEST(VisibleDevices, OneThatTheJobDoesNotHave) {
  const auto seen = [](const std::string& directives, const std::string& value) {
    return found("visible-devices", script("#SBATCH " + directives +
                                           "\nexport CUDA_VISIBLE_DEVICES=" + value + "\npython a.py\n"));
  };
  EXPECT_EQ(seen("--gres=gpu:2", "2,3"),
            Texts{"error job.sh:2:8 CUDA_VISIBLE_DEVICES=2,3 names GPU 3, but the job requests 2 GPUs, "
                  "numbered from 0"});
  EXPECT_EQ(seen("--gres=gpu:1", "1").size(), 1U);
  EXPECT_EQ(seen("--gres=gpu:2", "0,1"), Texts{});
  EXPECT_EQ(seen("--gres=gpu:2 --exclusive", "2,3"), Texts{});
}

TEST(IbDisabled, NotOnSlingshot) {
  auto input = scene({set("NCCL_IB_DISABLE", "1"), set("NCCL_SOCKET_IFNAME", "hsn0")});
  input.nodes = 2;
  EXPECT_EQ(found("ib-disabled", input), Texts{});
}

TEST(IbDisabled, BesideSettingsOfInfiniBand) {
  EXPECT_EQ(whole("ib-disabled", scene({set("NCCL_IB_DISABLE", "1"), set("NCCL_IB_TIMEOUT", "22")})),
            (Texts{"NCCL_IB_TIMEOUT has no effect: NCCL_IB_DISABLE=1 turns InfiniBand off",
                   "only NCCL's InfiniBand transport reads it", "leave out one of the two",
                   "NCCL src/transport/net_ib/init.cc"}));
  EXPECT_EQ(found("ib-disabled", scene({set("NCCL_IB_DISABLE", "0"), set("NCCL_IB_TIMEOUT", "22")})),
            Texts{});
}

TEST(Workaround, LeftInPlace) {
  EXPECT_EQ(whole("workaround", scene({set("HSA_ENABLE_SDMA", "0")})),
            (Texts{"HSA_ENABLE_SDMA=0: copies are done by kernels instead of the DMA engines",
                   "they take compute units from the program, and no longer overlap with it", "leave it out",
                   "ROCR-Runtime runtime/hsa-runtime/core/util/flag.h; ROCm docs, environment variables"}));
  EXPECT_EQ(found("workaround", scene({set("NCCL_IGNORE_DISABLED_P2P", "1")})),
            Texts{"note a.env:1:1 NCCL_IGNORE_DISABLED_P2P=1: NCCL goes on where NVML reports that NVLink is "
                  "broken"});
  EXPECT_EQ(found("workaround", scene({set("FI_MR_CACHE_MONITOR", "disabled")})),
            Texts{"note a.env:1:1 FI_MR_CACHE_MONITOR=disabled: libfabric keeps no registered memory"});
  EXPECT_EQ(found("workaround", scene({set("HSA_ENABLE_SDMA", "1"), set("NCCL_IGNORE_DISABLED_P2P", "0"),
                                       set("FI_MR_CACHE_MONITOR", "userfaultfd")})),
            Texts{});
}

TEST(DebugLeftOn, OfTorchDistributed) {
  EXPECT_EQ(whole("debug-left-on", scene({set("TORCH_DISTRIBUTED_DEBUG", "INFO")})),
            (Texts{"TORCH_DISTRIBUTED_DEBUG=INFO is for debugging",
                   "each rank logs its process groups and its DDP models when they are made", "leave it out",
                   "PyTorch torch/csrc/distributed/c10d/debug.cpp"}));
  for (const auto& [name, source] :
       {std::pair("UCX_LOG_LEVEL", "UCX src/ucs/config/global_opts.c"),
        std::pair("LOGLEVEL", "PyTorch torch/distributed/elastic/utils/logging.py")})
    EXPECT_EQ(whole("debug-left-on", scene({set(name, "debug")})).at(3), source);
}

TEST(VisibleDevices, WithoutTheFirstOneAndWithoutANumberOfGpus) {
  const auto text = [](const std::string& directives, const std::string& value) {
    return "#!/bin/bash\n#SBATCH " + directives + "\nexport CUDA_VISIBLE_DEVICES=" + value +
           "\npython a.py\n";
  };
  EXPECT_EQ(whole("visible-devices", script(text("-N 1", "1"))),
            (Texts{"CUDA_VISIBLE_DEVICES=1 leaves out GPU 0, but the job does not request a number of GPUs",
                   "a job with one GPU has no GPU 1; where Slurm does not confine jobs to their GPUs, it can "
                   "be another job's",
                   "#SBATCH --gpus-per-node=N, and leave the list out: Slurm sets it to the job's GPUs",
                   "CUDA C++ programming guide, CUDA_VISIBLE_DEVICES; HIP docs, environment variables"}));
  EXPECT_EQ(
      found("visible-devices", script("#!/bin/bash\n#SBATCH -N 1\nexport "
                                      "APPTAINERENV_CUDA_VISIBLE_DEVICES=2,3\napptainer exec --nv a.sif "
                                      "python a.py\n")),
      Texts{"note job.sh:3:8 CUDA_VISIBLE_DEVICES=2,3 leaves out GPU 0, but the job does not request a "
            "number of GPUs"});
  for (const auto& fine :
       {text("-N 1", "0,1"), text("-N 1 --exclusive", "1"), text("--gres=gpu", "0"), text("-N 1", "$X"),
        std::string(
            "#!/bin/bash\n#SBATCH -N 1\nCUDA_VISIBLE_DEVICES=1 a &\nCUDA_VISIBLE_DEVICES=0 b\nwait\n"),
        std::string("export CUDA_VISIBLE_DEVICES=1\npython a.py\n")})
    EXPECT_EQ(found("visible-devices", script(fine)), Texts{}) << fine;
}

TEST(Workaround, WhereAVariableBringsItIntoACommand) {
  EXPECT_EQ(
      found("workaround", script("RUN=\"docker exec \\\n  -e HSA_ENABLE_SDMA=0 \\\n  c\"\n"
                                 "if true; then\n  $RUN python a.py\nfi\n")),
      Texts{"note job.sh:2:6 HSA_ENABLE_SDMA=0: copies are done by kernels instead of the DMA engines"});
}

TEST(DebugLeftOn, TheLevelTellsHowMuch) {
  EXPECT_EQ(whole("debug-left-on", scene({set("FI_LOG_LEVEL", "info")})),
            (Texts{"FI_LOG_LEVEL=info is for debugging",
                   "each process logs what it sets up, which makes errors hard to find", "leave it out",
                   "libfabric src/log.c"}));
  EXPECT_EQ(whole("debug-left-on", scene({set("FI_LOG_LEVEL", "debug")})).at(1),
            "each process logs every call, which makes errors hard to find");
}

TEST(VisibleDevices, OneForEachTask) {
  EXPECT_EQ(found("visible-devices",
                  script("#!/bin/bash\n#SBATCH --ntasks-per-node=4 --gpus-per-node=4\n"
                         "srun bash -c 'export CUDA_VISIBLE_DEVICES=$SLURM_LOCALID; python a.py'\n")),
            Texts{});
}

TEST(VisibleDevices, OfContainersAreNotKnown) {
  const std::string job = "#SBATCH --gpus-per-node=3\n";
  EXPECT_EQ(found("visible-devices",
                  script(job + "apptainer exec --env CUDA_VISIBLE_DEVICES=0 a.sif vllm serve m &\n"
                               "apptainer exec --env CUDA_VISIBLE_DEVICES=1,2 a.sif python a.py\n")),
            Texts{});
}

TEST(VisibleDevices, AProgramWithoutGpusHidesNothing) {
  const std::string job = "#SBATCH --gpus-per-node=3\n";
  EXPECT_EQ(
      found("visible-devices",
            script(job + "CUDA_VISIBLE_DEVICES=\"\" python peek.py\nCUDA_VISIBLE_DEVICES=2 python a.py\n"))
          .size(),
      1U);
  EXPECT_EQ(found("visible-devices", script(job + "CUDA_VISIBLE_DEVICES=\"\" python peek.py\npython a.py\n")),
            Texts{});
}

TEST(TransportOff, NotWithOneGpu) {
  const auto with = [](const std::string& gpus) {
    return found("transport-off", script("#!/bin/bash\n#SBATCH --gpus-per-node=" + gpus +
                                         "\nexport NCCL_P2P_DISABLE=1\npython a.py\n"));
  };
  EXPECT_EQ(with("1"), Texts{});
  EXPECT_EQ(with("2").size(), 1U);
}

}  // namespace
}  // namespace nlaunch::lint
