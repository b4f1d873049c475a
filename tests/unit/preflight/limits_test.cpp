#include <gtest/gtest.h>

#include <functional>

#include "unit/preflight/host_fixture.h"

namespace nlaunch::preflight {
namespace {

TEST(CheckLimits, JudgesEachLimit) {
  const Machine machine(1, 1);
  auto observations = machine.of_node();
  EXPECT_EQ(lines(run_check("limits", observations)),
            (Lines{"pass | memlock | unlimited |  |  | ", "pass | open files | 65536 |  |  | ",
                   "pass | processes | unlimited |  |  | ", "pass | core | unlimited |  |  | ",
                   "pass | /dev/shm | 64.0 GiB free |  |  | "}));
  observations.machine.nofile = 1024;
  observations.machine.nproc = 1024;
  observations.machine.core = 0;
  observations.machine.shm_free = std::uint64_t{64} << 20U;
  EXPECT_EQ(
      faults(run_check("limits", observations)),
      (Lines{"warn | open files | 1024 | at least 4096 | raise it: ulimit -n 65536 | user",
             "warn | processes | 1024 | at least 4096, including threads | raise it: ulimit -u 65536 | user",
             "fail | /dev/shm | 64.0 MiB free | 2.0 GiB free | in a container: --shm-size or --ipc=host; "
             "otherwise remove leftover files in /dev/shm | user"}));
}

TEST(CheckLimits, OnlyRanksCannotDoWithoutSharedMemory) {
  Machine machine(1, 1);
  auto observations = machine.of_node();
  observations.machine.shm_free.reset();
  EXPECT_EQ(faults(run_check("limits", observations)),
            (Lines{"fail | /dev/shm | does not exist | a tmpfs | mount it | admin"}));
  observations.ranks.clear();
  EXPECT_EQ(faults(run_check("limits", observations)),
            (Lines{"warn | /dev/shm | does not exist | a tmpfs | mount it | admin"}));
}

TEST(CheckLimits, WantsLockedMemoryOverAFabric) {
  Machine machine(1, 1);
  machine.plan.node.count = 2;
  auto observations = machine.of_node();
  observations.machine.memlock = 8U << 20U;
  EXPECT_EQ(
      faults(run_check("limits", observations)),
      (Lines{
          "fail | memlock | 8.0 MiB | unlimited, or at least 16 GiB | network cards cannot register memory: "
          "raise `ulimit -l` in limits.conf and, for Slurm, LimitMEMLOCK=infinity of slurmd | admin"}));
}

struct Asked {
  std::string monitor;    ///< FI_MR_CACHE_MONITOR
  std::string can;        ///< what this user may open
  std::string libfabric;  ///< its version; empty: not known
  Status status;
};

TEST(CheckLimits, WantsUserfaultfdWhereItIsAskedFor) {
  const std::vector<Asked> all{
      {"kdreg2", "none", "1.22", Status::pass},          {"userfaultfd", "all", "1.22", Status::pass},
      {"userfaultfd", "user mode", "2.1", Status::pass}, {"userfaultfd", "user mode", "1.22", Status::fail},
      {"userfaultfd", "user mode", "", Status::warn},    {"uffd", "none", "", Status::fail}};
  for (const auto& one : all) {
    Cluster cluster("cxi");
    cluster.set(0, "FI_MR_CACHE_MONITOR", one.monitor);
    auto observations = cluster.with("fabric/learner", {{"version", one.libfabric}});
    observations.machine.userfaultfd = one.can;
    EXPECT_EQ(name_of(worst(run_check("limits", observations))), name_of(one.status))
        << one.can << " " << one.libfabric;
    cluster.plan.node.nic_kind = "efa";
    EXPECT_NE(worst(run_check("limits", observations)), Status::fail) << "other providers go on without";
  }
}

TEST(CheckLimits, SaysWhatToSetInsteadOfUserfaultfd) {
  Cluster cluster("cxi");
  cluster.set(0, "FI_MR_CACHE_MONITOR", "userfaultfd");
  auto observations = cluster.with("fabric/learner", {{"version", "1.22"}});
  observations.machine.userfaultfd = "user mode";
  const std::string rest =
      " | what FI_MR_CACHE_MONITOR=userfaultfd needs | set FI_MR_CACHE_MONITOR=kdreg2 where that module is "
      "loaded, or sysctl vm.unprivileged_userfaultfd=1 | user";
  EXPECT_EQ(faults(run_check("limits", observations)),
            (Lines{"fail | learner's userfaultfd | only in user mode, which libfabric 1.22 does not request" +
                   rest}));
  observations.machine.userfaultfd = "none";
  EXPECT_EQ(
      faults(run_check("limits", observations)),
      (Lines{
          "fail | learner's userfaultfd | cannot be opened: vm.unprivileged_userfaultfd is 0, or a container "
          "forbids it" +
          rest}));
}

TEST(CheckLimits, EachHasItsLimit) {
  Machine machine(1, 1);
  machine.plan.node.count = 2;
  constexpr std::uint64_t kGiB = 1U << 30U;
  const auto status = [&](const std::function<void(MachineFacts&)>& set) {
    auto observations = machine.of_node();
    set(observations.machine);
    return worst(run_check("limits", observations));
  };
  EXPECT_EQ(status([](MachineFacts& facts) { facts.memlock = 16 * kGiB; }), Status::pass);
  EXPECT_EQ(status([](MachineFacts& facts) { facts.memlock = 16 * kGiB - 1; }), Status::fail);
  EXPECT_EQ(status([](MachineFacts& facts) { facts.nofile = 4096; }), Status::pass);
  EXPECT_EQ(status([](MachineFacts& facts) { facts.nofile = 4095; }), Status::warn);
  EXPECT_EQ(status([](MachineFacts& facts) { facts.nofile = 256; }), Status::warn);
  EXPECT_EQ(status([](MachineFacts& facts) { facts.nofile = 255; }), Status::fail);
  EXPECT_EQ(status([](MachineFacts& facts) { facts.nofile.reset(); }), Status::pass);
  EXPECT_EQ(status([](MachineFacts& facts) { facts.nproc = 4096; }), Status::pass);
  EXPECT_EQ(status([](MachineFacts& facts) { facts.nproc = 4095; }), Status::warn);
  EXPECT_EQ(status([](MachineFacts& facts) { facts.shm_free = 2 * kGiB; }), Status::pass);
  EXPECT_EQ(status([](MachineFacts& facts) { facts.shm_free = 2 * kGiB - 1; }), Status::warn);
  EXPECT_EQ(status([](MachineFacts& facts) { facts.shm_free = 128U << 20U; }), Status::warn);
  EXPECT_EQ(status([](MachineFacts& facts) { facts.shm_free = (128U << 20U) - 1; }), Status::fail);
  machine.plan.node.count = 1;
  EXPECT_EQ(status([](MachineFacts& facts) { facts.memlock = 0; }), Status::pass)
      << "a node alone locks nothing";
}

TEST(CheckLimits, WithoutGpusOneGibibyteOfSharedMemoryIsEnough) {
  Machine machine(3, 0, false);
  auto observations = machine.of_node();
  observations.machine.shm_free = 1U << 30U;
  EXPECT_EQ(faults(run_check("limits", observations)), Lines{});
  observations.machine.shm_free = (1U << 30U) - 1;
  EXPECT_EQ(faults(run_check("limits", observations)).size(), 1U);
  machine.plan.node.count = 2;
  observations.machine.shm_free = 1U << 30U;
  observations.machine.memlock = 0;
  EXPECT_EQ(faults(run_check("limits", observations)), Lines{}) << "CPU slots talk over TCP";
}

TEST(CheckLimits, ACoreFileIsToldByItsSize) {
  const Machine machine(1, 1);
  auto observations = machine.of_node();
  const auto core = [&] { return lines(run_check("limits", observations))[3]; };
  observations.machine.core = 0;
  EXPECT_EQ(core(), "pass | core | 0: a crash writes no core file |  |  | ");
  observations.machine.core = 1U << 20U;
  EXPECT_EQ(core(), "pass | core | 1.0 MiB |  |  | ");
}

TEST(CheckLimits, WithoutFactsAllIsUnknown) {
  const Machine machine(1, 1);
  auto observations = machine.of_node();
  observations.machine.error = "no probe";
  EXPECT_EQ(lines(run_check("limits", observations)), Lines{"unknown | this machine | no probe |  |  | "});
}

TEST(CheckLimits, UserfaultfdIsJudgedWhereItIsKnown) {
  Cluster cluster("cxi");
  cluster.set(0, "FI_MR_CACHE_MONITOR", "userfaultfd");
  auto observations = cluster.of_node();
  const auto rows = [&] { return lines(run_check("limits", observations)).size(); };
  EXPECT_EQ(rows(), 5U) << "nobody knows";
  observations.machine.userfaultfd = "all";
  EXPECT_EQ(lines(run_check("limits", observations)).at(5),
            "pass | learner's userfaultfd | can be opened |  |  | ");
  observations.machine.userfaultfd = "user mode";
  EXPECT_TRUE(faults(run_check("limits", observations))
                  .at(0)
                  .starts_with("warn | learner's userfaultfd | only in user mode, which libfabric before 2.0 "
                               "does not request | "));
  observations.answers["fabric/learner"] = {{{"version", "2.0"}}, ""};
  EXPECT_EQ(faults(run_check("limits", observations)), Lines{});
  observations.answers["fabric/learner"] = {{{"version", "1.22"}}, ""};
  EXPECT_EQ(worst(run_check("limits", observations)), Status::fail);
  cluster.plan.node.count = 1;
  EXPECT_EQ(worst(run_check("limits", observations)), Status::warn);
}

}  // namespace
}  // namespace nlaunch::preflight
