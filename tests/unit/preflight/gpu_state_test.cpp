#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "unit/preflight/fixture.h"

/// What is said of GPUs that `nlaunch-probe gpu-health` has described.
namespace nlaunch::preflight {
namespace {

using nlohmann::json;

/// A machine whose GPUs are those of a recorded answer.
struct Recorded {
  explicit Recorded(const std::string& name) : answer(read(name)) {
    machine.node.gpus.clear();
    for (const auto& gpu : answer["gpus"])
      machine.node.gpus.push_back({std::to_string(gpu["index"].get<int>()), gpu["bus_id"], gpu["uuid"]});
  }
  static json read(const std::string& name) {
    return json::parse(
        std::ifstream(NLAUNCH_SOURCE_DIR "/tests/unit/preflight/facts/gpu-health." + name + ".json"));
  }
  json& gpu(std::size_t i) { return answer["gpus"][i]; }
  [[nodiscard]] NodeObservations observations() const {
    NodeObservations out{.plan = machine.plan, .node = machine.node};
    out.answers["gpu-health"] = {answer, ""};
    return out;
  }
  [[nodiscard]] Lines all() const {
    const auto of_machine = observations();
    Lines out;
    for (const auto* check : {"gpu-health", "nvlink", "gpu-mode", "gpu-processes"}) {
      for (const auto& said : lines(run_check(check, of_machine))) out.push_back(said);
    }
    return out;
  }

