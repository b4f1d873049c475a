#include <gtest/gtest.h>

#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

TEST(CheckIdentity, PassesWithBusIdAndUuidOfEachRank) {
  const Machine machine(2, 0);
  EXPECT_EQ(lines(run_check("identity", machine.healthy())),
            (Lines{"pass | learner rank 0 (GPU 0) | 00000000:06:00.0 GPU-00000000-0000 |  |  | ",
                   "pass | learner rank 1 (GPU 1) | 00000000:07:00.0 GPU-00000001-0000 |  |  | "}));
}

TEST(CheckIdentity, RefusesTwoRanksThatWereGivenOneGpu) {
  const Machine machine(1, 1);
  auto observations = machine.healthy();
  observations.reports[1].identity = Machine::identity(0, true);
  EXPECT_EQ(
      faults(run_check("identity", observations)),
      (Lines{"fail | engine.0 (GPU 1) | two ranks were given the same GPU: learner rank 0 (GPU 0) (device 0 "
             "of CUDA_VISIBLE_DEVICES=0) and engine.0 (GPU 1) (device 0 of CUDA_VISIBLE_DEVICES=0) both have "
             "00000000:06:00.0 GPU-00000000-0000 | one GPU per rank | give each process its own GPU; check "
             "for CUDA_VISIBLE_DEVICES in an env: block, and for a sitecustomize.py that uses CUDA before "
             "the role selects its device | user"}));
}

TEST(CheckIdentity, TwoMayHaveAGpuOneAfterTheOther) {
  const Machine machine(1, 1);
  auto observations = machine.healthy();
  observations.reports[1].identity = Machine::identity(0, true);
  observations.ranks[1].gpu = 0;
  EXPECT_EQ(faults(run_check("identity", observations)), Lines{});
  observations.reports[1].identity->uuid = "GPU-other";
  EXPECT_EQ(faults(run_check("identity", observations)).size(), 1);
}

TEST(CheckIdentity, TellsOneBusIdWithTwoUuidsApart) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  observations.reports[1].identity->bus_id = observations.reports[0].identity->bus_id;
  EXPECT_EQ(faults(run_check("identity", observations)),
            (Lines{"fail | learner rank 1 (GPU 1) | same bus id but different UUIDs: learner rank 0 (GPU 0) "
                   "and learner rank 1 (GPU 1) both report 00000000:06:00.0, with GPU-00000000-0000 and "
                   "GPU-00000001-0000 | a different bus id for each GPU, with its PCI domain | NCCL before "
                   "2.30 refuses this (\"Duplicate GPU detected\"): for MIG slices give each rank its own "
                   "GPU; otherwise use NCCL 2.30.7 or later, and report the node | admin"}));
}

TEST(CheckIdentity, TellsTwoHostsThatLookLikeOneApart) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  observations.ranks[1].node = 1;
  observations.reports[1].identity->bus_id = observations.reports[0].identity->bus_id;
  EXPECT_EQ(
      faults(run_check("identity", observations)),
      (Lines{"fail | learner rank 1 (GPU 1) | two hosts look like one: learner rank 0 (GPU 0) on node 0 and "
             "learner rank 1 (GPU 1) on node 1 both report host 'vm/boot' (from hostname and boot id) and "
             "bus id 00000000:06:00.0 | a different host identity on each node | give each container its "
             "host's name, or set NCCL_HOSTID to a different value on each node | user"}));
}

TEST(CheckIdentity, OfGroupsThatAreTriedApartTheirMembersAloneAreAwaited) {
  const Machine machine(3, 0);
  auto observations = machine.healthy();
  observations.groups.resize(1);
  observations.groups[0].members = {0, 1};
  observations.reports[2] = {};
  EXPECT_EQ(faults(run_check("identity", observations)).size(), 1);
  observations.apart = true;
  EXPECT_EQ(faults(run_check("identity", observations)), Lines{});
  observations.reports[1].identity.reset();
  const auto rows = run_check("identity", observations);
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[1].value, "learner rank 1 (GPU 1) did not join within 20 s; rank 0 did");
}

TEST(CheckIdentity, AllowsEqualBusIdsOnHostsThatDiffer) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  observations.ranks[1].node = 1;
  observations.reports[1].identity->bus_id = observations.reports[0].identity->bus_id;
  observations.reports[1].identity->host_id = "other/boot";
  EXPECT_TRUE(faults(run_check("identity", observations)).empty());
}

