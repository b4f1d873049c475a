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

/// The Slurm settings, from the profile and the experiment.
namespace nlaunch::plan {

/// The site's directives overridden by the experiment's. Errors at their location: a name or a value that
/// sbatch could misinterpret, and an option that nlaunch sets itself.
Slurm make_slurm(const config::Experiment& experiment, const config::Site& site,
                 const std::function<std::string(const config::Text&)>& resolve, Diagnostics& diagnostics);

/// The components of the job: consecutive pools with the same directives form one component. Also the jobs of
/// borrowed nodes, by elastic pool. `plan` must know its pools and the common directives. A pool without GPUs
/// requests none. `spares`: by pool.
void set_components(const config::Experiment& experiment, const config::Site& site,
                    const std::map<std::string, std::uint32_t>& spares,
                    const std::function<std::string(const config::Text&)>& resolve, Plan& plan,
                    Diagnostics& diagnostics);

/// The known options of sbatch, by long name. A newer Slurm and a site's plugins can have more.
std::vector<std::string> sbatch_options();
/// True for a long name that some release of sbatch accepts, in full or as an unambiguous prefix.
bool sbatch_takes(std::string_view name);
/// "output" for "out": the long name of which it is the only prefix, as getopt_long(3) finds it; else the
/// name itself.
std::string sbatch_option(std::string_view name);
/// True for an option that requires a value.
bool sbatch_needs_value(std::string_view name);

}  // namespace nlaunch::plan
