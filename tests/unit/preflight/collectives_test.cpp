#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

TEST(CheckCollectives, PassesWithTimesAndBandwidths) {
  const Machine machine(2, 0);
  const auto rows = run_check("collectives", machine.healthy());
  ASSERT_EQ(rows.size(), 3);
  EXPECT_EQ(line(rows[0]),
            "pass | node 0 | 2 ranks over nccl, all elements correct: 8 B 20.0 µs 0.0 GB/s, 1MiB 25.2 µs "
            "41.5 GB/s, 22118400 B 130.6 µs 169.4 GB/s, 128MiB 691.1 µs 194.2 GB/s |  |  | ");
  EXPECT_EQ(rows[2].check, "send_recv");
  EXPECT_EQ(line(rows[2]),
            "pass | node 0, neighbours | 2 ranks over nccl, all elements correct: 1MiB 25.2 µs 41.5 GB/s, "
            "128MiB 691.1 µs 194.2 GB/s |  |  | ");
}

TEST(CheckCollectives, NamesTheRankThatDidNotJoin) {
  const Machine machine(4, 0);
  auto observations = machine.healthy();
  for (auto& report : observations.reports) {
    report.done = false;
    report.groups.clear();
    report.groups["node 0"].joining = true;
    report.errors = {{"join", "node 0", "deadline", "not done within 20s"}};
  }
  observations.reports[1].groups.clear();
  observations.reports[1].errors.clear();
  EXPECT_EQ(
      lines(run_check("collectives", observations)),
      (Lines{
          "fail | node 0 | learner rank 1 (GPU 1) did not join within 20 s; ranks 0, 2, 3 did | all ranks | "
          "check what holds this GPU or process: nvidia-smi, and its .err file in the preflight directory | "
          "user",
          "skip | learner world | not run: the same ranks as 'node 0' |  |  | ",
          "skip | node 0, neighbours | not run: an earlier group failed |  |  | "}));
}

TEST(CheckCollectives, TellsNcclsOwnWordsWhenAllArrived) {
  const Machine machine(1, 1);
  auto observations = machine.healthy();
  for (auto& report : observations.reports) {
    report.groups["node 0"].results.clear();
    report.groups.erase("weight sync");
    report.groups.erase("node 0, neighbours");
  }
  observations.reports[1].errors = {
      {"join", "node 0", "failed", "ncclCommInitRank: unhandled system error: no route"}};
  EXPECT_EQ(lines(run_check("collectives", observations)),
            (Lines{"fail | node 0 | learner rank 0 (GPU 0), engine.0 (GPU 1) arrived, but the communicator "
                   "was not created: engine.0 (GPU 1): ncclCommInitRank: unhandled system error: no route | "
                   "every group of the plan completes | see NCCL's own log: --with nccl-debug writes it to "
                   "the directory nccl next to preflight.json | user",
                   "skip | weight sync | not run: an earlier group failed |  |  | ",
                   "skip | node 0, neighbours | not run: an earlier group failed |  |  | "}));
}

TEST(CheckCollectives, NamesWhoseTermIsMissing) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  auto& result = observations.reports[0].groups["node 0"].results[2];
  result.wrong = 37;
  result.first_wrong = 5;
  result.expected = 0xdeadbeef;
  result.found = 0x1;
  result.rank = 1;
  result.fault = "missing";
  EXPECT_EQ(faults(run_check("collectives", observations)),
            (Lines{"fail | node 0 | 37 of 5529600 elements are wrong at 22118400 B on learner rank 0 (GPU "
                   "0), the first at index 5 (0x00000001 for 0xdeadbeef): the contribution of learner rank 1 "
                   "(GPU 1) is missing | all elements correct | do not train on these GPUs and links; try "
                   "NCCL_PROTO=Simple to tell LL128 from the hardware, and report the node | admin",
                   "skip | learner world | not run: the same ranks as 'node 0' |  |  | "}));
}

