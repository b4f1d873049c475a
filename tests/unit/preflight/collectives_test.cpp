#include <gtest/gtest.h>

#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

TEST(CheckCollectives, PassesWithTimesAndBandwidths) {
  const Machine machine(2, 0);
  const auto rows = check_collectives(machine.healthy());
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(
      line(rows[0]),
      "pass | node 0 | 2 ranks over nccl, every element right: 8 B 20.0 µs 0.0 GB/s, 1MiB 25.2 µs 41.5 GB/s, "
      "22118400 B 130.6 µs 169.4 GB/s, 128MiB 691.1 µs 194.2 GB/s |  |  | ");
}

TEST(CheckCollectives, NamesTheRankThatDidNotJoin) {
  const Machine machine(4, 0);
  auto evidence = machine.healthy();
  for (auto& report : evidence.reports) {
    report.done = false;
    report.groups.clear();
    report.groups["node 0"].joining = true;
    report.errors = {{"join", "node 0", "deadline", "not done within 20s"}};
  }
  evidence.reports[1].groups.clear();
  evidence.reports[1].errors.clear();
  EXPECT_EQ(
      lines(check_collectives(evidence)),
      (Lines{
          "fail | node 0 | learner rank 1 (GPU 1) did not join within 20 s; ranks 0, 2, 3 did | all ranks | "
          "look "
          "at what holds this GPU or process: nvidia-smi, and its .err file in the preflight folder | user",
          "skip | learner world | not run: the same ranks as 'node 0' |  |  | "}));
}

TEST(CheckCollectives, TellsNcclsOwnWordsWhenAllArrived) {
  const Machine machine(1, 1);
  auto evidence = machine.healthy();
  for (auto& report : evidence.reports) {
    report.groups["node 0"].results.clear();
    report.groups.erase("weight sync");
  }
  evidence.reports[1].errors = {
      {"join", "node 0", "failed", "ncclCommInitRank: unhandled system error: no route"}};
  EXPECT_EQ(lines(check_collectives(evidence)),
            (Lines{"fail | node 0 | learner rank 0 (GPU 0), engine.0 (GPU 1) arrived, but the communicator "
                   "was not made: "
                   "engine.0 (GPU 1): ncclCommInitRank: unhandled system error: no route | every group of "
                   "the plan works "
                   "| NCCL's own log says more: --with nccl-debug writes it to the folder nccl beside "
                   "preflight.json | user",
                   "skip | weight sync | not done: an earlier group failed |  |  | "}));
}

TEST(CheckCollectives, NamesWhoseTermIsMissing) {
  const Machine machine(2, 0);
  auto evidence = machine.healthy();
  auto& result = evidence.reports[0].groups["node 0"].results[2];
  result.wrong = 37;
  result.first_wrong = 5;
  result.expected = 0xdeadbeef;
  result.found = 0x1;
  result.missing = 1;
  EXPECT_EQ(
      faults(check_collectives(evidence)),
      (Lines{"fail | node 0 | 37 of 5529600 elements are wrong at 22118400 B on learner rank 0 (GPU 0), "
             "the first at "
             "index 5 (0x00000001 for 0xdeadbeef): the term of learner rank 1 (GPU 1) is missing | "
             "every element "
             "right | do not use these GPUs and links for training; try NCCL_PROTO=Simple to tell "
             "LL128 from the "
             "hardware, and report the node | admin",
             "skip | learner world | not run: the same ranks as 'node 0' |  |  | "}));
}

TEST(CheckCollectives, TellsHowAProbeDied) {
  const Machine machine(2, 0);
  auto evidence = machine.healthy();
  evidence.reports[0].groups["node 0"].results.resize(1);
  evidence.reports[1].groups["node 0"].results.resize(1);
  evidence.reports[1].end = "was killed by SIGSEGV";
  EXPECT_EQ(faults(check_collectives(evidence))[0],
            "fail | node 0 | learner rank 1 (GPU 1): its probe was killed by SIGSEGV | every group of the "
            "plan works | "
            "NCCL's own log says more: --with nccl-debug writes it to the folder nccl beside preflight.json "
            "| user");
  // What the others say of it is the consequence.
  evidence.reports[0].errors = {{"collective", "node 0", "failed", "Connection closed by peer"}};
  evidence.reports[1].end = "is gone: its agent does not answer";
  const auto row = check_collectives(evidence)[0];
  EXPECT_EQ(row.value, "learner rank 1 (GPU 1): its probe is gone: its agent does not answer");
}

