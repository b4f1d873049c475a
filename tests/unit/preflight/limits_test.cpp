#include <gtest/gtest.h>

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
      (Lines{
          "warn | open files | 1024 | 4096 and more | raise it: ulimit -n 65536 | user",
          "warn | processes | 1024 | 4096 and more, threads included | raise it: ulimit -u 65536 | user",
          "fail | /dev/shm | 64.0 MiB free | 2.0 GiB free | in a container: --shm-size or --ipc=host; else "
          "remove what is left in /dev/shm | user"}));
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
          "fail | memlock | 8.0 MiB | unlimited, or 16 GiB and more | network cards cannot register memory: "
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
      " | what FI_MR_CACHE_MONITOR=userfaultfd needs | FI_MR_CACHE_MONITOR=kdreg2, where that module is "
      "loaded; or "
      "sysctl vm.unprivileged_userfaultfd=1 | user";
  EXPECT_EQ(
      faults(run_check("limits", observations)),
      (Lines{"fail | learner's userfaultfd | only for user mode, which libfabric 1.22 does not ask for" +
             rest}));
  observations.machine.userfaultfd = "none";
  EXPECT_EQ(
      faults(run_check("limits", observations)),
      (Lines{
          "fail | learner's userfaultfd | cannot be opened: vm.unprivileged_userfaultfd is 0, or a container "
          "forbids it" +
          rest}));
}

}  // namespace
}  // namespace nlaunch::preflight