TEST(CheckCollectives, JudgesAWorkload) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  auto& group = observations.groups.front();
  group.sizes.clear();
  group.workloads = {{"step", {{Collective::all_reduce, 64, DataType::bf16, 80}}}};
  for (auto& report : observations.reports) {
    report.groups["node 0"].results.clear();
    report.groups["node 0"].workloads = {{"step", 0, {0.001}}};
  }
  EXPECT_EQ(line(run_check("collectives", observations)[0]),
            "pass | node 0 | 2 ranks over nccl, all elements correct |  |  | ");
  observations.reports[1].groups["node 0"].workloads[0].wrong = 7;
  EXPECT_EQ(
      line(run_check("collectives", observations)[0]),
      "fail | node 0 | 7 elements are wrong in 'step' on learner rank 1 (GPU 1) | all elements correct | "
      "run nlaunch preflight to see which; do not train on these GPUs and links | user");
  for (auto& report : observations.reports) report.groups["node 0"].joining = true;
  observations.reports[1].groups["node 0"].workloads.clear();
  EXPECT_EQ(line(run_check("collectives", observations)[0]),
            "fail | node 0 | ranks 0, 1 arrived, but the group did not finish in time | every group of the "
            "plan completes | see NCCL's own log: --with nccl-debug writes it to the directory nccl next to "
            "preflight.json | user");
}

TEST(CheckCollectives, SaysHowAPartIsWrongWithoutBlamingItsSender) {
  Machine machine(2, 0);
  auto observations = machine.healthy();
  auto& result = observations.reports[0].groups["node 0, neighbours"].results[0];
  result.wrong = 1;
  result.rank = 1;
  result.fault = "received";
  const auto row = run_check("collectives", observations)[2];
  EXPECT_EQ(row.value,
            "1 of 262144 elements are wrong at 1MiB on learner rank 0 (GPU 0), the first at index 0 "
            "(0x00000000 for 0x00000000): received by learner rank 0 (GPU 0) from learner rank 1 (GPU 1)");
  EXPECT_TRUE(row.hosts.empty());
  auto& sum = observations.reports[1].groups["node 0"].results[0];
  sum.wrong = 1;
  sum.rank = 0;
  sum.fault = "twice";
  EXPECT_TRUE(run_check("collectives", observations)[0].value.ends_with(
      ": the contribution of learner rank 0 (GPU 0) was added twice"));
  sum.fault = "";
  EXPECT_TRUE(run_check("collectives", observations)[0].value.ends_with("(0x00000000 for 0x00000000)"));
}

TEST(CheckCollectives, AGroupOfOneIsNotRun) {
  Machine machine(1, 0);
  machine.plan.groups.push_back({"learner world", plan::GroupKind::world, Backend::nccl, {{0, 0}}});
  EXPECT_EQ(lines(run_check("collectives", machine.healthy())),
            (Lines{"skip | learner world | not run: a group of one rank has no peer |  |  | "}));
}

TEST(CheckCollectives, TellsHowAProbeDied) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  observations.reports[0].groups["node 0"].results.resize(1);
  observations.reports[1].groups["node 0"].results.resize(1);
  observations.reports[1].end = "was killed by SIGSEGV";
  EXPECT_EQ(faults(run_check("collectives", observations))[0],
            "fail | node 0 | learner rank 1 (GPU 1): its probe was killed by SIGSEGV | every group of the "
            "plan completes | see NCCL's own log: --with nccl-debug writes it to the directory nccl next to "
            "preflight.json | user");
  // What the others say of it is the consequence.
  observations.reports[0].errors = {{"collective", "node 0", "failed", "Connection closed by peer"}};
  observations.reports[1].end = "was lost: its agent does not answer";
  const auto row = run_check("collectives", observations)[0];
  EXPECT_EQ(row.value, "learner rank 1 (GPU 1): its probe was lost: its agent does not answer");
}

TEST(CheckCollectives, IsUnknownWithoutGloo) {
  const Machine machine(2, 0, false);
  auto observations = machine.healthy();
  for (auto& report : observations.reports) report.groups["node 0"].results.clear();
  observations.reports[0].errors = {
      {"join", "node 0", "unavailable", "nlaunch's Gloo module: not found: looked for /x"}};
  EXPECT_EQ(faults(run_check("collectives", observations))[0],
            "unknown | node 0 | learner rank 0 (CPU slot 0): nlaunch's Gloo module: not found: looked for /x "
            "|  |  | ");
}

TEST(CheckCollectives, IsSkippedWhenTheRanksWereNotFit) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  observations.went = false;
  EXPECT_EQ(lines(run_check("collectives", observations))[0],
            "skip | node 0 | not run: the ranks were not ready to start |  |  | ");
}