TEST(CheckCollectives, IsUnknownWithoutGloo) {
  const Machine machine(2, 0, false);
  auto evidence = machine.healthy();
  for (auto& report : evidence.reports) report.groups["node 0"].results.clear();
  evidence.reports[0].errors = {
      {"join", "node 0", "unavailable", "nlaunch's Gloo module: not found: looked for /x"}};
  EXPECT_EQ(faults(check_collectives(evidence))[0],
            "unknown | node 0 | learner rank 0 (CPU slot 0): nlaunch's Gloo module: not found: looked for /x "
            "|  |  | ");
}

TEST(CheckCollectives, IsSkippedWhenTheRanksWereNotFit) {
  const Machine machine(2, 0);
  auto evidence = machine.healthy();
  evidence.went = false;
  EXPECT_EQ(lines(check_collectives(evidence))[0],
            "skip | node 0 | not run: the ranks were not fit to begin |  |  | ");
}

TEST(Measurements, TakeTheSlowestRank) {
  const Machine machine(2, 0);
  auto evidence = machine.healthy();
  evidence.reports[1].groups["node 0"].results[3].seconds = 0.5;
  evidence.reports[1].groups["node 0"].results[3].busbw = 7;
  const auto all = measurements(evidence);
  ASSERT_EQ(all.size(), 4);
  EXPECT_EQ(all[3].group, "node 0");
  EXPECT_EQ(all[3].bytes, 128U << 20U);
  EXPECT_DOUBLE_EQ(all[3].seconds, 0.5);
  EXPECT_DOUBLE_EQ(all[3].busbw, 7);
}

TEST(CheckBandwidth, HoldsTheSitesFloor) {
  Machine machine(2, 0);
  machine.plan.expected.all_reduce_busbw = {
      {2, VersionRange::parse("1").value(), 22118400, 150e9, "site.yaml:3:1"}};
  EXPECT_EQ(
      line(check_bandwidth(machine.healthy()).at(0)),
      "pass | node 0 | 169.4 GB/s at 22118400 B (130.6 µs) | 150.0 GB/s and more (site.yaml:3:1) |  | ");
  machine.plan.expected.all_reduce_busbw[0].min = 200e9;
  EXPECT_EQ(
      line(check_bandwidth(machine.healthy()).at(0)),
      "fail | node 0 | 169.4 GB/s at 22118400 B (130.6 µs) | 200.0 GB/s and more (site.yaml:3:1) | links "
      "or GPUs are "
      "slower than this site's: nvidia-smi topo -m, nvidia-smi nvlink -s; report the node | admin");
}

TEST(CheckBandwidth, NamesTheSettingThatTakesALinkAway) {
  Machine machine(2, 0);
  machine.set(0, "NCCL_P2P_DISABLE", "1");
  machine.set(1, "NCCL_P2P_DISABLE", "1");
  machine.plan.expected.all_reduce_busbw = {{2, std::nullopt, 22118400, 200e9, "site.yaml:3:1"}};
  EXPECT_EQ(check_bandwidth(machine.healthy()).at(0).fix,
            "NCCL_P2P_DISABLE=1 is set for learner: run without it (nlaunch env --explain says where it "
            "comes from)");
}

TEST(CheckBandwidth, OnlyReportsWithoutAFittingFloor) {
  Machine machine(2, 0);
  machine.plan.expected.all_reduce_busbw = {{4, std::nullopt, 22118400, 200e9, "site"}};
  EXPECT_TRUE(check_bandwidth(machine.healthy()).empty());
}

TEST(CheckTransport, ComparesWithTheSite) {
  Machine machine(2, 0);
  machine.plan.expected.intra_node = "P2P";
  EXPECT_EQ(lines(check_transport(machine.healthy())),
            (Lines{"pass | node 0 | P2P within a node | P2P |  | "}));
  auto evidence = machine.healthy();
  for (auto& report : evidence.reports) {
    for (auto& pair : report.groups["node 0"].pairs) pair.via = "SHM";
  }
  EXPECT_EQ(lines(check_transport(evidence)),
            (Lines{"fail | node 0 | SHM within a node | P2P | the GPUs cannot reach each other directly: "
                   "nvidia-smi topo "
                   "-p2p r; a container without peer access, PCIe ACS or an IOMMU does this | admin"}));
}

