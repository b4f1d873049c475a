#include "base/scheduler_traits.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/registry.h"

namespace nlaunch {
namespace {

const Registered<SchedulerTraits> slurm{{.name = "slurm",
                                         .order = 10,
                                         .title = "Slurm",
                                         .submit = "sbatch",
                                         .allocate = "salloc",
                                         .submits_within = true,
                                         .spares = true,
                                         .pools = true,
                                         .lends = true,
                                         .switches = true,
                                         .directives = true,
                                         .srun = true,
                                         .step = "srun",
                                         .job_variable = "SLURM_JOB_ID",
                                         .rank_variable = "SLURM_NODEID"}};
const Registered<SchedulerTraits> beaker{
    {.name = "beaker",
     .order = 20,
     .title = "Beaker",
     .submit = "beaker",
     .allocate = "",
     .shares_files = false,
     .walltime = WalltimeUse::ignored,
     .why_no_walltime = "under Beaker, which does not announce the end of a job"}};
const Registered<SchedulerTraits> flux{{.name = "flux",
                                        .order = 30,
                                        .title = "Flux",
                                        .submit = "flux batch",
                                        .allocate = "flux alloc",
                                        .submits_within = true,
                                        .directives = true,
                                        .step = "flux run",
                                        .job_variable = "FLUX_ENCLOSING_ID",
                                        .rank_variable = "FLUX_TASK_RANK",
                                        .walltime = WalltimeUse::refused,
                                        .why_no_walltime = "under Flux, whose jobs are neither requeued nor "
                                                           "chained"}};
const Registered<SchedulerTraits> local{{.name = "local",
                                         .order = 100,
                                         .title = "",
                                         .submit = "",
                                         .allocate = "",
                                         .this_machine = true,
                                         .pools = true,
                                         .switches = true,
                                         .walltime = WalltimeUse::ignored,
                                         .why_no_walltime = "on a single machine"}};

}  // namespace

std::vector<const SchedulerTraits*> all_schedulers() {
  return Registered<SchedulerTraits>::all();
}

const SchedulerTraits* find_scheduler(std::string_view name) {
  const auto all = all_schedulers();
  const auto found = std::ranges::find(all, name, [](const auto* one) { return one->name; });
  return found == all.end() ? nullptr : *found;
}

const SchedulerTraits& traits_of(std::string_view name) {
  if (const auto* found = find_scheduler(name)) return *found;
  throw std::out_of_range("unknown scheduler '" + std::string(name) + "'");
}

}  // namespace nlaunch
