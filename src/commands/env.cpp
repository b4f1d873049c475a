#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/exit_code.h"
#include "base/interpolation.h"
#include "base/json.h"
#include "base/secrets.h"
#include "base/text.h"
#include "cli/load.h"
#include "commands/env_doc.h"
#include "commands/env_wrapper.h"
#include "launch/bind/bind.h"
#include "launch/bind/modules.h"
#include "launch/bind/wrap.h"
#include "plan/container.h"
#include "plan/environment.h"
#include "sys/spawn.h"

namespace nlaunch::commands {

using namespace cli;
namespace {

struct EnvArgs {
  PlanArgs plan;
  EnvDocArgs doc;
  std::string role;
  std::string explain;
  bool json = false;
};

/// Everything that determines the environment of the first process of a role, as far as it is known here.
/// References that only a node can resolve stay as they are.
struct View {
  plan::Environment base;
  std::vector<plan::EnvOp> operations;
  plan::ConditionFacts facts;
  std::vector<std::string> notes;
  std::vector<std::string> preload;      ///< the parts of LD_PRELOAD, one line each
  std::vector<std::string> libraries{};  ///< their paths
  plan::BoundProcess
      process{};  ///< of a role with a wrapper: how it is started, as far as that is known here
};

/// LD_PRELOAD is built on the node; here it has the libraries as far as they are found.
void add_preload(const plan::Plan& plan, const plan::Role& role, const launch::Install& install, View& view) {
  if (role.preload.empty()) return;
  std::vector<std::string> paths;
  for (const auto& name : role.preload) {
    const auto& library = plan.libraries.at(name);
    const auto bound = launch::bind_library(name, library, install.probe);
    paths.push_back(bound ? bound->path : library.path);
    view.libraries.push_back(paths.back());
    view.preload.push_back(fmt::format("library '{}' ({}): {}{}", name, library.origin, library.path,
                                       bound ? "" : ", not on this machine"));
  }
  if (role.scope == PreloadScope::process) {
    paths.push_back(install.scope_library);
    view.preload.push_back(fmt::format(
        "{}: keeps them out of programs that the process starts (scope: process)", install.scope_library));
  }
  view.operations.push_back(
      {plan::EnvOp::Kind::set, "LD_PRELOAD", text::join(paths, ":"), plan::Layer::nlaunch, "preload", {}});
}

/// Mounts only what exists here: not the run directory and the scratch directory.
void add_wrapper(const plan::Role& role, const launch::Install& install,
                 const std::vector<plan::EnvOp>& of_modules, View& view) {
  if (role.wrapper.empty()) return;
  const auto host = plan::apply(view.base, of_modules, view.facts);
  const auto environment = plan::apply(view.base, view.operations, view.facts);
  const std::span<const plan::EnvOp> of_the_plan(
      view.operations.begin() + static_cast<std::ptrdiff_t>(of_modules.size()), view.operations.end());
  auto& process = view.process;
  process.argv = role.command;
  process.workdir = role.workdir;
  process.env.assign(environment.begin(), environment.end());
  process.given = launch::given_by(of_the_plan, view.facts, host, environment);
  for (const auto& library : view.libraries) process.preload.push_back(library);
  auto wrapper = launch::wrap(role.wrapper, process, role.venv, {}, {}, install);
  if (wrapper) process.wrapper = std::move(*wrapper);
}

/// `$${` is `${` for the process. A value with references that only a node can resolve stays as written, so
/// that they can be told apart from text that only looks like a reference.
plan::EnvOp as_the_process_has_it(plan::EnvOp op) {
  if (!references(op.value).empty()) return op;
  if (auto value = expand(
          op.value, [](std::string_view) { return Lookup(Keep()); }, Pass::last))
    op.value = std::move(*value);
  return op;
}

View view_of(const plan::Plan& plan, const plan::Role& role, const Context& context,
             launch::MachineSource& source) {
  View view;
  view.base = plan::inherit(context.environment).kept;
  auto modules = launch::load_modules(plan.modules, view.base);
  if (modules) {
    view.operations = std::move(*modules);
  } else {
    view.notes.push_back("modules are not loaded here: " + modules.error().first_message());
  }
  const auto of_modules = view.operations;
  for (const auto& secret : plan.secrets) {
    view.operations.push_back({plan::EnvOp::Kind::set,
                               secret.name,
                               std::string(kMasked),
                               plan::Layer::experiment,
                               secret.origin,
                               {}});
  }
  for (const auto& op : role.env) view.operations.push_back(as_the_process_has_it(op));
  const auto process =
      std::ranges::find_if(plan.processes, [&](const auto& p) { return &plan.role_of(p) == &role; });
  if (process != plan.processes.end()) {
    plan::BoundNode node;
    for (std::uint32_t gpu = 0; !plan.node.cpu_slots && gpu < plan.node_of(process->node).gpus; ++gpu) {
      node.gpus.push_back({std::to_string(gpu), "", ""});
    }
    const launch::RunPaths paths{"${run.id}", "${run.dir}", "${run.dir}/attempt-0"};
    node.scratch = "${node.scratch}";
    const auto own =
        launch::own_operations(plan, *process, node, paths,
                               plan.node.count == 1 ? launch::one_machine("").front().address : "${node 0}");
    view.operations.insert(view.operations.end(), own.begin(), own.end());
  }
  add_preload(plan, role, source.install(), view);
  view.facts = {plan.all_nodes(), plan.node_of(role).gpu_model, plan.node.arch, role.kind, {}};
  for (const auto& [name, library] : plan.libraries) {
    const auto bound = launch::bind_library(name, library, source.install().probe);
    if (bound && !bound->version.empty()) view.facts.library_versions[name] = bound->version;
  }
  add_wrapper(role, source.install(), of_modules, view);
  return view;
}

std::string shown(const std::string& name, const std::string& value) {
  return looks_like_secret(name) ? std::string(kMasked) : text::printable(value);
}

std::string_view verb(plan::EnvOp::Kind kind) {
  switch (kind) {
    case plan::EnvOp::Kind::set:
      return "=";
    case plan::EnvOp::Kind::unset:
      return "unset";
    case plan::EnvOp::Kind::prepend:
      return "prepend";
    case plan::EnvOp::Kind::append:
      return "append";
    case plan::EnvOp::Kind::fallback:
      return "= (if unset)";
  }
  return "";
}

int explain(const std::string& name, const View& view, const Context& context) {
  const auto paint = context.console.result_paint;
  const auto steps = plan::explain(name, view.base, view.operations, view.facts);
  if (const auto inherited = sys::env_value(context.environment, name);
      !inherited.empty() && plan::owned_by_launcher(name)) {
    context.console.result(
        fmt::format("{}={} from the calling environment is not passed on: a launcher owns {}\n", name,
                    shown(name, std::string(inherited)), plan::owned_family(name)));
  }
  if (name == "LD_PRELOAD" && !view.preload.empty()) {
    context.console.result(fmt::format("built on the node from\n  {}\n", text::join(view.preload, "\n  ")));
  }
  if (steps.empty()) {
    context.console.result(fmt::format("{} is not set\n", name));
    return 0;
  }
  report::Table table({"layer", "", "value", "set at", ""});
  const plan::Step* winner = nullptr;
  for (const auto& step : steps) {
    if (step.applied.answer == plan::Applicability::Answer::yes) winner = &step;
  }
  for (const auto& step : steps) {
    const bool applied = step.applied.answer == plan::Applicability::Answer::yes;
    const auto value = shown(name, step.op.value);
    const auto remark = &step == winner ? paint.green("← wins")
                        : applied       ? std::string()
                                        : paint.dim(fmt::format("not applied: {}", step.applied.why));
    table.add({std::string(plan::name_of(step.op.layer)), std::string(verb(step.op.kind)),
               &step == winner ? paint.bold(value) : value, step.op.origin, remark});
  }
  context.console.result(table.str(paint));
  const auto& last = winner == nullptr ? std::optional<std::string>() : winner->after;
  context.console.result(last ? fmt::format("\n{}={}\n", name, shown(name, *last))
                              : fmt::format("\n{} is not set\n", name));
  for (const auto& carrier : carriers_of(name, view.process))
    context.console.result(fmt::format("passed through the wrapper by {}\n", text::printable(carrier)));
  return 0;
}

int show_all(const View& view, const EnvArgs& args, const Context& context) {
  const auto paint = context.console.result_paint;
  const auto environment = plan::apply(view.base, view.operations, view.facts);
  if (args.json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::object();
    for (const auto& [name, value] : environment)
      out[name] = looks_like_secret(name) ? std::string(kMasked) : value;
    context.console.result(json_text(out, 2) + "\n");
    return 0;
  }
  report::Table table({"", "", ""});
  for (const auto& [name, value] : environment) {
    const auto steps = plan::explain(name, view.base, view.operations, view.facts);
    const auto winner = std::find_if(steps.rbegin(), steps.rend(), [](const plan::Step& step) {
      return step.applied.answer == plan::Applicability::Answer::yes;
    });
    if (winner->op.layer == plan::Layer::inherited && !context.verbose) continue;
    table.add({paint.bold(name), shown(name, value), paint.dim(winner->op.origin)});
  }
  context.console.result(table.str(paint));
  if (!context.verbose)
    context.console.result(paint.dim("inherited variables are omitted; show them with -v\n"));
  if (!view.process.wrapper.empty()) {
    const auto start = plan::start_of(view.process, view.process.argv);
    context.console.result(fmt::format("\nstarted as {}\n", text::printable(text::shell_join(start.argv))));
  }
  return 0;
}

int run_env(const EnvArgs& args, const Context& context) {
  launch::MachineSource machine(launch::find_install());
  const auto plan = load_plan(args.plan, context, machine);
  if (!plan) return context.console.error(plan.error());
  const auto role = plan->find_role(args.role);
  if (role == nullptr) {
    std::vector<std::string> names;
    for (const auto& known : plan->roles) names.push_back(known.name);
    context.console.say(
        fmt::format("nlaunch env: role '{}' not found; available: {}\n", args.role, text::join(names, ", ")));
    return exit_code::usage;
  }
  const auto view = view_of(*plan, *role, context, machine);
  for (const auto& note : view.notes)
    context.console.say(fmt::format("{} {}\n", context.console.paint.yellow("note:"), text::printable(note)));
  return args.explain.empty() ? show_all(view, args, context) : explain(args.explain, view, context);
}

void add_env(Command program, Context& context) {
  auto args = std::make_shared<EnvArgs>();
  auto command = program.subcommand("env", "Show the environment of a role, with the origin of every value")
                     .examples({"nlaunch env grpo.yaml --role learner",
                                "nlaunch env grpo.yaml --role learner --explain NCCL_DEBUG",
                                "nlaunch env --doc NCCL_DEBUG"});
  add_plan_options(command, args->plan, Experiment::optional);
  auto role = command.option("--role", args->role, "Role to show");
  auto explained = command.option("--explain", args->explain, "Show how each layer changed this variable")
                       .value_name("NAME");
  add_env_doc_options(command, args->doc);
  command.flag("--json", args->json, "Print JSON");
  command.when_called([=, &context] {
    if (args->doc.asked()) {
      if (role.given() || explained.given())
        excluded(args->doc.name.empty() ? "--list" : "--doc", role.given() ? "--role" : "--explain");
      context.run = [args, &context] { return env_doc(args->doc, args->json, context); };
      return;
    }
    // Checked here because --doc and --list need neither.
    if (args->plan.experiment.empty() && args->plan.plan_file.empty())
      missing("EXPERIMENT (or --doc NAME, --list for known variables)");
    if (!role.given()) missing("--role");
    context.run = [args, &context] { return run_env(*args, context); };
  });
}

const Registered<cli::CommandEntry> env_command{{"env", 30, add_env, CommandGroup::check}};

}  // namespace

}  // namespace nlaunch::commands