TEST(CheckIdentity, SeesTheWholePciDomain) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  observations.reports[0].identity->bus_id = "00000009:01:00.0";
  observations.reports[1].identity->bus_id = "00000019:01:00.0";
  EXPECT_TRUE(faults(run_check("identity", observations)).empty());
}

TEST(CheckIdentity, ReportsCudaAndNvmlThatDisagree) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  observations.reports[0].identity->nvml_uuid = "GPU-other";
  EXPECT_EQ(faults(run_check("identity", observations)),
            (Lines{"fail | learner rank 0 (GPU 0) | CUDA reports GPU-00000000-0000 at 00000000:06:00.0, NVML "
                   "reports GPU-other | one GPU per bus id | report the node | admin"}));
}

TEST(CheckIdentity, NamesARankThatNeverArrives) {
  const Machine machine(4, 0);
  auto observations = machine.healthy();
  observations.reports[1] = {};
  EXPECT_EQ(faults(run_check("identity", observations)),
            (Lines{"fail | learner rank 1 (GPU 1) | learner rank 1 (GPU 1) did not join within 20 s; ranks "
                   "0, 2, 3 did | all ranks | its GPU or driver does not respond: report the node | admin"}));
}

TEST(CheckIdentity, TellsTheCauseAloneWhenARankBreaks) {
  const Machine machine(3, 0);
  auto observations = machine.healthy();
  observations.reports[1] = {};
  observations.reports[1].errors = {
      {"identity", "", "failed", "CUDA device 1 cannot be used: out of memory"}};
  observations.reports[2] = {};
  EXPECT_EQ(faults(run_check("identity", observations)),
            (Lines{"fail | learner rank 1 (GPU 1) | CUDA device 1 cannot be used: out of memory | a GPU that "
                   "this role can use | check whether another process holds the GPU, and whether "
                   "CUDA_VISIBLE_DEVICES lists it | user"}));
}

TEST(CheckIdentity, IsUnknownWithoutCuda) {
  const Machine machine(1, 1);
  auto observations = machine.healthy();
  observations.reports[0] = {};
  observations.reports[0].errors = {
      {"identity", "", "unavailable", "this nlaunch-probe was built without CUDA"}};
  EXPECT_EQ(faults(run_check("identity", observations)),
            (Lines{"unknown | learner rank 0 (GPU 0) | this nlaunch-probe was built without CUDA |  |  | "}));
}

TEST(CheckIdentity, IsSkippedForCpuSlots) {
  const Machine machine(2, 0, false);
  EXPECT_EQ(lines(run_check("identity", machine.healthy())),
            (Lines{"skip | this machine | the ranks use CPU slots: they have no GPU |  |  | "}));
}

TEST(CheckGpus, PassesEachRankWithItsGpu) {
  const Machine machine(1, 1);
  EXPECT_EQ(lines(run_check("gpus", machine.of_node())),
            (Lines{"pass | learner rank 0 (GPU 0) | NVIDIA H200 00000000:06:00.0 GPU-00000000-0000 |  |  | ",
                   "pass | engine.0 (GPU 1) | NVIDIA H200 00000000:07:00.0 GPU-00000001-0000 |  |  | "}));
}

TEST(CheckGpus, FindsOneGpuGivenTwiceWithoutTouchingIt) {
  Machine machine(1, 1);
  machine.set(1, "CUDA_VISIBLE_DEVICES", "0");
  EXPECT_EQ(
      faults(run_check("gpus", machine.of_node())),
      (Lines{"fail | engine.0 (GPU 1) | learner rank 0 (GPU 0) and engine.0 (GPU 1) were given the same GPU: "
             "'0' of CUDA_VISIBLE_DEVICES (00000000:06:00.0, GPU-00000000-0000) | one GPU per rank | do not "
             "set CUDA_VISIBLE_DEVICES in an env: block; nlaunch assigns each process its GPUs | user"}));
}

TEST(CheckGpus, TwoMayHaveAGpuOneAfterTheOther) {
  Machine machine(1, 1);
  machine.set(1, "CUDA_VISIBLE_DEVICES", "0");
  auto observations = machine.of_node();
  auto ranks = std::vector<Rank>(observations.ranks.begin(), observations.ranks.end());
  ranks[1].gpu = ranks[0].gpu;
  observations.ranks = ranks;
  EXPECT_EQ(faults(run_check("gpus", observations)), Lines{});
}

