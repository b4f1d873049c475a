#include "plan/slurm.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "plan/directives.h"

namespace nlaunch::plan {
namespace {

constexpr std::array kSbatchOwned{
    OwnedOption{"nodes", "`nodes:` of the experiment, or --nodes"},
    OwnedOption{"ntasks", "one agent runs on each node"},
    OwnedOption{"ntasks-per-node", "one agent runs on each node"},
    OwnedOption{"export", "the environment of a process is the plan's business: `env:`"},
    OwnedOption{"export-file", "the environment of a process is the plan's business: `env:`"},
    OwnedOption{"signal", "`walltime: {signal: ..., before: ...}`"},
    OwnedOption{"open-mode", "it is always `append`"},
    OwnedOption{"requeue", "`walltime: {then: requeue}`"},
    OwnedOption{"no-requeue", "`walltime: {then: stop}`"},
    OwnedOption{"chdir", "`workdir:`"},
    OwnedOption{"wrap", "the script is nlaunch's"},
    OwnedOption{"array", "one run is one job; --set makes variants"},
    OwnedOption{"parsable", "nlaunch reads the answer itself"},
    OwnedOption{"wait", "nlaunch follows by itself"},
    OwnedOption{"test-only", "`nlaunch render` shows the script"},
};

constexpr std::string_view kSbatchWithValue =
    "account acctg-freq bb bbf begin cluster cluster-constraint clusters comment constraint"
    " container core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot"
    " dependency distribution error exclude extra extra-node-info gid gpu-bind gpu-freq gpus"
    " gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint input job-name"
    " kill-on-invalid-dep licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu"
    " mincpus network nodefile nodelist ntasks-per-core ntasks-per-gpu ntasks-per-socket output"
    " partition power prefer priority profile qos reservation sockets-per-node switches thread-spec"
    " threads-per-core time time-min tmp uid wait-all-nodes wckey";

constexpr std::string_view kSbatchFlags =
    "contiguous exclusive get-user-env hold ignore-pbs nice no-kill overcommit oversubscribe quiet reboot"
    " spread-job use-min-nodes verbose";

/// Other names, and options of single releases.
constexpr std::string_view kSbatchOthers =
    "tasks-per-node share workdir jobid propagate tres-per-task tres-bind oom-kill-step segment stepmgr "
    "resv-ports"
    " container-id help usage version export-file het-group consolidate-segments spread-segments";

constexpr DirectiveSyntax kSbatch{
    .scheduler = "slurm",
    .command = "sbatch",
    .line = "an #SBATCH line",
    .examples = "partition, gpus-per-node, time",
    .owned = kSbatchOwned,
    .with_value = kSbatchWithValue,
    .without_value = kSbatchFlags,
    .forbidden = "$`",
    .why_forbidden = "would stay as it is: no shell reads #SBATCH lines",
    .hint_forbidden =
        "${env.NAME} is a variable where nlaunch was called; Slurm knows %j, %u and %x in paths"};

}  // namespace

Slurm make_slurm(const config::Experiment& experiment, const config::Site& site,
                 const std::function<std::string(const config::Text&)>& resolve, Diagnostics& diagnostics) {
  Slurm slurm;
  DirectiveMerger builder(kSbatch, resolve, diagnostics);
  for (const auto& [name, value] : site.directives) builder.add(name, value);
  for (const auto& [name, value] : experiment.slurm) builder.add(name, value);
  slurm.directives = std::move(builder).take();
  for (const auto& program : site.submit) slurm.submit.push_back(resolve(program));
  if (slurm.submit.empty()) slurm.submit.emplace_back("sbatch");
  for (const auto& option : site.srun) slurm.srun.push_back(resolve(option));
  slurm.bad_nodes_ttl = site.bad_nodes_ttl.value_or(std::chrono::days(7));
  return slurm;
}

bool sbatch_takes(std::string_view name) {
  auto names = options_of(kSbatch);
  for (const auto& owned : kSbatchOwned) names.emplace_back(owned.name);
  for (auto& other : text::split(kSbatchOthers, ' ')) names.push_back(std::move(other));
  if (std::ranges::find(names, name) != names.end()) return true;
  return std::ranges::count_if(names, [&](const std::string& one) { return one.starts_with(name); }) == 1;
}

bool sbatch_needs_value(std::string_view name) {
  return needs_value(kSbatch, name);
}

std::vector<std::string> sbatch_options() {
  return options_of(kSbatch);
}

}  // namespace nlaunch::plan
