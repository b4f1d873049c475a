#include "plan/scheduler_part.h"

#include <algorithm>
#include <filesystem>

#include "base/registry.h"
#include "plan/beaker.h"
#include "plan/described_json.h"
#include "plan/flux.h"
#include "plan/slurm.h"

namespace nlaunch::plan {
namespace {

/// A path is relative to the file that contains it; the path of a Slurm log is relative to the working
/// directory of the commands.
void make_slurm_part(const PartInput& input, Plan& plan) {
  auto& slurm = plan.slurm = make_slurm(input.experiment, input.site, input.resolve, input.diagnostics);
  set_components(input.experiment, input.site, input.spares_of, input.resolve, plan, input.diagnostics);
  const auto place_logs = [&](std::vector<Directive>& directives) {
    for (auto& option : directives) {
      if (option.name == "output" || option.name == "error") option.value = input.absolute(option.value, "");
    }
  };
  place_logs(slurm.directives);
  for (auto* components : {&slurm.components, &slurm.borrowed})
    for (auto& component : *components) place_logs(component.directives);
  const auto of_the_site = [&](const std::optional<config::Text>& path) {
    if (!path) return std::string();
    const auto file = std::filesystem::absolute(path->span.file->name);
    return input.absolute(input.resolve(*path), file.parent_path().string());
  };
  slurm.template_file = of_the_site(input.site.template_file);
  slurm.bad_nodes = of_the_site(input.site.bad_nodes_file);
  slurm.spares = input.spares;
  for (const auto& [pool, spares] : input.spares_of) slurm.spares += spares;
  // A job with one component is an ordinary job.
  if (slurm.components.size() == 1) slurm.directives = std::move(slurm.components.front().directives);
  if (slurm.components.size() == 1) slurm.components.clear();
}

const Registered<SchedulerPart> slurm_part{
    {.name = "slurm",
     .make = make_slurm_part,
     .write = [](const Plan& plan) { return to_value(plan.slurm); },
     .read = [](const json& from, Plan& plan) { read_value(from, plan.slurm); },
     .options = sbatch_options}};

const Registered<SchedulerPart> beaker_part{
    {.name = "beaker",
     .make =
         [](const PartInput& input, Plan& plan) {
           plan.beaker =
               make_beaker(input.experiment, input.site, input.port, input.resolve, input.diagnostics);
         },
     .write = [](const Plan& plan) { return to_value(plan.beaker); },
     .read = [](const json& from, Plan& plan) { read_value(from, plan.beaker); },
     .options = nullptr}};

const Registered<SchedulerPart> flux_part{
    {.name = "flux",
     .make = make_flux,
     .write = [](const Plan& plan) { return to_value(plan.flux); },
     .read = [](const json& from, Plan& plan) { read_value(from, plan.flux); },
     .options = flux_options}};

}  // namespace

const SchedulerPart* find_part(std::string_view scheduler) {
  const auto all = Registered<SchedulerPart>::all();
  const auto found = std::ranges::find(all, scheduler, [](const auto* part) { return part->name; });
  return found == all.end() ? nullptr : *found;
}

}  // namespace nlaunch::plan