  Machine machine{1, 1};
  json answer;
};

constexpr auto kReset =
    "reset the GPU while it is idle (nvidia-smi --gpu-reset), or reboot the node; if the fault returns, have "
    "the GPU replaced | admin";

TEST(GpuState, MachinesThatAreWellPass) {
  EXPECT_EQ(Recorded("2xH200").all(),
            (Lines{"pass | 2 GPUs | no uncorrected ECC error, no row to remap, no recovery requested, no "
                   "slowdown |  |  | ",
                   "pass | 2 GPUs | 18 of 18 links up on each, NVSwitch fabric ready |  |  | ",
                   "pass | 2 GPUs | driver 580.159.03, PCIe x16 |  |  | ",
                   "pass | 2 GPUs | not in use | idle GPUs |  | "}));
  EXPECT_EQ(Recorded("4xGH200").all(),
            (Lines{"pass | 4 GPUs | no uncorrected ECC error, no row to remap, no slowdown |  |  | ",
                   "pass | 4 GPUs | 18 of 18 links up on each, 10 links to the CPU up |  |  | ",
                   "warn | driver | 565.57.01 supports CUDA 12.7, and nlaunch-probe was built with CUDA "
                   "13.0: it cannot use the GPUs here | a driver for CUDA 13 | build nlaunch with CUDA 12, "
                   "or install a newer driver | user",
                   "pass | 4 GPUs | not in use | idle GPUs |  | "}));
  EXPECT_EQ(faults(run_check("nvlink", Recorded("8xH100").observations())), Lines{});
}

TEST(GpuState, WhatNvmlDoesNotKnowIsNoFault) {
  Recorded machine("2xH200");
  for (auto& gpu : machine.answer["gpus"])
    gpu = {{"index", gpu["index"]}, {"bus_id", gpu["bus_id"]}, {"uuid", gpu["uuid"]}, {"name", gpu["name"]}};
  EXPECT_EQ(machine.all(),
            (Lines{"pass | 2 GPUs | NVML reports nothing about their health |  |  | ",
                   "skip | 2 GPUs | no NVLink here |  |  | ", "pass | 2 GPUs | driver 580.159.03 |  |  | ",
                   "pass | 2 GPUs | not in use | idle GPUs |  | "}));
}

TEST(GpuState, WithoutAnAnswerOneRowSaysSo) {
  Recorded machine("2xH200");
  auto observations = machine.observations();
  observations.answers["gpu-health"] = {nullptr, "nlaunch-probe gpu-health did not answer within 10 s"};
  EXPECT_EQ(
      lines(run_check("gpu-health", observations)),
      (Lines{
          "unknown | state, links, modes and processes of the GPUs | nlaunch-probe gpu-health did not answer "
          "within 10 s |  |  | "}));
  for (const auto* check : {"nvlink", "gpu-mode", "gpu-processes"})
    EXPECT_TRUE(run_check(check, observations).empty()) << check;
  observations.answers["gpu-health"] = {{{"error", "nvmlInit_v2 failed: Driver/library version mismatch"}},
                                        ""};
  EXPECT_EQ(run_check("gpu-health", observations)[0].value,
            "nvmlInit_v2 failed: Driver/library version mismatch");
}

TEST(GpuState, OnlyThePlansGpusAreJudged) {
  Recorded machine("8xH100");
  machine.machine.node.gpus.resize(2);
  machine.gpu(5)["remap"]["failed"] = true;
  EXPECT_EQ(faults(run_check("gpu-health", machine.observations())), Lines{});
  std::swap(machine.machine.node.gpus[0], machine.machine.node.gpus[1]);
  machine.gpu(0)["remap"]["failed"] = true;
  EXPECT_EQ(faults(run_check("gpu-health", machine.observations())),
            (Lines{"fail | GPU 1 (00000000:1B:00.0) | a faulty memory row could not be remapped | rows "
                   "remapped | take the node out of service and have the GPU replaced | admin"}));
}

TEST(GpuHealth, AnUncorrectedErrorFailsUnlessTheDriverAsksForNothing) {
  Recorded machine("4xGH200");
  machine.gpu(3)["uncorrected_ecc"] = 1;
  EXPECT_EQ(
      faults(run_check("gpu-health", machine.observations())),
      (Lines{std::string(
                 "fail | GPU 3 (00000039:01:00.0) | 1 uncorrected ECC error since the driver was loaded | "
                 "none | ") +
             kReset}));
  machine.gpu(3)["recovery_action"] = 0;
  EXPECT_EQ(faults(run_check("gpu-health", machine.observations())),
            (Lines{std::string("warn | GPU 3 (00000039:01:00.0) | 1 uncorrected ECC error since the driver "
                               "was loaded; the driver requests no recovery | none | ") +
                   kReset}));
}

TEST(GpuHealth, WhatTheDriverAsksForIsToldOnceForAGpu) {
  Recorded machine("2xH200");
  machine.gpu(0)["recovery_action"] = 4;
  machine.gpu(1)["recovery_action"] = 4;
  machine.gpu(1)["remap"]["pending"] = true;
  EXPECT_EQ(
      faults(run_check("gpu-health", machine.observations())),
      (Lines{
          "fail | GPU 0 (00000000:2A:00.0) | its driver requests draining its workload, and then a GPU reset "
          "| a GPU that needs no recovery | do what the driver requests | admin",
          std::string("fail | GPU 1 (00000000:3C:00.0) | faulty memory rows are waiting to be remapped "
                      "| none pending | ") +
              kReset}));
}

TEST(GpuHealth, OnlyTheHardwaresSlowdownsCount) {
  Recorded machine("2xH200");
  machine.gpu(0)["clocks_event_reasons"] = 0x4 | 0x20 | 0x100;
  EXPECT_EQ(faults(run_check("gpu-health", machine.observations())), Lines{});
  machine.gpu(0)["clocks_event_reasons"] = 0x48;
  machine.gpu(1)["clocks_event_reasons"] = 0x88;
  EXPECT_EQ(
      faults(run_check("gpu-health", machine.observations())),
      (Lines{"warn | GPU 0 (00000000:2A:00.0) | slowed down by its hardware: it is too hot | full "
             "clocks | report the node: check its cooling and power supply | admin",
             "warn | GPU 1 (00000000:3C:00.0) | slowed down by its hardware: the node's power supply "
             "requests it | full clocks | report the node: check its cooling and power supply | admin"}));
}

TEST(GpuHealth, AGpuThatIsCountedAndNotHandedOut) {
  Recorded machine("2xH200");
  machine.answer["refused"] = {{{"index", 2}, {"code", 15}, {"error", "GPU is lost"}},
                               {{"index", 3}, {"code", 4}, {"error", "Insufficient Permissions"}},
                               {{"index", 4}, {"code", 999}, {"error", "Unknown Error"}}};
  EXPECT_EQ(faults(run_check("gpu-health", machine.observations())),
            (Lines{std::string("fail | NVML GPU 2 | GPU is lost | a GPU that responds | ") + kReset,
                   "unknown | NVML GPU 4 | Unknown Error |  |  | "}));
}

TEST(Nvlink, ALinkThatIsDownFailsWhereTheBoardUsesAll) {
  constexpr auto kFix =
      "reset the GPUs (nvidia-smi --gpu-reset) or reboot the node; if a link stays down, report it | admin";
  Recorded machine("4xGH200");
  machine.gpu(2)["links"][5]["active"] = false;
  EXPECT_EQ(faults(run_check("nvlink", machine.observations())),
            (Lines{std::string(
                       "fail | GPU 2 (00000029:01:00.0) | 17 of 18 links up: link 5 down | 18 links up | ") +
                   kFix}));
  for (auto& link : machine.gpu(2)["links"]) link["active"] = false;
  EXPECT_EQ(run_check("nvlink", machine.observations())[0].status, Status::warn) << "a bridge may be missing";
  // Where all go to NVSwitches, GPUs that all miss the same links miss a switch.
  Recorded switched("8xH100");
  for (auto& gpu : switched.answer["gpus"]) gpu["links"][3]["active"] = gpu["links"][4]["active"] = false;
  const auto rows = faults(run_check("nvlink", switched.observations()));
  ASSERT_EQ(rows.size(), 8);
  EXPECT_EQ(
      rows[0],
      std::string("fail | GPU 0 (00000000:1B:00.0) | 16 of 18 links up: links 3, 4 down | 18 links up | ") +
          kFix);
}

TEST(Nvlink, BridgesUseSomeLinksOnly) {
  Recorded machine("4xGH200");
  for (auto& gpu : machine.answer["gpus"]) {
    for (std::size_t link = 12; link < 18; ++link) gpu["links"][link]["active"] = false;
  }
  EXPECT_EQ(run_check("nvlink", machine.observations())[0].value,
            "12 of 18 links up on each, 10 links to the CPU up");
  machine.gpu(0)["links"][0]["active"] = false;
  EXPECT_EQ(run_check("nvlink", machine.observations())[0].status, Status::warn);
}

TEST(Nvlink, CorrectedErrorsAreToldAndRecoveriesWarn) {
  Recorded machine("2xH200");
  machine.gpu(1)["links"][0]["crc"] = 2;
  machine.gpu(1)["links"][7]["replay"] = 1;
  EXPECT_EQ(
      run_check("nvlink", machine.observations())[0].value,
      "18 of 18 links up on each, 3 corrected errors since the driver was loaded, NVSwitch fabric ready");
  machine.gpu(1)["links"][7]["recovery"] = 1;
  EXPECT_EQ(faults(run_check("nvlink", machine.observations())),
            (Lines{"warn | GPU 1 (00000000:3C:00.0) | its links had to be brought up again 1 time since the "
                   "driver was loaded | links that stay up | watch whether the number grows; if so, report "
                   "the node | admin"}));
}

TEST(Nvlink, TheFabricHasToBeReadyAndHealthy) {
  constexpr auto kRest =
      " | registered with the NVSwitch fabric, and healthy | check systemctl status nvidia-fabricmanager (on "
      "NVL72 machines also nvidia-imex) | admin";
  const auto said = [&](const json& fabric) {
    Recorded machine("2xH200");
    machine.gpu(0)["fabric"] = fabric;
    const auto rows = faults(run_check("nvlink", machine.observations()));
    return rows.size() == 1 ? rows[0] : "";
  };
  const std::string gpu = "GPU 0 (00000000:2A:00.0)";
  EXPECT_EQ(said({{"state", 1}, {"status", 0}, {"health_mask", 0}}),
            "fail | " + gpu + " | its registration has not started: CUDA cannot be used (error 802)" + kRest);
  EXPECT_EQ(said({{"state", 3}, {"status", 999}, {"status_text", "Unknown Error"}, {"health_mask", 0}}),
            "fail | " + gpu + " | its registration failed: Unknown Error" + kRest);
  EXPECT_EQ(said({{"state", 3}, {"status", 0}, {"health_mask", 0x2 | 0x10}}),
            "fail | " + gpu + " | NVSwitch fabric: its routes through the NVSwitches are unhealthy" + kRest);
  EXPECT_EQ(said({{"state", 3}, {"status", 0}, {"health_mask", 0x1}}),
            "warn | " + gpu + " | NVSwitch fabric: its bandwidth is degraded" + kRest);
  EXPECT_EQ(said({{"state", 3}, {"status", 0}, {"health_mask", 0}, {"summary", 2}}),
            "fail | " + gpu + " | NVSwitch fabric: it is unhealthy" + kRest);
}

TEST(Nvlink, ALinkToTheCpuThatIsDownFails) {
  Recorded machine("4xGH200");
  machine.gpu(1)["c2c"][4]["active"] = false;
  EXPECT_EQ(faults(run_check("nvlink", machine.observations())),
            (Lines{"fail | GPU 1 (00000019:01:00.0) | 1 of 10 links to its CPU down | all up | reboot the "
                   "node; if a link stays down, report it | admin"}));
}

TEST(GpuMode, WhatIsNotFitForTheRun) {
  Recorded machine("2xH200");
  machine.gpu(0)["compute_mode"] = 2;
  machine.gpu(0)["pcie"]["width"] = 8;
  machine.gpu(1)["mig"]["current"] = machine.gpu(1)["mig"]["pending"] = true;
  EXPECT_EQ(
      faults(run_check("gpu-mode", machine.observations())),
      (Lines{"fail | GPU 0 (00000000:2A:00.0) | its compute mode allows no program to use it (prohibited) | "
             "default | set it back: nvidia-smi --compute-mode=DEFAULT | admin",
             "warn | GPU 0 (00000000:2A:00.0) | PCIe x8 | x16 | report the node: its slot or riser card "
             "gives the GPU only some of its lanes | admin",
             "fail | GPU 1 (00000000:3C:00.0) | MIG mode is on: programs see slices of it, which NCCL cannot "
             "use together | MIG mode off, or MIG devices in CUDA_VISIBLE_DEVICES | turn it off while the "
             "GPU is idle (nvidia-smi -mig 0), or give nlaunch the slices by UUID | admin"}));
}

TEST(GpuMode, SlicesAreForWhoWasGivenSlices) {
  Recorded machine("2xH200");
  machine.gpu(1)["mig"]["current"] = machine.gpu(1)["mig"]["pending"] = true;
  machine.machine.node.gpus = {{"MIG-1", "", "MIG-1"}};
  EXPECT_EQ(lines(run_check("gpu-mode", machine.observations())),
            (Lines{"pass | 1 GPU | driver 580.159.03, PCIe x16 |  |  | "}));
}

TEST(GpuMode, AnIdleLinkAndASleepingGpuAreNoFaults) {
  Recorded machine("2xH200");
  machine.gpu(0)["pcie"]["generation"] = 1;
  machine.gpu(0)["persistence"] = false;
  EXPECT_EQ(lines(run_check("gpu-mode", machine.observations())),
            (Lines{"pass | 2 GPUs | driver 580.159.03, PCIe x16; persistence mode is off: the first program "
                   "on an idle GPU waits for it to initialize |  |  | "}));
}

TEST(GpuProcesses, WhoHoldsAGpuIsNamed) {
  Recorded machine("2xH200");
  constexpr auto kGiB = std::uint64_t{1} << 30U;
  machine.gpu(0)["processes"] = {{{"pid", 4711},
                                  {"kind", "compute"},
                                  {"memory", 38 * kGiB},
                                  {"command", "python train.py"},
                                  {"user", "bob"},
                                  {"mine", false}},
                                 {{"pid", 99},
                                  {"kind", "graphics"},
                                  {"memory", 4U << 20U},
                                  {"command", "Xorg"},
                                  {"user", "root"},
                                  {"mine", false}}};
  machine.gpu(1)["processes"] = {
      {{"pid", 12}, {"kind", "compute"}, {"memory", kGiB}},
      {{"pid", 13}, {"kind", "mps"}, {"command", "vllm"}, {"user", "me"}, {"mine", true}}};
  EXPECT_EQ(faults(run_check("gpu-processes", machine.observations())),
            (Lines{"warn | GPU 0 (00000000:2A:00.0) | held by pid 4711 (python train.py, bob, 38.0 GiB) | an "
                   "idle GPU | ask bob, or use another node | admin",
                   "warn | GPU 1 (00000000:3C:00.0) | held by pid 12 (not visible here, 1.0 GiB), pid 13 "
                   "(vllm, me) | an idle GPU | stop your own processes: kill 13 | user"}));
}

TEST(GpuProcesses, AFullGpuFails) {
  Recorded machine("2xH200");
  auto& gpu = machine.gpu(0);
  gpu["processes"] = {{{"pid", 12}, {"kind", "compute"}, {"memory", std::uint64_t{139} << 30U}}};
  gpu["memory"]["used"] = std::uint64_t{139} << 30U;
  EXPECT_EQ(faults(run_check("gpu-processes", machine.observations())),
            (Lines{"fail | GPU 0 (00000000:2A:00.0) | held by pid 12 (not visible here, 139.0 GiB) | an idle "
                   "GPU | check on the host itself: the process is outside this container, or hidden from "
                   "you | admin"}));
}

TEST(GpuProcesses, MemoryThatNobodyHoldsIsTold) {
  Recorded machine("2xH200");
  machine.gpu(0)["memory"]["used"] = std::uint64_t{2} << 30U;  // 2 % of its 140 GiB are more
  machine.gpu(1)["memory"]["used"] = std::uint64_t{70} << 30U;
  EXPECT_EQ(faults(run_check("gpu-processes", machine.observations())),
            (Lines{"warn | GPU 1 (00000000:3C:00.0) | 70.0 GiB of 140.4 GiB are in use, but NVML lists no "
                   "process | an idle GPU | it may be a process of another container, or one that cannot "
                   "exit (state D in ps): check on the host; if there is none, reset the GPU | admin"}));
}

/// What a check says where the first GPU's description has this member.
Lines with(std::string_view check, const std::string& member, const json& value) {
  Recorded machine("2xH200");
  machine.gpu(0)[member] = value;
  return faults(run_check(check, machine.observations()));
}

/// The third part of each row.
Lines values(const Lines& rows) {
  Lines out;
  for (const auto& row : rows) {
    const auto from = row.find(" | ", row.find(" | ") + 1) + 3;
    out.push_back(row.substr(from, row.find(" | ", from) - from));
  }
  return out;
}

TEST(GpuHealth, MemoryThatIsWornIsTold) {
  EXPECT_EQ(values(with("gpu-health", "sram_threshold", true)),
            Lines{"more uncorrected SRAM errors than NVIDIA accepts"});
  EXPECT_EQ(with("gpu-health", "sram_threshold", false), Lines{});
  EXPECT_EQ(values(with("gpu-health", "retired_pages_pending", true)),
            Lines{"faulty memory pages are waiting to be retired"});
  EXPECT_EQ(values(with("gpu-health", "uncorrected_ecc", 2)),
            Lines{"2 uncorrected ECC errors since the driver was loaded; the driver requests no recovery"});
  EXPECT_EQ(with("gpu-health", "uncorrected_ecc", 0), Lines{});
}

TEST(GpuHealth, WhatTheDriverAsksForIsSaidInWords) {
  const auto asked = [](int action) { return values(with("gpu-health", "recovery_action", action)); };
  EXPECT_EQ(asked(0), Lines{});
  EXPECT_EQ(asked(1), Lines{"its driver requests a GPU reset"});
  EXPECT_EQ(asked(2), Lines{"its driver requests a node reboot"});
  EXPECT_EQ(asked(3), Lines{"its driver requests draining all traffic between GPUs"});
  EXPECT_EQ(asked(7), Lines{"its driver requests a system reboot"});
  EXPECT_EQ(asked(8), Lines{"its driver requests recovery action 8"});
}

TEST(GpuHealth, WhatTheDriverAsksForIsToldBesideAWarning) {
  Recorded machine("2xH200");
  machine.gpu(0)["recovery_action"] = 1;
  machine.gpu(0)["clocks_event_reasons"] = 0x8;
  machine.gpu(1)["remap"]["failed"] = true;
  EXPECT_EQ(values(faults(run_check("gpu-health", machine.observations()))),
            (Lines{"its driver requests a GPU reset",
                   "slowed down by its hardware: it is too hot or draws too much power",
                   "a faulty memory row could not be remapped"}));
}

TEST(GpuHealth, EachReasonOfASlowdownIsSaid) {
  const auto why = [](int reasons) { return values(with("gpu-health", "clocks_event_reasons", reasons)); };
  EXPECT_EQ(why(0x8), Lines{"slowed down by its hardware: it is too hot or draws too much power"});
  EXPECT_EQ(why(0x40), Lines{"slowed down by its hardware: it is too hot"});
  EXPECT_EQ(why(0x80), Lines{"slowed down by its hardware: the node's power supply requests it"});
  EXPECT_EQ(why(0xc0),
            Lines{"slowed down by its hardware: it is too hot, and the node's power supply requests it"});
  EXPECT_EQ(why(0), Lines{});
}

TEST(GpuHealth, OnlyWhatAllGpusTellIsSaidToBeWell) {
  Recorded machine("2xH200");
  machine.gpu(1).erase("recovery_action");
  EXPECT_EQ(run_check("gpu-health", machine.observations())[0].value,
            "no uncorrected ECC error, no row to remap, no slowdown");
}

TEST(GpuHealth, WhatNvmlRefusesIsAFaultByItsCode) {
  const auto refused = [](int code) {
    Recorded machine("2xH200");
    machine.answer["refused"] = json::array({{{"index", 2}, {"code", code}, {"error", "why"}}});
    const auto rows = faults(run_check("gpu-health", machine.observations()));
    return rows.empty() ? "" : rows[0].substr(0, rows[0].find(' '));
  };
  for (const int code : {8, 11, 15, 16}) EXPECT_EQ(refused(code), "fail") << code;
  for (const int code : {4, 17}) EXPECT_EQ(refused(code), "") << code;
  for (const int code : {0, 3, 5, 7, 9, 10, 12, 14, 18}) EXPECT_EQ(refused(code), "unknown") << code;
}

TEST(GpuHealth, AnAnswerWithoutGpusIsUnknown) {
  Recorded machine("2xH200");
  auto observations = machine.observations();
  observations.answers["gpu-health"] = {json::object(), ""};
  EXPECT_EQ(lines(run_check("gpu-health", observations)),
            (Lines{"unknown | state, links, modes and processes of the GPUs |  |  |  | "}));
  observations.answers.clear();
  EXPECT_TRUE(run_check("gpu-health", observations).empty());
}

TEST(GpuState, IsFoundByItsUuidOrItsBusId) {
  Recorded machine("8xH100");
  machine.machine.node.gpus = {{"5", "", machine.gpu(5)["uuid"]},
                               {"2", "0000:52:00.0", ""},
                               {"7", "", ""},
                               {"6", "0000:d1:00.0", "GPU-of-another"}};
  for (auto& gpu : machine.answer["gpus"]) gpu["sram_threshold"] = true;
  Lines names;
  for (const auto& row : run_check("gpu-health", machine.observations())) names.push_back(row.subject);
  EXPECT_EQ(names,
            (Lines{"GPU 0 (00000000:C3:00.0)", "GPU 1 (00000000:52:00.0)", "GPU 3 (00000000:D1:00.0)"}));
}

TEST(Nvlink, AloneAGpuNeedsNoLinks) {
  Recorded machine("4xGH200");
  machine.machine.node.gpus.resize(1);
  for (auto& link : machine.gpu(0)["links"]) link["active"] = false;
  EXPECT_EQ(lines(run_check("nvlink", machine.observations())),
            (Lines{"pass | 1 GPU | 0 of 18 links up on each, 10 links to the CPU up |  |  | "}));
}

TEST(Nvlink, WithoutLinksThereIsNothingToSay) {
  Recorded machine("2xH200");
  for (auto& gpu : machine.answer["gpus"]) {
    gpu["links"] = json::array();
    gpu.erase("fabric");
  }
  EXPECT_EQ(lines(run_check("nvlink", machine.observations())),
            (Lines{"skip | 2 GPUs | no NVLink here |  |  | "}));
}

TEST(Nvlink, SeveralRecoveriesAreCounted) {
  Recorded machine("2xH200");
  machine.gpu(0)["links"][0]["recovery"] = 2;
  machine.gpu(0)["links"][1]["recovery"] = 1;
  EXPECT_EQ(values(faults(run_check("nvlink", machine.observations()))),
            Lines{"its links had to be brought up again 3 times since the driver was loaded"});
}

TEST(Nvlink, EachFieldOfTheHealthOfTheFabricIsRead) {
  const auto said = [](unsigned mask, int summary = 0) {
    const auto rows =
        with("nvlink", "fabric", {{"state", 3}, {"status", 0}, {"health_mask", mask}, {"summary", summary}});
    return rows.empty() ? "" : rows[0].substr(0, 4) + " " + values(rows)[0];
  };
  const std::string fabric = " NVSwitch fabric: ";
  EXPECT_EQ(said(0), "");
  // Each field has two bits, of which 1 says that it is so and 2 that it is not; that of the configuration
  // four.
  EXPECT_EQ(said(0x1), "warn" + fabric + "its bandwidth is degraded");
  EXPECT_EQ(said(0x4), "warn" + fabric + "its routes are being recovered");
  EXPECT_EQ(said(0x10), "fail" + fabric + "its routes through the NVSwitches are unhealthy");
  EXPECT_EQ(said(0x40), "warn" + fabric + "it is recovering from an access that timed out");
  EXPECT_EQ(said(0x200), "fail" + fabric + "the fabric is misconfigured for it");
  EXPECT_EQ(said(0x2 | 0x8 | 0x20 | 0x80 | 0x100), "");
  EXPECT_EQ(said(0x3 | 0xc | 0x30 | 0xc0), "");
  EXPECT_EQ(said(0x800), "fail" + fabric + "the fabric is misconfigured for it");
  EXPECT_EQ(said(0, 1), "");
  EXPECT_EQ(said(0, 2), "fail" + fabric + "it is unhealthy");
  EXPECT_EQ(said(0, 3), "warn" + fabric + "its capacity is limited");
  EXPECT_EQ(said(0x1, 3), "warn" + fabric + "its bandwidth is degraded");
  EXPECT_EQ(said(0x1, 2), "fail" + fabric + "it is unhealthy");
}

TEST(Nvlink, AFabricThatIsNotReadyIsToldByItsState) {
  const auto said = [](int state) { return values(with("nvlink", "fabric", {{"state", state}})); };
  EXPECT_EQ(said(0), Lines{});
  EXPECT_EQ(said(1), Lines{"its registration has not started: CUDA cannot be used (error 802)"});
  EXPECT_EQ(said(2), Lines{"its registration is in progress: CUDA cannot be used yet (error 802)"});
  EXPECT_EQ(said(3), Lines{});
}

TEST(GpuMode, EachComputeModeIsJudged) {
  const auto rows = [](int mode) { return values(with("gpu-mode", "compute_mode", mode)); };
  EXPECT_EQ(rows(0), Lines{});
  EXPECT_EQ(rows(1), Lines{});
  EXPECT_EQ(rows(2), Lines{"its compute mode allows no program to use it (prohibited)"});
  EXPECT_EQ(with("gpu-mode", "compute_mode", 3)[0].substr(0, 4), "warn");
  EXPECT_EQ(rows(3), Lines{"its compute mode allows one process at a time (exclusive): a second one, such as "
                           "a helper of a server, fails"});
}

TEST(GpuMode, AnExclusiveGpuIsNotForTwoProcesses) {
  Recorded machine("2xH200");
  machine.gpu(0)["compute_mode"] = machine.gpu(1)["compute_mode"] = 3;
  auto& plan = machine.machine.plan;
  plan.roles = {plan::Role{}, plan::Role{}};
  plan.roles[0].name = "learner";
  plan.roles[1].name = "engine";
  plan.processes.assign(3, {});
  plan.processes[0].gpus = {0};
  plan.processes[1].gpus = {1};
  plan.processes[1].index = 1;
  plan.processes[2].role = 1;
  plan.processes[2].gpus = {1};
  machine.machine.node.processes.assign(3, {});
  for (std::uint32_t i = 0; i < 3; ++i) machine.machine.node.processes[i].process = i;
  const auto said = [&] {
    Lines out;
    for (const auto& row : run_check("gpu-mode", machine.observations()))
      out.push_back(std::string(name_of(row.status)) + " | " + row.value);
    return out;
  };
  const std::string alone =
      "warn | its compute mode allows one process at a time (exclusive): a second one, such as a helper of a "
      "server, fails";
  EXPECT_EQ(said(), (Lines{alone, alone})) << "one after the other";
  plan.roles[1].share_gpus_with = {"learner"};
  EXPECT_EQ(said(), (Lines{alone,
                           "fail | its compute mode allows one process at a time (exclusive), and learner.1 "
                           "and engine.0 share it"}));
}

TEST(GpuMode, AModeThatIsAboutToChangeIsAWarning) {
  EXPECT_EQ(with("gpu-mode", "mig", {{"current", false}, {"pending", true}}),
            Lines{"warn | GPU 0 (00000000:2A:00.0) | MIG mode turns on at its next reset | no pending change "
                  "| ask who changed it | admin"});
  EXPECT_EQ(with("gpu-mode", "mig", {{"current", false}, {"pending", false}}), Lines{});
  EXPECT_EQ(with("gpu-mode", "mig", {{"current", false}}), Lines{});
  Recorded machine("2xH200");
  machine.gpu(0)["mig"] = {{"current", true}, {"pending", false}};
  machine.machine.node.gpus = {{"MIG-1", "", "MIG-1"}};
  EXPECT_EQ(values(faults(run_check("gpu-mode", machine.observations()))),
            Lines{"MIG mode turns off at its next reset"});
}

TEST(GpuMode, APartOfTheLanesIsAWarningWhereThereAreLanes) {
  EXPECT_EQ(values(with("gpu-mode", "pcie", {{"width", 15}, {"max_width", 16}})), Lines{"PCIe x15"});
  EXPECT_EQ(with("gpu-mode", "pcie", {{"width", 16}, {"max_width", 16}}), Lines{});
  EXPECT_EQ(with("gpu-mode", "pcie", {{"width", 0}, {"max_width", 16}}), Lines{});
  EXPECT_EQ(with("gpu-mode", "pcie", json::object()), Lines{});
  Recorded machine("4xGH200");
  machine.gpu(0)["pcie"] = {{"width", 1}, {"max_width", 16}};
  EXPECT_EQ(faults(run_check("gpu-mode", machine.observations())).size(), 1U) << "the driver alone";
}

TEST(GpuMode, OfAGpuOnAnotherLinkToItsCpuTheLanesAreNotTold) {
  Recorded machine("4xGH200");
  machine.answer["cuda_driver"] = "13.0";
  const auto rows = run_check("gpu-mode", machine.observations());
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].status, Status::pass);
  EXPECT_EQ(rows[0].value.find("PCIe"), std::string::npos) << rows[0].value;
}