TEST(Measurements, TakeTheSlowestRank) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  observations.reports[1].groups["node 0"].results[3].seconds = 0.5;
  observations.reports[1].groups["node 0"].results[3].busbw = 7;
  const auto all = measurements(observations);
  ASSERT_EQ(all.size(), 6) << "four sizes of the all-reduce, two between neighbours";
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
      line(run_check("bandwidth", machine.healthy()).at(0)),
      "pass | node 0 | 169.4 GB/s at 22118400 B (130.6 µs) | at least 150.0 GB/s (site.yaml:3:1) |  | ");
  machine.plan.expected.all_reduce_busbw[0].min = 200e9;
  EXPECT_EQ(line(run_check("bandwidth", machine.healthy()).at(0)),
            "fail | node 0 | 169.4 GB/s at 22118400 B (130.6 µs) | at least 200.0 GB/s (site.yaml:3:1) | "
            "links or GPUs are slower than the site expects: check nvidia-smi topo -m and nvidia-smi nvlink "
            "-s; report the node | admin");
}

TEST(CheckBandwidth, NamesTheSettingThatTakesALinkAway) {
  Machine machine(2, 0);
  machine.set(0, "NCCL_P2P_DISABLE", "1");
  machine.set(1, "NCCL_P2P_DISABLE", "1");
  machine.plan.expected.all_reduce_busbw = {{2, std::nullopt, 22118400, 200e9, "site.yaml:3:1"}};
  EXPECT_EQ(
      run_check("bandwidth", machine.healthy()).at(0).fix,
      "NCCL_P2P_DISABLE=1 is set for learner: run without it (nlaunch env --explain shows where it is set)");
}

TEST(CheckBandwidth, OnlyReportsWithoutAFittingFloor) {
  Machine machine(2, 0);
  machine.plan.expected.all_reduce_busbw = {{4, std::nullopt, 22118400, 200e9, "site"}};
  EXPECT_TRUE(run_check("bandwidth", machine.healthy()).empty());
}

TEST(CheckBandwidth, SaysThatASizeOfNothingIsNothing) {
  Machine machine(2, 0);
  machine.plan.expected.all_reduce_busbw = {{2, std::nullopt, 3, 200e9, "site.yaml:3:1"}};
  EXPECT_EQ(
      lines(run_check("bandwidth", machine.healthy())),
      (Lines{
          "unknown | node 0 | a message of 3B does not hold one element of 4 B (site.yaml:3:1) |  |  | "}));
}

TEST(CheckTransport, ComparesWithTheSite) {
  Machine machine(2, 0);
  machine.plan.expected.intra_node = "P2P";
  EXPECT_EQ(lines(run_check("transport", machine.healthy())),
            (Lines{"pass | node 0 | P2P within a node | P2P |  | "}));
  auto observations = machine.healthy();
  for (auto& report : observations.reports) {
    for (auto& pair : report.groups["node 0"].pairs) pair.via = "SHM";
  }
  EXPECT_EQ(lines(run_check("transport", observations)),
            (Lines{"fail | node 0 | SHM within a node | P2P | the GPUs cannot reach each other directly: "
                   "check nvidia-smi topo -p2p r; a container without peer access, PCIe ACS or an IOMMU "
                   "causes this | admin"}));
}

TEST(CheckTransport, ExpectsThePluginBetweenNodes) {
  Machine machine(2, 0);
  machine.plan.expected.inter_node = "NET/AWS Libfabric";
  auto observations = machine.healthy();
  observations.ranks[1].node = 1;
  for (auto& report : observations.reports) {
    for (auto& pair : report.groups["node 0"].pairs) pair.via = "NET/Socket";
  }
  EXPECT_EQ(
      lines(run_check("transport", observations)),
      (Lines{"fail | node 0 | NET/Socket between nodes | NET/AWS Libfabric | NCCL did not find its network "
             "plugin: check that its directory is in LD_LIBRARY_PATH and that NCCL_NET is set | user"}));
}

TEST(CheckTransport, IsUnknownWithoutALog) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  for (auto& report : observations.reports) {
    report.groups["node 0"].pairs.clear();
    report.groups["node 0"].transport_error = "libnccl wrote no log to /x";
  }
  EXPECT_EQ(lines(run_check("transport", observations)),
            (Lines{"unknown | node 0 | libnccl wrote no log to /x |  |  | "}));
}

