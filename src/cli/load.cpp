#include "cli/load.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/backend.h"
#include "base/scheduler_traits.h"
#include "base/text.h"
#include "config/experiment.h"
#include "config/problems.h"
#include "config/site.h"
#include "launch/job/beaker_job.h"
#include "launch/run_dir/run_folder.h"
#include "plan/build.h"
#include "plan/environment.h"
#include "plan/json.h"
#include "scheduler/scheduler.h"
#include "sys/files.h"
#include "sys/spawn.h"

namespace nlaunch::cli {
namespace {

Result<std::vector<config::Setting>> parse_settings(const std::vector<std::string>& typed) {
  std::vector<config::Setting> settings;
  Diagnostics diagnostics;
  for (const auto& text : typed) {
    auto setting = config::parse_setting("--set", text);
    if (setting) {
      settings.push_back(std::move(*setting));
    } else {
      diagnostics.append(setting.error());
    }
  }
  if (diagnostics.has_errors()) return std::unexpected(std::move(diagnostics));
  return settings;
}

/// Chooses the site from the environment of this process and the machine.
Result<config::Site> find_site(const PlanArgs& args, const Context& context, launch::MachineSource& source,
                               const std::vector<config::Setting>& settings) {
  const auto folders = launch::site_folders(args.site_dirs, context.environment, source.install());
  if (!args.site.empty()) return config::load_site(args.site, folders, settings);
  config::MatchFacts facts{launch::this_host().host,
                           std::string(sys::env_value(context.environment, "SLURM_CLUSTER_NAME")),
                           std::string(sys::env_value(context.environment, "BEAKER_CLUSTER")),
                           {}};
  if (const auto machine = source.get()) {
    for (const auto& gpu : machine->gpus) facts.gpus.push_back(gpu.name);
  }
  return config::choose_site(folders, facts, settings);
}

/// The settings of a site's overlays have lower priority than those of the command line.
std::vector<config::Setting> with_overlays(const config::Site& site, const std::vector<std::string>& with,
                                           const std::vector<config::Setting>& settings) {
  std::vector<config::Setting> all;
  for (const auto& name : with) {
    for (const auto& overlay : site.overlays) {
      if (overlay.name.value != name) continue;
      for (const auto& [path, value] : overlay.set) all.push_back({path, value});
    }
  }
  all.insert(all.end(), settings.begin(), settings.end());
  return all;
}

plan::MachineFacts facts_without_gpus(const Context& context) {
  return {launch::this_host().arch, {}, plan::to_environment(context.environment)};
}

Result<plan::MachineFacts> facts_for(const config::Site& site, bool gpus, const Context& context,
                                     launch::MachineSource& source) {
  auto facts = facts_without_gpus(context);
  if (!traits_of(site.scheduler).this_machine || !gpus) return facts;
  const auto machine = source.get();
  if (!machine) return std::unexpected(machine.error());
  const auto given = facts.caller.find("CUDA_VISIBLE_DEVICES");
  const auto visible = launch::visible_gpus(*machine, given == facts.caller.end() ? nullptr : &given->second);
  if (!visible) return std::unexpected(visible.error());
  for (const auto& gpu : *visible) {
    const auto known = std::ranges::find(machine->gpus, gpu.uuid, &launch::Machine::Gpu::uuid);
    facts.gpus.push_back(known == machine->gpus.end() ? "MIG" : known->name);
  }
  return facts;
}

/// A frozen plan contains its inputs; options that would change them would have no effect.
void check_frozen(const PlanArgs& args) {
  if (args.plan_file.empty()) return;
  const std::pair<bool, const char*> given[] = {
      {!args.site.empty(), "--site"},         {!args.set.empty(), "--set"},
      {!args.with.empty(), "--with"},         {!args.env.empty(), "--env"},
      {!args.nodes_given.empty(), "--nodes"}, {!args.spares_given.empty(), "--spares"}};
  std::vector<std::string> names;
  for (const auto& [is_given, name] : given) {
    if (is_given) names.emplace_back(name);
  }
  if (names.empty()) return;
  wrong_usage(
      fmt::format("--plan cannot be used with {}: a frozen plan runs unchanged. Make another one: nlaunch "
                  "plan EXPERIMENT {} ... --json",
                  text::join(names, ", "), names.front()));
}

constexpr std::uint32_t kMostNodes = 100'000;
constexpr std::uint32_t kMostSpares = 1024;

/// "4", for all nodes, or "train=4", for a pool.
std::pair<std::string, std::uint32_t> count_of_nodes(const char* option, const std::string& word,
                                                     std::uint32_t most) {
  const auto equals = word.find('=');
  const auto number = text::whole_number<std::uint32_t>(
      equals == std::string::npos ? std::string_view(word) : std::string_view(word).substr(equals + 1));
  if (!number || *number > most || equals == 0)
    wrong_usage(fmt::format("{} expects N or POOL=N, with N at most {}, got '{}'", option, most, word));
  return {equals == std::string::npos ? "" : word.substr(0, equals), *number};
}

}  // namespace

void add_plan_options(Command command, PlanArgs& args, Experiment experiment) {
  constexpr std::size_t kOne = 1;
  auto source = command.section(kPlanOptions)
                    .group("plan", "What to plan", experiment == Experiment::required ? kOne : 0, kOne);
  source.option("EXPERIMENT", args.experiment, "Experiment file");
  source.option("--plan", args.plan_file, "Frozen plan (plan.json, or env:VARIABLE) instead of an experiment")
      .value_name("FILE");
  add_site_options(command, args);
}

std::string has_equals(const std::string& word) {
  return word.find('=') == std::string::npos || word.starts_with('=')
             ? fmt::format("'{}' has no = after the name", word)
             : "";
}

/// What is wrong with a word of --prints; empty if nothing is. A placeholder in the output of a command would
/// reach the program as text.
static std::string why_no_output(const std::string& word) {
  for (const auto* placeholder : {"${self.", "${role.", "${run."})
    if (word.find(placeholder) != std::string::npos)
      return fmt::format(
          "'{}' has a placeholder, which would be a plain text: give a value, and put the placeholder into "
          "the "
          "experiment",
          text::printable(word));
  return has_equals(word);
}

std::vector<std::pair<std::string, std::string>> ClusterArgs::parted_prints() const {
  std::vector<std::pair<std::string, std::string>> parted;
  for (const auto& entry : prints) {
    const auto equals = entry.find('=');
    parted.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return parted;
}

void add_cluster_options(Command app, ClusterArgs& args) {
  app.option("--prints", args.prints, "What a command whose line contains TEXT prints; may be repeated")
      .value_name("TEXT=OUTPUT")
      .one_word_each()
      .checked(why_no_output);
  app.option("--exists", args.existing,
             "A file that exists on the cluster, or a directory (with a trailing /); may be repeated")
      .value_name("PATH")
      .one_word_each()
      .checked([](const std::string& path) { return path.empty() ? "an empty path names no file" : ""; });
}

void add_site_options(Command app, PlanArgs& args) {
  auto command = app.section(kPlanOptions);
  command.option("--site", args.site, "Site profile, by name or file");
  command.option("--site-dir", args.site_dirs, "Directory with site profiles; may be repeated")
      .existing_folder()
      .one_word_each();
  command
      .option(
          "--set", args.set,
          "Override a value: KEY.PATH=VALUE of the experiment, site.KEY.PATH=VALUE of the profile; may be "
          "repeated")
      .value_name("KEY=VALUE")
      .one_word_each();
  command.option("--with", args.with, "Apply an overlay of the site or the experiment; may be repeated")
      .value_name("OVERLAY")
      .one_word_each();
  command
      .option("--env", args.env, "Set a variable for the processes, or for those of a role; may be repeated")
      .value_name("[ROLE:]NAME=VALUE")
      .one_word_each();
  command.option("--nodes", args.nodes_given, "Number of nodes: N, or POOL=N for one pool; may be repeated")
      .value_name("[POOL=]N")
      .one_word_each();
  command
      .option(
          "--spares", args.spares_given,
          "Number of spare nodes, to replace those that fail the preflight: N, or POOL=N; may be repeated")
      .value_name("[POOL=]N")
      .one_word_each();
  command.after_parsing([&args] {
    for (const auto& word : args.nodes_given) {
      const auto [pool, number] = count_of_nodes("--nodes", word, kMostNodes);
      if (pool.empty())
        args.nodes = number;
      else
        args.nodes_of[pool] = number;
    }
    for (const auto& word : args.spares_given) {
      const auto [pool, number] = count_of_nodes("--spares", word, kMostSpares);
      (pool.empty() ? args.spares : args.spares_of[pool]) = number;
    }
    check_frozen(args);
  });
}

Result<config::Site> load_site(const PlanArgs& args, const Context& context, launch::MachineSource& machine) {
  const auto settings = parse_settings(args.set);
  if (!settings) return std::unexpected(settings.error());
  return find_site(args, context, machine, *settings);
}

Result<plan::Plan> load_plan(const PlanArgs& args, const Context& context, launch::MachineSource& machine) {
  constexpr std::string_view kVariable = "env:";
  if (args.plan_file.starts_with(kVariable))
    return launch::plan_from_variable(args.plan_file.substr(kVariable.size()), context.environment);
  if (!args.plan_file.empty()) return launch::read_plan(args.plan_file);
  const auto settings = parse_settings(args.set);
  if (!settings) return std::unexpected(settings.error());
  const auto options = args.plan_options();
  const auto site = find_site(args, context, machine, *settings);
  config::Problems problems;
  const auto experiment = config::read_experiment(
      args.experiment, site ? with_overlays(*site, args.with, *settings) : *settings, args.with, problems);
  if (!site || !experiment || problems.any()) {
    if (site && experiment)
      problems.append(plan::mistakes_in_names(*experiment, *site, facts_without_gpus(context), options));
    Diagnostics mistakes;
    if (!site) mistakes.append(site.error());
    mistakes.append(experiment ? problems.take() : experiment.error());
    return std::unexpected(std::move(mistakes));
  }
  const bool gpus =
      std::ranges::any_of(experiment->roles, [](const auto& role) { return role.gpus.value > 0; });
  const auto facts = facts_for(*site, gpus, context, machine);
  if (!facts) return std::unexpected(facts.error());
  return plan::build(*experiment, *site, *facts, options);
}

namespace {

/// A plan with all GPUs of `nodes` nodes of the site; 0: of this machine only.
Result<plan::Plan> plan_of_all_gpus(config::Site site, std::uint32_t nodes, const PlanArgs& args,
                                    const Context& context, launch::MachineSource& machine) {
  const bool fleet = nodes > 0;
  if (!fleet) site.scheduler = "local";  // the checks are for this machine, whatever scheduler the site has
  const auto facts = facts_for(site, true, context, machine);
  if (!facts) return std::unexpected(facts.error());
  const auto here = static_cast<std::uint32_t>(facts->gpus.size());
  const auto gpus = !fleet ? here : site.gpus ? site.gpus->value : 0;
  if (!fleet) site.gpus.reset();
  config::Experiment experiment;
  experiment.name.value = "preflight";
  experiment.path = std::filesystem::current_path() / "preflight";
  experiment.weight_syncs.front().backend.value = gpus > 0 ? SyncBackend::nccl : SyncBackend::gloo;
  experiment.cpu_slots = gpus == 0;
  config::Role role;
  role.name.value = gpus > 0 ? "gpu" : "slot";
  role.kind = RoleKind::learner;
  role.rendezvous = Rendezvous::torch;
  role.per_node = {gpus > 0 ? gpus : 2, {}};
  role.gpus.value = 1;
  role.command = {{"true", {}}};
  experiment.roles.push_back(std::move(role));
  auto plan =
      plan::build(experiment, site, *facts, {fleet ? args.nodes.value_or(nodes) : 1, 0, args.with, args.env});
  if (plan) std::erase(plan->sources, experiment.path);
  return plan;
}

}  // namespace

Result<plan::Plan> load_machine_plan(const PlanArgs& args, const Context& context,
                                     launch::MachineSource& machine) {
  auto site = load_site(args, context, machine);
  if (!site) return std::unexpected(site.error());
  return plan_of_all_gpus(std::move(*site), 0, args, context, machine);
}

Result<plan::Plan> load_allocation_plan(const PlanArgs& args, const Context& context,
                                        launch::MachineSource& machine) {
  auto site = load_site(args, context, machine);
  if (!site) return std::unexpected(site.error());
  const auto job = scheduler::current_allocation(site->scheduler, context.environment);
  if (!job) return std::unexpected(job.error());
  return plan_of_all_gpus(std::move(*site), *job ? (*job)->nodes() : 0, args, context, machine);
}

}  // namespace nlaunch::cli
