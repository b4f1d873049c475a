#include "plan/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/text.h"
#include "config/pools.h"
#include "plan/directives.h"

namespace nlaunch::plan {
namespace {

constexpr std::array kSbatchOwned{
    OwnedOption{"nodes", "use `nodes:` in the experiment, or --nodes"},
    OwnedOption{"ntasks", "one agent runs on each node"},
    OwnedOption{"ntasks-per-node", "one agent runs on each node"},
    OwnedOption{"export", "the plan sets the environment of each process: use `env:`"},
    OwnedOption{"export-file", "the plan sets the environment of each process: use `env:`"},
    OwnedOption{"signal", "`walltime: {signal: ..., before: ...}`"},
    OwnedOption{"open-mode", "it is always `append`"},
    OwnedOption{"requeue", "`walltime: {then: requeue}`"},
    OwnedOption{"no-requeue", "`walltime: {then: stop}`"},
    OwnedOption{"chdir", "`workdir:`"},
    OwnedOption{"wrap", "nlaunch writes the script"},
    OwnedOption{"array", "one run is one job; use --set for variants"},
    OwnedOption{"parsable", "nlaunch reads the output itself"},
    OwnedOption{"wait", "nlaunch follows the job itself"},
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

/// Other names, and options of individual releases.
constexpr std::string_view kSbatchOthers =
    "tasks-per-node share workdir jobid propagate tres-per-task tres-bind oom-kill-step segment stepmgr "
    "resv-ports"
    " container-id help usage version export-file het-group consolidate-segments spread-segments";

/// sbatch refuses a time in any other form, without saying which one it expects.
DirectiveSyntax::Wrong wrong_value(std::string_view option, const std::string& value) {
  const bool is_time = option == "time" || option == "time-min";
  if (!is_time || value == "true" || value == "false" || parse_time_limit(value)) return {};
  const auto duration = parse_duration(value);
  return {fmt::format("'{}' is not a time limit of Slurm", value),
          duration
              ? fmt::format("write \"{}\"",
                            format_time_limit(std::chrono::duration_cast<std::chrono::seconds>(*duration)))
              : "write HOURS:MINUTES:SECONDS in quotes, for example \"24:00:00\", or DAYS-HOURS"};
}

constexpr DirectiveSyntax kSbatch{
    .scheduler = "slurm",
    .command = "sbatch",
    .line = "an #SBATCH line",
    .examples = "partition, gpus-per-node, time",
    .owned = kSbatchOwned,
    .with_value = kSbatchWithValue,
    .without_value = kSbatchFlags,
    .wrong = wrong_value,
    .forbidden = "$`",
    .why_forbidden = "would not be expanded: no shell reads #SBATCH lines",
    .hint_forbidden =
        "${env.NAME} is a variable of nlaunch's environment; Slurm expands %j, %u and %x in paths"};

/// "gpu:4", "gpu:a100:4", "4", "a100:4" with another number.
std::string with_number(const std::string& value, std::uint32_t gpus) {
  const auto colon = value.rfind(':');
  return fmt::format("{}{}", colon == std::string::npos ? "" : value.substr(0, colon + 1), gpus);
}

/// `gres: gpu:4,nvme:1` for nodes with that number of GPUs; empty if nothing is left.
std::string gres_for(const std::string& value, std::uint32_t gpus) {
  std::vector<std::string> parts;
  for (const auto& part : text::split(value, ',')) {
    if (part != "gpu" && !part.starts_with("gpu:"))
      parts.push_back(part);
    else if (gpus > 0)
      parts.push_back(part == "gpu" ? fmt::format("gpu:{}", gpus) : with_number(part, gpus));
  }
  return text::join(parts, ",");
}

/// The directives of all nodes, adapted to nodes with another number of GPUs.
std::vector<Directive> for_gpus(const std::vector<Directive>& directives, std::uint32_t gpus) {
  constexpr std::array<std::string_view, 9> kOfGpus{"gpus",          "gpus-per-node", "gpus-per-socket",
                                                    "gpus-per-task", "gpu-bind",      "gpu-freq",
                                                    "cpus-per-gpu",  "mem-per-gpu",   "ntasks-per-gpu"};
  std::vector<Directive> out;
  for (auto option : directives) {
    const bool of_gpus = std::ranges::find(kOfGpus, option.name) != kOfGpus.end();
    if (of_gpus && gpus == 0) continue;
    if (option.name == "gpus-per-node") option.value = with_number(option.value, gpus);
    if (option.name == "gres") option.value = gres_for(option.value, gpus);
    if (option.name != "gres" || !option.value.empty()) out.push_back(std::move(option));
  }
  return out;
}

bool are_alike(const std::vector<Directive>& a, const std::vector<Directive>& b) {
  return std::ranges::equal(a, b, [](const Directive& one, const Directive& two) {
    return one.name == two.name && one.value == two.value;
  });
}

}  // namespace

void set_components(const config::Experiment& experiment, const config::Site& site,
                    const std::map<std::string, std::uint32_t>& spares,
                    const std::function<std::string(const config::Text&)>& resolve, Plan& plan,
                    Diagnostics& diagnostics) {
  auto& components = plan.slurm.components;
  for (std::size_t i = 0; i < plan.pools.size(); ++i) {
    const auto& pool = plan.pools[i];
    const auto* at_site = config::find_pool(site.pools, pool.name);
    const bool own_gpus = experiment.pools[i].gpus || (at_site != nullptr && at_site->gpus);
    DirectiveMerger merger(
        kSbatch, resolve, diagnostics,
        own_gpus ? for_gpus(plan.slurm.directives, pool.node.gpus) : plan.slurm.directives);
    if (at_site != nullptr) {
      for (const auto& [name, value] : at_site->directives) merger.add(name, value);
    }
    for (const auto& [name, value] : experiment.pools[i].directives) merger.add(name, value);
    auto directives = std::move(merger).take();
    if (pool.elastic) {
      plan.slurm.borrowed.push_back({{pool.name}, 1, 0, std::move(directives)});
      continue;
    }
    if (components.empty() || !are_alike(components.back().directives, directives))
      components.push_back({{}, 0, 0, std::move(directives)});
    auto& component = components.back();
    component.pools.push_back(pool.name);
    component.nodes += pool.node.count;
    if (const auto more = spares.find(pool.name); more != spares.end()) component.spares += more->second;
  }
}

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

std::string sbatch_option(std::string_view name) {
  auto names = options_of(kSbatch);
  for (const auto& owned : kSbatchOwned) names.emplace_back(owned.name);
  for (auto& other : text::split(kSbatchOthers, ' ')) names.push_back(std::move(other));
  std::erase_if(names, [&](const std::string& one) { return !one.starts_with(name); });
  return names.size() == 1 && !name.empty() ? names[0] : std::string(name);
}

bool sbatch_takes(std::string_view name) {
  auto names = options_of(kSbatch);
  for (const auto& owned : kSbatchOwned) names.emplace_back(owned.name);
  for (auto& other : text::split(kSbatchOthers, ' ')) names.push_back(std::move(other));
  return std::ranges::find(names, name) != names.end() || sbatch_option(name) != name;
}

bool sbatch_needs_value(std::string_view name) {
  return needs_value(kSbatch, name);
}

std::vector<std::string> sbatch_options() {
  return options_of(kSbatch);
}

}  // namespace nlaunch::plan