TEST(CheckTransport, ExpectsThePluginBetweenNodes) {
  Machine machine(2, 0);
  machine.plan.expected.inter_node = "NET/AWS Libfabric";
  auto evidence = machine.healthy();
  evidence.ranks[1].node = 1;
  for (auto& report : evidence.reports) {
    for (auto& pair : report.groups["node 0"].pairs) pair.via = "NET/Socket";
  }
  EXPECT_EQ(lines(check_transport(evidence)),
            (Lines{"fail | node 0 | NET/Socket between nodes | NET/AWS Libfabric | NCCL did not find its "
                   "network plugin: "
                   "is its folder in LD_LIBRARY_PATH, and NCCL_NET set? | user"}));
}

TEST(CheckTransport, IsUnknownWithoutALog) {
  const Machine machine(2, 0);
  auto evidence = machine.healthy();
  for (auto& report : evidence.reports) {
    report.groups["node 0"].pairs.clear();
    report.groups["node 0"].transport_error = "libnccl wrote no log to /x";
  }
  EXPECT_EQ(lines(check_transport(evidence)),
            (Lines{"unknown | node 0 | libnccl wrote no log to /x |  |  | "}));
}

TEST(CheckLeftovers, NamesAProbeThatSurvivedSigkill) {
  const Machine machine(2, 0);
  auto evidence = machine.healthy();
  evidence.reports[1].stuck = "pid 42, state D";
  EXPECT_EQ(lines(check_leftovers(evidence)), (Lines{"fail | learner rank 1 (GPU 1) | its probe survived "
                                                     "SIGKILL (pid 42, state D): it may still hold its "
                                                     "GPU | no probe is left | a driver call does not "
                                                     "return: dmesg says more; the node may need a restart "
                                                     "| admin"}));
}

TEST(CheckLimits, JudgesEachLimit) {
  const Machine machine(1, 1);
  auto evidence = machine.of_node();
  EXPECT_EQ(lines(check_limits(evidence)),
            (Lines{"pass | memlock | unlimited |  |  | ", "pass | open files | 65536 |  |  | ",
                   "pass | /dev/shm | 64.0 GiB free |  |  | "}));
  evidence.machine.nofile = 1024;
  evidence.machine.shm_free = std::uint64_t{64} << 20U;
  EXPECT_EQ(
      faults(check_limits(evidence)),
      (Lines{
          "warn | open files | 1024 | 4096 and more | raise it: ulimit -n 65536 | user",
          "fail | /dev/shm | 64.0 MiB free | 2.0 GiB free | in a container: --shm-size or --ipc=host; else "
          "remove what is left in /dev/shm | user"}));
}

TEST(CheckLimits, WantsLockedMemoryOverAFabric) {
  Machine machine(1, 1);
  machine.plan.node.count = 2;
  auto evidence = machine.of_node();
  evidence.machine.memlock = 8U << 20U;
  EXPECT_EQ(
      faults(check_limits(evidence)),
      (Lines{
          "fail | memlock | 8.0 MiB | unlimited, or 16 GiB and more | network cards cannot register memory: "
          "raise `ulimit -l` in limits.conf and, for Slurm, LimitMEMLOCK=infinity of slurmd | admin"}));
}

TEST(CheckSpace, WarnsAndFails) {
  const Machine machine(1, 0);
  auto evidence = machine.of_node();
  evidence.folders = {{"run directory", "/a", std::uint64_t{5} << 30U, ""},
                      {"scratch", "/b", std::uint64_t{500} << 20U, ""},
                      {"scratch", "/c", 1024, ""},
                      {"scratch", "/d", 0, "No such file or directory"}};
  EXPECT_EQ(
      lines(check_space(evidence)),
      (Lines{
          "pass | run directory /a | 5.0 GiB free |  |  | ",
          "warn | scratch /b | 500.0 MiB free | 1 GiB free | make room, or choose another folder | user",
          "fail | scratch /c | 1 kiB free | 1 GiB free | make room, or choose another folder | user",
          "fail | scratch /d | No such file or directory | a folder that can be written to | choose another "
          "one, or ask for access | user"}));
}

TEST(CheckPorts, NamesTheOneThatIsTaken) {
  const Machine machine(1, 1);
  auto evidence = machine.of_node();
  evidence.ports = {{"learner.0", 29500, ""}, {"engine.0", 8000, "Address already in use"}};
  EXPECT_EQ(lines(check_ports(evidence)), (Lines{"fail | engine.0 | port 8000: Address already in use | free "
                                                 "| end what holds it (ss -ltnp names it), "
                                                 "or choose another port | user",
                                                 "pass | this machine | 29500 | free |  | "}));
}

}  // namespace
}  // namespace nlaunch::preflight