TEST(GpuMode, ADriverOfTheSameMajorReleaseWillDo) {
  const auto said = [](const std::string& driver, const std::string& runtime) {
    Recorded machine("2xH200");
    machine.answer["cuda_driver"] = driver;
    machine.answer["cuda_runtime"] = runtime;
    return faults(run_check("gpu-mode", machine.observations())).size();
  };
  EXPECT_EQ(said("12.9", "13.0"), 1U);
  EXPECT_EQ(said("13.0", "13.1"), 0U);
  EXPECT_EQ(said("13.0", "12.8"), 0U);
  EXPECT_EQ(said("", "13.0"), 0U);
  EXPECT_EQ(said("12.9", ""), 0U);
}

constexpr auto kGib = std::uint64_t{1} << 30U;

/// What is said of processes that hold the first GPU, of 100 GiB.
Lines held(const json& processes, std::uint64_t used = 0) {
  Recorded machine("2xH200");
  machine.gpu(0)["processes"] = processes;
  machine.gpu(0)["memory"] = {{"total", 100 * kGib}, {"used", used}};
  return faults(run_check("gpu-processes", machine.observations()));
}

json holder(int pid, std::uint64_t memory, const std::string& kind = "compute") {
  return {{"pid", pid}, {"kind", kind}, {"memory", memory}, {"command", "x"}, {"user", "bob"}};
}