TEST(CheckGpus, MissesAGpuThatTheSiteHas) {
  Machine machine(2, 0);
  machine.plan.expected.bus_ids = {"0000:06:00.0", "0009:01:00.0"};
  EXPECT_EQ(
      faults(run_check("gpus", machine.of_node())),
      (Lines{
          "fail | bus ids | no GPU at 0009:01:00.0 | 0000:06:00.0, 0009:01:00.0 | report the node: a GPU is "
          "missing | admin"}));
}

TEST(CheckGpus, IsUnknownWithoutNvml) {
  const Machine machine(1, 1);
  auto observations = machine.of_node();
  observations.machine.nvml_error =
      "not found: looked for libnvidia-ml.so.1 in the loader's cache and system directories";
  EXPECT_EQ(lines(run_check("gpus", observations)),
            (Lines{"unknown | NVML | not found: looked for libnvidia-ml.so.1 in the loader's cache and "
                   "system directories |  |  | "}));
}

TEST(CheckGpus, ADriverThatHangsIsNoMachineWithoutGpus) {
  Machine machine(1, 1, false);
  machine.plan.node.cpu_slots = true;
  auto observations = machine.of_node();
  observations.machine.nvml_error = "NVML did not answer within 15 s: the driver hangs";
  EXPECT_EQ(lines(run_check("gpus", observations)),
            (Lines{"unknown | NVML | NVML did not answer within 15 s: the driver hangs |  |  | "}));
  observations.machine.no_driver = true;
  EXPECT_EQ(run_check("gpus", observations)[0].status, Status::skip);
}

TEST(CheckIdentity, NamesTheFirstOwnerOfEither) {
  const Machine machine(3, 0);
  auto observations = machine.healthy();
  observations.reports[2].identity->uuid = observations.reports[2].identity->nvml_uuid = Machine::uuid(1);
  observations.reports[2].identity->bus_id = Machine::bus(0);
  const auto rows = faults(run_check("identity", observations));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_TRUE(rows[0].starts_with(
      "fail | learner rank 2 (GPU 2) | same bus id but different UUIDs: learner rank 0 (GPU 0)"));
  observations.reports[2].identity->bus_id = Machine::bus(2);
  EXPECT_TRUE(faults(run_check("identity", observations))[0].starts_with(
      "fail | learner rank 2 (GPU 2) | two ranks were given the same GPU: learner rank 1 (GPU 1)"));
}

TEST(CheckIdentity, OneValueOfNcclHostidForAllIsTheUsers) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  observations.ranks[1].node = 1;
  observations.hosts = {"a", "b"};
  observations.reports[1].identity->bus_id = observations.reports[0].identity->bus_id;
  for (auto& report : observations.reports) report.identity->host_id_source = "NCCL_HOSTID";
  const auto rows = run_check("identity", observations);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].fix, "do not set NCCL_HOSTID to the same value on all nodes");
  EXPECT_EQ(rows[1].hosts, (Lines{"a", "b"}));
  EXPECT_EQ(rows[0].hosts, Lines{"a"});
}

TEST(CheckIdentity, SlicesHaveAnotherUuidByDesign) {
  const Machine machine(1, 1);
  auto observations = machine.healthy();
  observations.reports[0].identity->uuid = "MIG-1";
  EXPECT_EQ(faults(run_check("identity", observations)).size(), 1U);
  observations.reports[0].identity->visible_devices = "MIG-1";
  EXPECT_EQ(faults(run_check("identity", observations)), Lines{});
  observations.reports[0].identity->visible_devices = "";
  observations.reports[0].identity->nvml_uuid.clear();
  EXPECT_EQ(faults(run_check("identity", observations)), Lines{}) << "NVML could not be asked";
}

TEST(CheckIdentity, SaysThatNoDevicesAreSet) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  observations.reports[1].identity = Machine::identity(0, true);
  observations.reports[1].identity->visible_devices.clear();
  EXPECT_NE(
      faults(run_check("identity", observations))[0].find("(device 0 of CUDA_VISIBLE_DEVICES=(not set))"),
      std::string::npos);
}

