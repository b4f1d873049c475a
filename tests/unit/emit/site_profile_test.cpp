// Profiles of machines that are not here, against golden files; NLAUNCH_UPDATE_GOLDEN=1 rewrites them.
// tests/cli/sites_test.py has each of them checked and planned with.
#include "emit/site_profile.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace nlaunch::emit {
namespace {

const std::filesystem::path kGolden =
    std::filesystem::path(NLAUNCH_SOURCE_DIR) / "tests" / "golden" / "sites";

void expect_golden(const SiteFacts& facts, const std::string& name) {
  const auto text = site_profile(facts, name);
  const auto path = kGolden / (name + ".yaml");
  if (std::getenv("NLAUNCH_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream in(path);
  std::stringstream golden;
  golden << in.rdbuf();
  EXPECT_EQ(text, golden.str());
}

SiteFacts gpus(std::string host, std::size_t count, const std::string& model) {
  SiteFacts facts;
  facts.host = std::move(host);
  facts.arch = "x86_64";
  facts.cpus = 64;
  for (std::size_t i = 0; i < count; ++i)
    facts.gpus.push_back({model, "0000:" + std::to_string(i + 1) + "1:00.0"});
  facts.interfaces = {{"eno1", "10.0.0.7"}};
  facts.default_interface = "eno1";
  return facts;
}

TEST(SiteProfile, OfAMachineWithoutGpus) {
  SiteFacts facts;
  facts.host = "laptop";
  facts.arch = "x86_64";
  facts.cpus = 8;
  facts.no_gpus = "libnvidia-ml.so.1 is not here";
  expect_golden(facts, "laptop");
}

TEST(SiteProfile, OfAWorkstation) {
  auto facts = gpus("under-the-desk", 4, "NVIDIA GeForce RTX 3090");
  facts.modules_init = "/usr/share/lmod/lmod/init/bash";
  expect_golden(facts, "workstation");
}

TEST(SiteProfile, OfABoxWithNvlink) {
  auto facts = gpus("hgx-1.example.org", 8, "NVIDIA H200");
  facts.schema = "/opt/nlaunch/share/nlaunch/schema/site.json";
  expect_golden(facts, "hgx");
}

TEST(SiteProfile, OfTheLoginNodeOfASlingshotCluster) {
  SiteFacts facts;
  facts.host = "login01";
  facts.arch = "aarch64";
  facts.cpus = 72;
  facts.no_gpus = "NVML: no devices";
  facts.nics = {{"cxi0", "cxi"}, {"cxi1", "cxi"}};
  facts.interfaces = {{"nmn0", "10.1.0.3"}, {"hsn0", "10.150.0.3"}, {"hsn1", "10.150.0.4"}};
  facts.default_interface = "nmn0";
  facts.modules_init = "/opt/cray/pe/lmod/lmod/init/bash";
  facts.modules = {"PrgEnv-cray", "cuda/12.6", "odd \"name\""};
  facts.cluster = "ada";
  facts.partitions = {{"workq", "1-00:00:00", "288", "gpu:gh200:4", 1320, true},
                      {"debug", "infinite", "288", "gpu:gh200:4", 8}};
  expect_golden(facts, "slingshot");
}

TEST(SiteProfile, OfANodeOfAnInfinibandCluster) {
  auto facts = gpus("node17", 8, "NVIDIA A100-SXM4-80GB");
  facts.nics = {{"mlx5_0", "ib"}, {"mlx5_1", "ib"}, {"mlx5_2", "roce"}};
  facts.interfaces = {{"eno1", "10.0.0.17"}, {"ib0", "10.1.0.17"}};
  facts.cluster = "tower";
  facts.partitions = {{"gpu", "2-00:00:00", "128+", "gpu:a100:8(S:0-1)", 40},
                      {"long", "infinite", "128", "", 4}};
  expect_golden(facts, "infiniband");
}

TEST(SiteProfile, OfAParallelCluster) {
  auto facts = gpus("p5-1", 8, "NVIDIA H100 80GB HBM3");
  for (int i = 0; i < 32; ++i) facts.nics.push_back({"rdmap" + std::to_string(i), "efa"});
  facts.cluster = "parallelcluster";
  facts.partitions = {{"p5", "infinite", "192", "gpu:h100:8", 2, true}};
  expect_golden(facts, "parallelcluster");
}

TEST(SiteProfile, CountsTheGpusOfAGres) {
  EXPECT_EQ(gpus_of_gres("gpu:gh200:4"), 4U);
  EXPECT_EQ(gpus_of_gres("gpu:8(S:0-1),shard:16"), 8U);
  EXPECT_EQ(gpus_of_gres("gpu:a100:4(S:0-3),gpu:v100:2"), 6U);
  EXPECT_EQ(gpus_of_gres("craynetwork:4"), 0U);
  EXPECT_EQ(gpus_of_gres("gpu:many"), 0U);
  EXPECT_EQ(gpus_of_gres(""), 0U);
}

}  // namespace
}  // namespace nlaunch::emit