TEST(CheckLeftovers, NamesAProbeThatSurvivedSigkill) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  observations.reports[1].stuck = "pid 42, state D";
  EXPECT_EQ(lines(run_check("leftovers", observations)),
            (Lines{"fail | learner rank 1 (GPU 1) | its probe survived SIGKILL (pid 42, state D): it may "
                   "still hold its GPU | no probe left running | a driver call does not return: see dmesg; "
                   "the node may need a reboot | admin"}));
}

TEST(CheckPorts, NamesTheOneThatIsTaken) {
  const Machine machine(1, 1);
  auto observations = machine.of_node();
  observations.ports = {{"learner.0", 29500, ""}, {"engine.0", 8000, "Address already in use"}};
  EXPECT_EQ(lines(run_check("ports", observations)),
            (Lines{"fail | engine.0 | port 8000: Address already in use | free "
                   "| stop what holds it (ss -ltnp shows it), or choose another port | user",
                   "pass | this machine | 29500 | free |  | "}));
  observations.ports[1].holder = "server.py (pid 4711, user alice)";
  observations.ports[1].remedy = "stop it with `kill 4711`";
  EXPECT_EQ(lines(run_check("ports", observations))[0],
            "fail | engine.0 | port 8000: Address already in use, held by server.py (pid 4711, user alice) | "
            "free | stop it with `kill 4711`, or choose another port | user");
}

TEST(CheckCollectives, OfManySizesTheFirstAndTheLastFourAreTold) {
  const Machine machine(2, 0);
  const auto value = [&](std::size_t count) {
    auto observations = machine.healthy();
    auto& group = observations.groups.front();
    group.sizes.clear();
    for (std::size_t i = 0; i < count; ++i) group.sizes.push_back(8 + 4 * i);
    for (auto& report : observations.reports) {
      report.groups["node 0"].results.clear();
      for (const auto bytes : group.sizes)
        report.groups["node 0"].results.push_back({bytes, bytes / 4, 0, 0, 0, 0, -1, 1e-5, 1e9});
    }
    return run_check("collectives", observations)[0].value;
  };
  const auto size = [](int bytes) { return fmt::format("{} B 10.0 µs 1.0 GB/s", bytes); };
  EXPECT_EQ(value(6), "2 ranks over nccl, all elements correct: " + size(8) + ", " + size(12) + ", " +
                          size(16) + ", " + size(20) + ", " + size(24) + ", " + size(28));
  EXPECT_EQ(value(7), "2 ranks over nccl, all elements correct: " + size(8) + " to, " + size(20) + ", " +
                          size(24) + ", " + size(28) + ", " + size(32));
}

TEST(CheckCollectives, WithoutGroupsRanksAreToldSo) {
  const Machine one(1, 0);
  EXPECT_EQ(lines(run_check("collectives", one.healthy())),
            Lines{"skip | this machine | no group has two or more ranks |  |  | "});
  auto observations = one.healthy();
  observations.ranks.clear();
  EXPECT_TRUE(run_check("collectives", observations).empty());
}

TEST(CheckCollectives, OnlyTheRankWhoseTermIsMissingIsBlamed) {
  Machine machine(2, 0);
  auto observations = machine.healthy();
  observations.hosts = {"a"};
  auto& result = observations.reports[0].groups["node 0"].results[0];
  result.wrong = 1;
  result.rank = 1;
  result.fault = "missing";
  observations.ranks[1].node = 1;
  observations.hosts = {"a", "b"};
  EXPECT_EQ(run_check("collectives", observations)[0].hosts, Lines{"b"});
  result.fault = "received";
  EXPECT_EQ(run_check("collectives", observations)[0].hosts, Lines{});
  observations.ranks[1].node = 0;
  EXPECT_EQ(run_check("collectives", observations)[0].hosts, Lines{"a"});
  result.fault = "missing";
  result.rank = -1;
  EXPECT_TRUE(run_check("collectives", observations)[0].value.ends_with("(0x00000000 for 0x00000000)"));
  result.rank = 2;
  EXPECT_TRUE(run_check("collectives", observations)[0].value.ends_with("(0x00000000 for 0x00000000)"));
  result.rank = 0;
  EXPECT_TRUE(run_check("collectives", observations)[0].value.ends_with(
      "the contribution of learner rank 0 (GPU 0) is missing"));
}