TEST(CheckIdentity, TellsHowAProbeEnded) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  observations.reports[1] = {};
  observations.reports[1].end = "was killed by SIGSEGV";
  EXPECT_EQ(
      faults(run_check("identity", observations)),
      (Lines{
          "fail | learner rank 1 (GPU 1) | its probe was killed by SIGSEGV | a probe that can use its GPU | "
          "see its .err file in the preflight directory | user"}));
  // That it ran out of time says nothing of why.
  observations.reports[1].errors = {{"identity", "", "deadline", "not done"}};
  EXPECT_EQ(faults(run_check("identity", observations)).size(), 1U);
  observations.reports[1].errors.push_back({"identity", "", "failed", "no memory"});
  EXPECT_NE(faults(run_check("identity", observations))[0].find("no memory"), std::string::npos);
}

TEST(CheckIdentity, ARankWithoutAProbeIsNotAwaited) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  observations.reports[1] = {};
  observations.ranks[1].no_probe = "its container's";
  EXPECT_EQ(faults(run_check("identity", observations)), Lines{});
  observations.reports.clear();
  EXPECT_TRUE(run_check("identity", observations).empty());
}

TEST(CheckGpus, AProcessWithoutAnEntryForItsGpuIsToldSo) {
  Machine machine(2, 1);
  machine.set(1, "CUDA_VISIBLE_DEVICES", "0");
  machine.set(2, "CUDA_VISIBLE_DEVICES", "");
  EXPECT_EQ(
      faults(run_check("gpus", machine.of_node())),
      (Lines{
          "fail | learner rank 1 (GPU 1) | its CUDA_VISIBLE_DEVICES has no entry 1: '0' | an entry for each "
          "GPU of the process | do not set CUDA_VISIBLE_DEVICES in an env: block; nlaunch assigns each "
          "process its GPUs | user",
          "fail | engine.0 (GPU 2) | its CUDA_VISIBLE_DEVICES has no entry 0: '' | an entry for each GPU of "
          "the process | do not set CUDA_VISIBLE_DEVICES in an env: block; nlaunch assigns each process its "
          "GPUs | user"}));
}

TEST(CheckGpus, KnowsAGpuByItsNumberOrTheBeginningOfItsUuid) {
  Machine machine(1, 1);
  machine.set(0, "CUDA_VISIBLE_DEVICES", " GPU-00000001");
  machine.set(1, "CUDA_VISIBLE_DEVICES", "2");
  EXPECT_EQ(lines(run_check("gpus", machine.of_node())),
            (Lines{"pass | learner rank 0 (GPU 0) | NVIDIA H200 00000000:07:00.0 GPU-00000001-0000 |  |  | ",
                   "unknown | engine.0 (GPU 1) | NVML does not list the GPU that '2' refers to |  |  | "}));
  machine.set(0, "CUDA_VISIBLE_DEVICES", "1x");
  EXPECT_EQ(faults(run_check("gpus", machine.of_node()))[0],
            "unknown | learner rank 0 (GPU 0) | NVML does not list the GPU that '1x' refers to |  |  | ");
  std::erase_if(machine.node.processes[1].env,
                [](const auto& one) { return one.first == "CUDA_VISIBLE_DEVICES"; });
  machine.set(0, "CUDA_VISIBLE_DEVICES", "1");
  EXPECT_EQ(faults(run_check("gpus", machine.of_node())), Lines{})
      << "without the variable its number counts";
}

TEST(CheckGpus, AllBusIdsOfTheSiteAreToldToBeThere) {
  Machine machine(2, 0);
  machine.plan.expected.bus_ids = {"0000:06:00.0", "0000:07:00.0"};
  EXPECT_EQ(line(run_check("gpus", machine.of_node())[0]),
            "pass | bus ids | all bus ids of the site are present: 0000:06:00.0, 0000:07:00.0 |  |  | ");
}

TEST(CheckGpus, OfAMachineWithoutGpusNothingIsWanted) {
  const Machine machine(2, 0, false);
  EXPECT_EQ(lines(run_check("gpus", machine.of_node())),
            (Lines{"skip | this machine | no GPUs: the plan uses CPU slots |  |  | "}));
  auto observations = machine.of_node();
  observations.machine.nvml_error = "no driver";
  EXPECT_EQ(run_check("gpus", observations)[0].status, Status::skip)
      << "the plan did not come to it by the driver";
}

}  // namespace
}  // namespace nlaunch::preflight
