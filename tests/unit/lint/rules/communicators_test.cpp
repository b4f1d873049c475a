#include <gtest/gtest.h>

#include <algorithm>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

LintInput protocol(const std::string& list, const std::string& gpu = "", const std::string& nics = "") {
  auto input = scene({set("NCCL_PROTO", list)});
  input.gpu = gpu;
  input.nics = nics;
  return input;
}

TEST(ForcedLl128, IsAnErrorWhereItDamagedData) {
  const std::string what = " a.env:1:1 NCCL_PROTO=LL128 forces LL128";
  EXPECT_EQ(found("forced-ll128", protocol("LL128")), Texts{"warning" + what});
  EXPECT_EQ(found("forced-ll128", protocol("LL128", "H100", "ib")), Texts{"warning" + what});
  EXPECT_EQ(found("forced-ll128", protocol("LL128", "GH200")), Texts{"error" + what});
  EXPECT_EQ(found("forced-ll128", protocol("LL128", "", "cxi")), Texts{"error" + what});
  EXPECT_EQ(found("forced-ll128", protocol("^LL128", "GH200")), Texts{});
  EXPECT_EQ(found("forced-ll128", protocol("Simple", "GH200")), Texts{});
}

TEST(ForcedLl128, GooglesPluginWantsIt) {
  for (const auto* name : {"NCCL_TUNER_CONFIG_PATH", "NCCL_FASTRAK_CTRL_DEV", "NCCL_FASTRAK_IFNAME"}) {
    EXPECT_EQ(found("forced-ll128", scene({set("NCCL_PROTO", "LL128"), set(name, "x")})), Texts{}) << name;
  }
  EXPECT_EQ(
      found("forced-ll128", scene({set("NCCL_PROTO", "LL128"), set("NCCL_FASTRAK_NUM_FLOWS", "2")})).size(),
      1U);
}

TEST(ForcedLl, AloneItIsForSmallMessages) {
  EXPECT_EQ(found("forced-ll", protocol("LL")),
            Texts{"warning a.env:1:1 NCCL_PROTO=LL forces LL for messages of every size"});
  for (const auto* list : {"LL,Simple", "LL,LL128", "LL128", "Simple", "^LL", "^Simple"}) {
    EXPECT_EQ(found("forced-ll", protocol(list)), Texts{}) << list;
  }
}

TEST(ForcedSimple, SmallMessagesWait) {
  EXPECT_EQ(found("forced-simple", protocol("simple")),
            Texts{"note a.env:1:1 NCCL_PROTO=simple forces Simple for messages of every size"});
  for (const auto* list : {"LL,Simple", "LL128,Simple", "LL", "^LL", "^LL128", "^Simple"})
    EXPECT_EQ(found("forced-simple", protocol(list)), Texts{}) << list;
  EXPECT_EQ(found("forced-simple",
                  scene({set("NCCL_PROTO", "Simple"), set("NCCL_GPUDIRECTTCPX_CTRL_DEV", "eth0")})),
            Texts{});
  EXPECT_EQ(
      found("forced-simple", scene({set("NCCL_PROTO", "Simple"), set("NCCL_FASTRAK_CTRL_DEV", "eth0")})),
      Texts{});
  auto slingshot = protocol("Simple");
  slingshot.nics = "cxi";
  EXPECT_EQ(found("forced-simple", slingshot), Texts{});
}

/// A job on GH200 with Slingshot.
LintInput slingshot(std::vector<Setting> settings = {}) {
  auto input = scene(std::move(settings));
  input.gpu = "GH200";
  input.nics = "cxi";
  return input;
}

std::string unguarded(const std::string& nccl = "2.27.3 or newer") {
  return "GH200 with Slingshot, NCCL " + nccl + ", and nothing that keeps LL128 off the network";
}