TEST(GpuProcesses, ADisplayIsOneOnlyWithMuchMemory) {
  EXPECT_EQ(held(json::array({holder(1, 2 * kGib, "graphics")})), Lines{});
  EXPECT_EQ(values(held(json::array({holder(1, 2 * kGib + 1, "graphics")}))),
            Lines{"held by pid 1 (x, bob, 2.0 GiB)"});
  EXPECT_EQ(values(held(json::array({{{"pid", 1}, {"kind", "graphics"}}}))), Lines{});
}

TEST(GpuProcesses, OfASmallGpuAGibibyteIsNothing) {
  Recorded machine("2xH200");
  machine.gpu(0)["memory"] = {{"total", 10 * kGib}, {"used", kGib}};
  EXPECT_EQ(faults(run_check("gpu-processes", machine.observations())), Lines{});
  machine.gpu(0)["memory"]["used"] = kGib + 1;
  EXPECT_EQ(faults(run_check("gpu-processes", machine.observations())).size(), 1U);
}

TEST(GpuProcesses, FourAreNamedAndTheOthersCounted) {
  auto four = json::array();
  for (int pid = 1; pid <= 4; ++pid) four.push_back(holder(pid, 0));
  EXPECT_EQ(values(held(four)),
            Lines{"held by pid 1 (x, bob, 0 kiB), pid 2 (x, bob, 0 kiB), pid 3 (x, bob, 0 kiB), pid 4 "
                  "(x, bob, 0 kiB)"});
  four.push_back(holder(5, 0));
  four.push_back(holder(6, 0));
  EXPECT_TRUE(values(held(four))[0].ends_with("pid 4 (x, bob, 0 kiB) and 2 more"));
}