TEST(CheckCollectives, ARankThatDiedBeforeItJoinedIsTheCause) {
  const Machine machine(3, 0);
  auto observations = machine.healthy();
  observations.hosts = {"a"};
  for (auto& report : observations.reports) report.groups["node 0"].results.clear();
  observations.reports[1].groups.erase("node 0");
  observations.reports[2].groups.erase("node 0");
  observations.reports[2].end = "was killed by SIGSEGV";
  const auto row = run_check("collectives", observations)[0];
  EXPECT_EQ(line(row),
            "fail | node 0 | learner rank 2 (GPU 2): its probe was killed by SIGSEGV | all ranks | see its "
            ".err file in the preflight directory | user");
  EXPECT_EQ(row.hosts, Lines{"a"});
  observations.reports[2].groups["node 0"].joining = false;
  EXPECT_EQ(line(run_check("collectives", observations)[0]), line(row));
}

TEST(CheckCollectives, WhatDidNotEndInTimeIsToldByItsPhase) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  for (auto& report : observations.reports) report.groups["node 0"].results.pop_back();
  observations.reports[1].errors = {{"collective", "node 0", "deadline", "not done within 20s"}};
  EXPECT_TRUE(run_check("collectives", observations)[0].value.starts_with(
      "ranks 0, 1 arrived, but a collective did not complete: learner rank 1 (GPU 1): not done within 20s"));
  observations.reports[0].errors = {{"join", "node 0", "failed", "no route"}};
  EXPECT_TRUE(run_check("collectives", observations)[0].value.starts_with(
      "ranks 0, 1 arrived, but the communicator was not created: learner rank 0 (GPU 0): no route"))
      << "what failed comes before what ran out of time";
}

TEST(Measurements, AreThoseOfGroupsThatCompleted) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  observations.reports[1].groups["node 0, neighbours"].results.pop_back();
  EXPECT_EQ(measurements(observations).size(), 4U);
  observations.went = false;
  EXPECT_TRUE(measurements(observations).empty());
}

TEST(CheckBandwidth, OfEachGroupThatWasTriedTheSizeOfTheSite) {
  Machine machine(2, 0);
  machine.plan.expected.all_reduce_busbw = {{2, std::nullopt, 22118400, 200e9, "site"},
                                            {2, std::nullopt, 1U << 20U, 1e9, "site"},
                                            {2, std::nullopt, 4096, 1e9, "site"}};
  auto observations = machine.healthy();
  observations.hosts = {"n1"};
  auto rows = run_check("bandwidth", observations);
  ASSERT_EQ(rows.size(), 3U) << "the world has the same ranks, and was not tried";
  EXPECT_EQ(rows[0].status, Status::fail);
  EXPECT_EQ(rows[0].hosts, Lines{"n1"});
  EXPECT_EQ(rows[1].status, Status::pass);
  EXPECT_EQ(rows[1].hosts, Lines{});
  for (auto& report : observations.reports) report.groups["node 0"].results.pop_back();
  rows = run_check("bandwidth", observations);
  EXPECT_TRUE(rows.empty()) << "the group is not complete";
}

TEST(CheckBandwidth, TheFloorItselfWillDo) {
  Machine machine(2, 0);
  auto observations = machine.healthy();
  const auto busbw = observations.reports[0].groups["node 0"].results[2].busbw;
  machine.plan.expected.all_reduce_busbw = {{2, std::nullopt, 22118400, busbw, "site"}};
  EXPECT_EQ(worst(run_check("bandwidth", observations)), Status::pass);
}

/// So many nodes with two learners each, whose largest message takes so many times as long as usual.
Lines slow_nodes(const std::vector<double>& times, std::uint64_t bytes = 128U << 20U) {
  Machine machine(static_cast<std::uint32_t>(2 * times.size()), 0);
  machine.plan.groups.clear();
  for (std::uint32_t node = 0; node < times.size(); ++node)
    machine.add_group(fmt::format("node {}", node), plan::GroupKind::node, Backend::nccl, 2 * node, 2);
  auto observations = machine.healthy();
  for (std::uint32_t rank = 0; rank < observations.ranks.size(); ++rank)
    observations.ranks[rank].node = rank / 2;
  for (std::size_t node = 0; node < times.size(); ++node) {
    observations.hosts.push_back(fmt::format("n{}", node));
    auto& group = observations.groups[node];
    group.sizes = {bytes};
    for (const auto rank : group.members) {
      auto& results = observations.reports[rank].groups[group.name].results;
      results.resize(1);
      results[0].seconds = times[node];
      results[0].busbw = 100e9 / times[node];
    }
  }
  Lines out;
  for (const auto& row : run_check("slow-node", observations))
    out.push_back(fmt::format("{} | {} | {} | {}", name_of(row.status), row.subject, row.value,
                              row.hosts.empty() ? "" : row.hosts.front()));
  return out;
}