TEST(Ll128Guard, IsForSeveralNodesOfGraceHopperWithSlingshot) {
  auto input = slingshot();
  const Texts told{"error  " + unguarded()};
  EXPECT_EQ(found("ll128-guard", input), told);
  input.nodes = 2;
  EXPECT_EQ(found("ll128-guard", input), told);
  input.nodes = 1;
  EXPECT_EQ(found("ll128-guard", input), Texts{});
  input = slingshot();
  input.gpu = "H100";
  EXPECT_EQ(found("ll128-guard", input), Texts{});
  input = slingshot();
  input.nics = "ib";
  EXPECT_EQ(found("ll128-guard", input), Texts{});
  input = slingshot();
  input.by_nlaunch = true;
  EXPECT_EQ(found("ll128-guard", input), Texts{});
}

TEST(Ll128Guard, IsForReleasesThatHaveTheLink) {
  const auto with = [](const std::string& release) {
    auto input = slingshot();
    input.environments[0].releases["NCCL"] = version(release);
    return found("ll128-guard", input);
  };
  EXPECT_EQ(with("2.27.3"), Texts{"error  " + unguarded("2.27.3")});
  EXPECT_EQ(with("2.30.7"), Texts{"error  " + unguarded("2.30.7")});
  EXPECT_EQ(with("2.27.2"), Texts{});
  EXPECT_EQ(with("2.26.9"), Texts{});
}

TEST(Ll128Guard, AnyOfThreeGuardsWillDo) {
  const auto said = [](std::vector<Setting> settings) {
    return found("ll128-guard", slingshot(std::move(settings))).size();
  };
  EXPECT_EQ(said({set("NCCL_LL128_C2C", "0")}), 0U);
  EXPECT_EQ(said({open("NCCL_LL128_C2C")}), 0U);
  EXPECT_EQ(said({set("NCCL_LL128_C2C", "1")}), 1U);
  EXPECT_EQ(said({set("NCCL_LL128_C2C", "no")}), 1U);
  EXPECT_EQ(said({set("NCCL_PROTO", "^LL128")}), 0U);
  EXPECT_EQ(said({set("NCCL_PROTO", "Simple")}), 0U);
  EXPECT_EQ(said({set("NCCL_PROTO", "^LL")}), 1U);
  EXPECT_EQ(said({set("FI_CXI_RDZV_THRESHOLD", "0"), set("FI_CXI_RDZV_GET_MIN", "0")}), 0U);
  EXPECT_EQ(said({set("FI_CXI_RDZV_THRESHOLD", "0")}), 1U);
  EXPECT_EQ(said({set("FI_CXI_RDZV_GET_MIN", "0")}), 1U);
}

TEST(Ll128Guard, AServiceNeedsNone) {
  auto input = slingshot();
  input.environments[0].name = "web";
  input.environments[0].kind = RoleKind::service;
  EXPECT_EQ(found("ll128-guard", input), Texts{});
  input.environments[0].kind = RoleKind::engine;
  EXPECT_EQ(found("ll128-guard", input), Texts{"error  (web) " + unguarded()});
}

TEST(Ll128Guard, ItIsSaidWhereTheNetworkIsChosen) {
  const auto where = [](std::vector<Setting> settings) {
    return found("ll128-guard", slingshot(std::move(settings))).at(0).substr(6, 9);
  };
  EXPECT_EQ(where({set("NCCL_NET", "OFI"), set("FI_PROVIDER", "cxi")}), "a.env:2:1");
  EXPECT_EQ(where({set("NCCL_SOCKET_IFNAME", "hsn"), set("FI_CXI_RX_MATCH_MODE", "software"),
                   set("NCCL_NET", "OFI")}),
            "a.env:3:1");
  EXPECT_EQ(where({set("NCCL_SOCKET_IFNAME", "hsn"), set("FI_CXI_RX_MATCH_MODE", "software")}), "a.env:2:1");
  EXPECT_EQ(where({set("NCCL_DEBUG", "WARN"), set("NCCL_SOCKET_IFNAME", "hsn")}), "a.env:2:1");
}