TEST(GpuProcesses, ALongCommandIsCut) {
  auto one = holder(1, 0);
  one["command"] = std::string(60, 'c');
  EXPECT_EQ(values(held(json::array({one}))),
            Lines{"held by pid 1 (" + std::string(60, 'c') + ", bob, 0 kiB)"});
  one["command"] = std::string(61, 'c');
  EXPECT_EQ(values(held(json::array({one}))),
            Lines{"held by pid 1 (" + std::string(60, 'c') + "..., bob, 0 kiB)"});
}

TEST(GpuProcesses, OthersAreNamedEachOnce) {
  auto other = holder(2, 0);
  other["user"] = "alice";
  const auto rows = held(json::array({holder(1, 0), other, holder(3, 0)}));
  EXPECT_TRUE(rows.at(0).ends_with(" | ask alice, bob, or use another node | admin")) << rows[0];
}

TEST(GpuProcesses, AGpuIsFullWhenATenthOfItIsLeft) {
  EXPECT_TRUE(held(json::array({holder(1, 90 * kGib)}), 90 * kGib).at(0).starts_with("warn"));
  EXPECT_TRUE(held(json::array({holder(1, 90 * kGib)}), 90 * kGib + 1).at(0).starts_with("fail"));
  Recorded machine("2xH200");
  machine.gpu(0)["memory"] = json::object();
  machine.gpu(0)["processes"] = json::array({holder(1, 0)});
  EXPECT_TRUE(faults(run_check("gpu-processes", machine.observations())).at(0).starts_with("warn"));
}

TEST(GpuProcesses, MemoryIsNobodysOnlyWhereAllThatIsHeldIsKnown) {
  EXPECT_EQ(held(json::array({holder(1, 10 * kGib)}), 12 * kGib).size(), 1U) << "2 % are the driver's";
  EXPECT_EQ(values(held(json::array({holder(1, 10 * kGib), holder(2, kGib)}), 13 * kGib + 1)).at(1),
            "2.0 GiB of 100.0 GiB are in use, but NVML lists no process");
  auto hidden = holder(2, 0);
  hidden.erase("memory");
  EXPECT_EQ(held(json::array({holder(1, 10 * kGib), hidden}), 50 * kGib).size(), 1U);
  EXPECT_EQ(held(json::array({holder(1, 10 * kGib)}), 5 * kGib).size(), 1U);
  EXPECT_TRUE(held(json::array(), 95 * kGib).at(0).starts_with("fail"));
}

}  // namespace
}  // namespace nlaunch::preflight