TEST(CheckSlowNode, NamesTheOneThatTakesHalfAsLongAgain) {
  EXPECT_EQ(slow_nodes({1, 1, 1.6, 1}),
            Lines{"fail | node 2 | 62.5 GB/s at 128MiB, the median of 4 nodes is 100.0 GB/s | n2"});
  EXPECT_EQ(slow_nodes({1, 1, 1.5, 0.8}), Lines{"pass | 4 nodes | 66.7 GB/s to 125.0 GB/s at 128MiB | "});
  EXPECT_EQ(slow_nodes({2, 2, 1, 1}).size(), 2U) << "the median of an even number is the faster one";
}

TEST(CheckSlowNode, SaysNothingOfTwoAndOfSmallMessages) {
  EXPECT_EQ(slow_nodes({1, 2}), Lines{});
  EXPECT_EQ(slow_nodes({1, 1, 2}).size(), 1U);
  EXPECT_EQ(slow_nodes({1, 1, 2}, (16U << 20U) - 4), Lines{});
  EXPECT_EQ(slow_nodes({1, 1, 2}, 16U << 20U).size(), 1U);
}

TEST(CheckTransport, NamesWhatIsUsedWithinNodesAndBetweenThem) {
  Machine machine(3, 0);
  machine.plan.expected.intra_node = "P2P";
  auto observations = machine.healthy();
  observations.ranks[2].node = 1;
  for (auto& report : observations.reports) {
    auto& pairs = report.groups["node 0"].pairs;
    pairs = {{0, 1, "P2P"}, {1, 0, "SHM"}, {1, 2, "NET/IB"}, {0, 3, "beyond"}, {3, 0, "beyond"}};
  }
  const auto rows = lines(run_check("transport", observations));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_TRUE(rows[0].starts_with("fail | node 0 | P2P and SHM within a node | P2P | the GPUs cannot"));
  EXPECT_EQ(rows[1], "pass | node 0 | NET/IB between nodes |  |  | ");
}

TEST(CheckTransport, NamesTheSettingThatTakesItAway) {
  Machine machine(2, 0);
  machine.plan.expected.intra_node = "P2P";
  machine.set(0, "NCCL_P2P_DISABLE", "1");
  auto observations = machine.healthy();
  for (auto& report : observations.reports) report.groups["node 0"].pairs = {{0, 1, "SHM"}};
  EXPECT_EQ(
      run_check("transport", observations).at(0).fix,
      "NCCL_P2P_DISABLE=1 is set for learner: run without it (nlaunch env --explain shows where it is set)");
}

TEST(CheckTransport, IsSaidOfRanksThatAreDoneAlone) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  for (auto& report : observations.reports) report.groups["node 0"].pairs.clear();
  EXPECT_EQ(lines(run_check("transport", observations)),
            Lines{"unknown | node 0 | NCCL's log names none |  |  | "});
  observations.reports[1].done = false;
  EXPECT_TRUE(run_check("transport", observations).empty());
  observations.reports[0].groups["node 0"].pairs = {{0, 1, "P2P"}};
  observations.reports[1].groups.clear();
  EXPECT_EQ(run_check("transport", observations).size(), 1U);
  observations.went = false;
  EXPECT_TRUE(run_check("transport", observations).empty());
}

TEST(CheckLeftovers, NamesTheNode) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  observations.hosts = {"a", "b"};
  observations.ranks[1].node = 1;
  observations.reports[1].stuck = "pid 42, state D";
  EXPECT_EQ(run_check("leftovers", observations).at(0).hosts, Lines{"b"});
}

TEST(CheckPorts, ListsThoseThatAreFree) {
  const Machine machine(1, 1);
  auto observations = machine.of_node();
  EXPECT_TRUE(run_check("ports", observations).empty());
  observations.ports = {{"learner.0", 29500, ""}, {"engine.0", 8000, ""}};
  EXPECT_EQ(lines(run_check("ports", observations)), Lines{"pass | this machine | 29500, 8000 | free |  | "});
}

}  // namespace
}  // namespace nlaunch::preflight