TEST(Ll128Guard, OrOfTheWholeScript) {
  auto input = script("#SBATCH --partition=gh200\nexport FI_CXI_ATS=0\nsrun a\n");
  const auto findings = lint(input);
  const auto one = std::ranges::find(findings, "ll128-guard", &Finding::rule);
  ASSERT_NE(one, findings.end());
  EXPECT_EQ(one->span.where(), "job.sh");
  EXPECT_EQ(one->span.line, 0U);
  EXPECT_EQ(one->span.column, 0U);
  EXPECT_EQ(one->span.length, 1U);
}

/// Roles r0, r1, ... in one group, each with a setting or none.
LintInput roles(std::vector<std::vector<Setting>> settings) {
  LintInput input;
  input.plan = true;
  std::vector<std::size_t> members;
  for (auto& one : settings) {
    members.push_back(members.size());
    input.environments.push_back(environment("r" + std::to_string(members.size() - 1), std::move(one)));
  }
  input.groups = {{"weight sync", members}};
  return input;
}

Texts cumem(std::vector<std::vector<Setting>> settings) {
  return found("cumem-differs", roles(std::move(settings)));
}

TEST(CumemDiffers, WithinAGroup) {
  const std::string name = "NCCL_CUMEM_ENABLE";
  EXPECT_EQ(cumem({{set(name, "0")}, {set(name, "1")}}),
            Texts{"error r1.env:1:1 NCCL_CUMEM_ENABLE differs within weight sync: 0 in r0, 1 in r1"});
  EXPECT_EQ(cumem({{set(name, "0")}, {}, {set(name, "0")}}),
            Texts{"error r2.env:1:1 NCCL_CUMEM_ENABLE differs within weight sync: 0 in r0, r2, unset in r1"});
  EXPECT_EQ(cumem({{set(name, "0")}, {unset(name)}}),
            Texts{"error r1.env:1:1 NCCL_CUMEM_ENABLE differs within weight sync: 0 in r0, unset in r1"});
  EXPECT_EQ(cumem({{set(name, "0")}, {set(name, "0")}}), Texts{});
  EXPECT_EQ(cumem({{unset(name)}, {}}), Texts{});
  EXPECT_EQ(cumem({{}, {}}), Texts{});
}

TEST(CumemDiffers, OnlyWhereAllIsKnown) {
  const std::string name = "NCCL_CUMEM_ENABLE";
  EXPECT_EQ(cumem({{set(name, "0")}, {open(name)}}), Texts{});
  EXPECT_EQ(cumem({{open(name)}, {set(name, "0")}}), Texts{});
  EXPECT_EQ(cumem({{set(name, "0")}, {maybe(set(name, "1"))}}), Texts{});
}

TEST(CumemDiffers, OneGroupSaysNothingOfTheNext) {
  const std::string name = "NCCL_CUMEM_ENABLE";
  auto input = roles({{open(name)}, {set(name, "0")}, {set(name, "1")}});
  input.groups = {{"one", {0, 1}}, {"none", {}}, {"two", {1, 2}}};
  EXPECT_EQ(found("cumem-differs", input),
            Texts{"error r2.env:1:1 NCCL_CUMEM_ENABLE differs within two: 0 in r1, 1 in r2"});
}

TEST(ReleaseDiffers, AtThePreloadOfTheLast) {
  auto input = roles({{}, {}, {}, {}});
  input.environments[0].releases["NCCL"] = version("2.27.5");
  input.environments[1].releases["NCCL"] = version("2.28.9");
  input.environments[2].releases["PyTorch"] = version("2.9.1");
  EXPECT_EQ(found("release-differs", input),
            Texts{"error  weight sync has several releases of NCCL: 2.27.5 in r0, 2.28.9 in r1"});
  input.environments[1].preload_span = {a_file("a.yaml"), 3, 4, 1};
  EXPECT_EQ(found("release-differs", input),
            Texts{"error a.yaml:3:4 weight sync has several releases of NCCL: 2.27.5 in r0, 2.28.9 in r1"});
  input.environments[3].releases["NCCL"] = version("2.27.5");
  input.environments[1].releases.clear();
  EXPECT_EQ(found("release-differs", input), Texts{});
}

}  // namespace
}  // namespace nlaunch::lint
