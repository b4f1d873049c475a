#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "preflight/ask/inquiries.h"
#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

/// Two GPUs that NVLink joins.
struct Copies : Machine {
  json said = json::parse(R"({"event":"copies","bytes":268435456,"host_bytes":268435456,
    "gpus":[{"gpu":0,"bus_id":"00000000:06:00.0","name":"NVIDIA H200","host_to_device":55e9,
             "device_to_host":54.5e9,"wrong":0},
            {"gpu":1,"bus_id":"00000000:07:00.0","name":"NVIDIA H200","host_to_device":54e9,
             "device_to_host":54.5e9,"wrong":0}],
    "pairs":[{"from":0,"to":1,"peer":true,"bandwidth":361e9,"wrong":0},
             {"from":1,"to":0,"peer":true,"bandwidth":365e9,"wrong":0}]})");

  Copies() : Machine(1, 1) { plan.expected.intra_node = "P2P"; }

  [[nodiscard]] NodeObservations observations() const {
    auto out = of_node();
    out.answers["copies"] = {said, ""};
    return out;
  }
  [[nodiscard]] Lines rows() const { return lines(run_check("copies", observations())); }
};

TEST(CheckCopies, SaysHowFastTheBytesArriveWhole) {
  EXPECT_EQ(Copies().rows(), (Lines{"pass | GPU to GPU | 2 paths, 2 with peer access: 361.0 GB/s to 365.0 "
                                    "GB/s, all elements correct | P2P |  | ",
                                    "pass | GPU to host | 2 GPUs: host to GPU 54.0 GB/s to 55.0 GB/s, GPU to "
                                    "host 54.5 GB/s, all elements correct |  |  | "}));
}

TEST(CheckCopies, GivesAFigureForEachWay) {
  const auto figures = figures_of("copies", Copies().observations());
  ASSERT_EQ(figures.size(), 6);
  EXPECT_EQ(figures[0].what, "host_to_device");
  EXPECT_EQ(figures[0].from, "GPU 0");
  EXPECT_EQ(figures[5].what, "p2p");
  EXPECT_EQ(figures[5].from, "GPU 1");
  EXPECT_EQ(figures[5].to, "GPU 0");
  EXPECT_EQ(figures[5].value, 365e9);
}

TEST(CheckCopies, FailsOnDamagedData) {
  Copies machine;
  machine.said["pairs"][1]["wrong"] = 3;
  machine.said["gpus"][0]["wrong"] = 1;
  EXPECT_EQ(machine.rows(),
            (Lines{"fail | GPU 1 to GPU 0 | 3 of 67108864 elements arrived corrupted | every byte as sent | "
                   "data is corrupted in transit: do not train on these GPUs; report the node | admin",
                   "fail | GPU 0 to the host and back | 1 of 67108864 elements arrived corrupted | every "
                   "byte as sent | data is corrupted in transit: do not train on these GPUs; report the node "
                   "| admin"}));
}

TEST(CheckCopies, FailsWithoutThePeerAccessThatTheProfileExpects) {
  Copies machine;
  for (auto& pair : machine.said["pairs"]) pair["peer"] = false;
  EXPECT_EQ(machine.rows()[0],
            "fail | GPU to GPU | no peer access: GPU 0 to GPU 1, GPU 1 to GPU 0 | P2P within a node, as set "
            "in the profile | nvidia-smi topo -p2p r shows why: a container without peer access, PCIe ACS or "
            "an IOMMU causes this | admin");
  machine.plan.expected.intra_node.clear();
  EXPECT_EQ(
      machine.rows()[0],
      "pass | GPU to GPU | 2 paths, 0 with peer access: 361.0 GB/s to 365.0 GB/s, all elements correct | "
      " |  | ");
}

