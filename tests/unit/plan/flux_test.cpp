#include "plan/flux.h"

#include <gtest/gtest.h>

#include "unit/plan/support.h"

namespace nlaunch::plan {
namespace {

using FluxPlan = PlanFiles;
using Lines = std::vector<std::string>;

constexpr const char* kLearner = "roles: {learner: {kind: learner, command: [t]}}\n";

/// A profile with these keys of its scheduler, whose first one is in line 5.
std::string flux_with(const std::string& keys) {
  return "scheduler:\n  kind: flux\n" + keys;
}

TEST_F(FluxPlan, PathsOfLogsAreWhereCommandsRun) {
  const auto plan = plan_of(std::string("workdir: work\n") + kLearner, flux_with(R"(  directives:
    output: logs/out
    queue: batch
    conf: my/conf
    error: ~/err
    unbuffered: true
)"));
  Lines told;
  for (const auto& option : plan.flux.directives) told.push_back(option.name + "=" + option.value);
  EXPECT_EQ(told, (Lines{"output=" + (folder_ / "work/logs/out").string(), "queue=batch", "conf=my/conf",
                         "error=/home/user/err", "unbuffered="}));
  EXPECT_EQ(plan.flux.submit, Lines{"flux"});
  EXPECT_EQ(plan_of(kLearner, flux_with("  submit: [my-flux, \"${env.MODEL}\"]\n")).flux.submit,
            (Lines{"my-flux", "small"}));
}

TEST_F(FluxPlan, KeysForSlurmAreRefused) {
  EXPECT_EQ(
      mistakes(kLearner, flux_with("  srun: [--mpi=none]\n  template: job.sh\n  bad_nodes: {file: bad}\n")),
      (Lines{"5:10 'scheduler.srun' is for Slurm, but the scheduler is flux -> remove it",
             "6:13 'scheduler.template' is for Slurm, but the scheduler is flux -> remove it",
             "7:21 'scheduler.bad_nodes' is for Slurm, but the scheduler is flux -> remove it"}));
}

TEST_F(FluxPlan, SaysWhatADirectiveCannotBe) {
  const auto with = [&](const std::string& directive) {
    return mistakes(kLearner, flux_with("  directives:\n    " + directive + "\n"));
  };
  EXPECT_EQ(with("cwd: /tmp"), Lines{"6:5 'cwd' is set by nlaunch and cannot be set here -> `workdir:`"});
  EXPECT_EQ(
      with("Queue: a"),
      Lines{"6:5 'Queue' is not an option of flux batch -> write the long name without dashes: queue, bank, "
            "time-limit"});
  EXPECT_EQ(with("bank: it's"),
            Lines{"6:11 'it's' is not allowed in a #flux: line -> remove quotes and backslashes"});
  EXPECT_EQ(with("bank: true"), Lines{"6:11 'bank' needs a value; `true` would make it a flag -> write "
                                      "`bank: VALUE`; `bank: false` removes it"});
  EXPECT_EQ(with("bank: $x"), Lines{});
}

TEST_F(FluxPlan, AWalltimeIsRefused) {
  EXPECT_EQ(
      mistakes(std::string(kLearner) + "walltime: {before: 5m}\n", flux_with("")),
      Lines{"`walltime` has no effect under Flux, whose jobs are neither requeued nor chained -> remove "
            "it"});
}

TEST_F(FluxPlan, ItHasNoSpareNodes) {
  EXPECT_EQ(mistakes(kLearner, flux_with(""), {{}, 1, {}, {}}),
            Lines{"--spares 1: site 'site' has no scheduler that could allocate spare nodes -> remove "
                  "--spares, or choose another --site (`nlaunch sites` lists them)"});
}

}  // namespace
}  // namespace nlaunch::plan
