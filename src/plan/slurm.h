#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "config/experiment.h"
#include "config/site.h"
#include "plan/plan.h"

/// What Slurm is told, from the profile and the experiment.
namespace nlaunch::plan {

/// The site's directives with the experiment's over them. A name or a value that sbatch could take for
/// something else, and an option that nlaunch sets itself, are errors at their place.
Slurm make_slurm(const config::Experiment& experiment, const config::Site& site,
                 const std::function<std::string(const config::Text&)>& resolve, Diagnostics& diagnostics);

/// The components of the job: those of pools that follow each other and have the same directives are one. And
/// the jobs of borrowed nodes, by elastic pool. `plan` knows its pools and the directives of all. A pool
/// without GPUs asks for none. `spares`: by pool.
void set_components(const config::Experiment& experiment, const config::Site& site,
                    const std::map<std::string, std::uint32_t>& spares,
                    const std::function<std::string(const config::Text&)>& resolve, Plan& plan,
                    Diagnostics& diagnostics);

/// The options of sbatch that are known, by their long names. A newer Slurm and a site's plugins have more.
std::vector<std::string> sbatch_options();
/// True for a long name that some release of sbatch takes, in full or as the beginning of one name alone.
bool sbatch_takes(std::string_view name);
/// True for one that sbatch does not take without a value.
bool sbatch_needs_value(std::string_view name);

}  // namespace nlaunch::plan