TEST(CheckCopies, WhatCouldNotBeMeasuredIsUnknown) {
  Copies machine;
  machine.said["gpus"][1] = {
      {"gpu", 1}, {"bus_id", ""}, {"name", ""}, {"error", "cudaMalloc: out of memory"}};
  machine.said["pairs"] = json::array();
  EXPECT_EQ(machine.rows(),
            (Lines{"unknown | GPU 1 to the host and back | cudaMalloc: out of memory |  |  | "}));
  machine.said = {{"event", "copies"}, {"error", "CUDA has no device here: no driver"}};
  EXPECT_EQ(machine.rows(), (Lines{"unknown | GPUs | CUDA has no device here: no driver |  |  | "}));
  EXPECT_TRUE(figures_of("copies", machine.observations()).empty());
  auto observations = machine.of_node();
  EXPECT_TRUE(run_check("copies", observations).empty());  // not asked for
  observations.answers["copies"] = {nullptr, "nlaunch-probe copies did not answer within 60 s"};
  EXPECT_EQ(lines(run_check("copies", observations)),
            (Lines{"unknown | GPUs | nlaunch-probe copies did not answer within 60 s |  |  | "}));
}

TEST(Inquiries, MeasureTheGpusOfThePlan) {
  const Machine machine(2, 0);
  for (const auto* name : {"copies", "gemm"}) {
    const auto& inquiry = inquiry_of(name);
    EXPECT_EQ(inquiry.arguments(machine.of_node(), nullptr), (Lines{"--devices", "0,1"}));
    EXPECT_TRUE(inquiry.applies(machine.of_node()));
    EXPECT_FALSE(inquiry.applies(Machine(2, 0, false).of_node()));
  }
}

TEST(CheckCopies, OneSpeedIsToldOnceAndNoneAsSuch) {
  Copies machine;
  machine.said["pairs"][1]["bandwidth"] = 361e9;
  machine.said["gpus"][0].erase("host_to_device");
  machine.said["gpus"][1].erase("host_to_device");
  EXPECT_EQ(
      machine.rows(),
      (Lines{"pass | GPU to GPU | 2 paths, 2 with peer access: 361.0 GB/s, all elements correct | P2P |  | ",
             "pass | GPU to host | 2 GPUs: host to GPU nothing measured, GPU to host 54.5 GB/s, all elements "
             "correct |  |  | "}));
  EXPECT_EQ(figures_of("copies", machine.observations()).size(), 4U);
  machine.said["pairs"][0].erase("bandwidth");
  EXPECT_EQ(figures_of("copies", machine.observations()).size(), 3U);
}

TEST(CheckCopies, OfPairsOneMayHavePeerAccess) {
  Copies machine;
  machine.said["pairs"][0]["peer"] = false;
  machine.plan.expected.intra_node = "SHM";
  EXPECT_TRUE(machine.rows()[0].starts_with("pass | GPU to GPU | 2 paths, 1 with peer access"));
  machine.plan.expected.intra_node = "P2P";
  EXPECT_TRUE(machine.rows()[0].starts_with("fail | GPU to GPU | no peer access: GPU 0 to GPU 1 | "));
}

TEST(CheckCopies, APairThatCouldNotBeTriedHasNoPeerAccessToMiss) {
  Copies machine;
  machine.said["pairs"][0] = {{"from", 0}, {"to", 1}, {"error", "no memory"}};
  EXPECT_EQ(machine.rows()[0], "unknown | GPU 0 to GPU 1 | no memory |  |  | ");
  EXPECT_EQ(machine.rows().size(), 2U) << "that of the host alone passes";
  machine.said["pairs"][1]["wrong"] = 1;
  EXPECT_EQ(machine.rows().size(), 3U);
}

TEST(CheckCopies, AllThatAreDamagedAreToldAndNothingPasses) {
  Copies machine;
  machine.said["gpus"][0]["wrong"] = 1;
  machine.said["gpus"][1]["wrong"] = 2;
  const auto rows = machine.rows();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_TRUE(rows[1].starts_with("fail | GPU 0 to the host and back | 1 of 67108864 elements"));
  EXPECT_TRUE(rows[2].starts_with("fail | GPU 1 to the host and back | 2 of 67108864 elements"));
}

}  // namespace
}  // namespace nlaunch::preflight
