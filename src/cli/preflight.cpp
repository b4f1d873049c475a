#include "cli/preflight.h"

#include "base/exit_code.h"
#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/fleet_venue.h"
#include "cli/interrupt.h"
#include "cli/load.h"
#include "cli/local_place.h"
#include "cli/node_check.h"
#include "cli/preflight_output.h"
#include "cli/progress_line.h"
#include "launch/allocation.h"
#include "launch/run_folder.h"
#include "plan/json.h"
#include "preflight/report_json.h"
#include "report/preflight_text.h"
#include "supervise/stop_signal.h"
#include "sys/files.h"

namespace nlaunch::cli {
namespace {

struct Args {
  PlanArgs plan;
  std::string level;
  std::string from;  ///< a saved report
  OutputArgs output;
  bool ladder = false;
  std::string runs_dir = "runs";
  NodeCheck node;
};

/// Checks what there is, with results in a run directory.
int check(const Args& args, const plan::Plan& plan, const Context& context, Venue& venue) {
  const auto output = Output::open(args.output);
  if (!output) return complain(context, output.error());
  auto paths = launch::make_run_folder(args.runs_dir, plan.name);
  if (!paths) return complain(context, paths.error());
  auto saved = launch::make_attempt_folder(*paths, 0);
  if (saved) {
    saved = sys::write_file_atomically(paths->folder / "plan.json", json_text(plan::to_json(plan), 2) + "\n");
  }
  if (!saved) return complain(context, saved.error());
  auto level = plan.preflight.level;
  if (!args.level.empty()) level = level_of(args.level);
  const auto guardian = supervise::enter_guarded([](const supervise::SupervisorLost& lost) {
    say(fmt::format("nlaunch preflight: its supervisor {}\n", lost.status.str()));
  });
  const Interrupts interrupts;
  const auto place = venue.next(guardian);
  const auto refused = place->bind(*paths);
  if (const int signal = Interrupts::received(); signal != 0) {
    say(fmt::format("stopped by {} before anything was checked\n", supervise::name_of_stop(signal)));
    return supervise::exit_code_of_stop(signal);
  }
  if (refused) return refused->exit_code;
  for (const auto& note : place->bound().notes) say(fmt::format("note: {}\n", text::printable(note)));
  auto report = check_place(*place, {.level = level, .ladder = args.ladder}, context);
  output->judge(report);
  const auto json = json_text(preflight::to_json(report), 2) + "\n";
  if (const auto wrote = sys::write_file_atomically(paths->attempt / "preflight.json", json); !wrote)
    say(render(wrote.error()));
  const int code = output->finish(report, context);
  venue.record(preflight::suspects(report, plan.node.count));
  if (const int signal = Interrupts::received(); signal != 0) return supervise::exit_code_of_stop(signal);
  return code;
}

int check_here(const Args& args, const plan::Plan& plan, const Context& context, MachineSource& machine) {
  LocalVenue venue(plan, true, context, machine);  // GPUs that another run holds can be looked at
  return check(args, plan, context, venue);
}

int check_nodes(const Args& args, const plan::Plan& plan, const launch::Allocation& allocation,
                const Context& context) {
  if (const auto misfit = launch::misfit(plan, allocation); !misfit.empty()) {
    say(fmt::format("nlaunch preflight: {}\n", misfit));
    return exit_code::bad_input;
  }
  FleetVenue venue(plan, allocation, true, context);
  return check(args, plan, context, venue);
}

/// The groups of an experiment's plan, where its job would run.
int check_experiment(const Args& args, const std::optional<launch::Allocation>& allocation,
                     const Context& context, MachineSource& machine) {
  const auto plan = load_plan(args.plan, context, machine);
  if (!plan) return complain(context, plan.error());
  if (plan->scheduler != Scheduler::slurm) return check_here(args, *plan, context, machine);
  if (allocation) return check_nodes(args, *plan, *allocation, context);
  say(
      fmt::format("nlaunch preflight: site '{0}' is reached through Slurm, and this is no allocation: salloc "
                  "-N {1} nlaunch "
                  "preflight ... checks nodes; nlaunch run checks those of its job before it starts anything "
                  "there; nlaunch "
                  "preflight --site {0} (without the experiment) checks this machine\n",
                  plan->site, plan->node.count));
  return exit_code::usage;
}

/// A report that was saved, once more.
int show(const Args& args, const Context& context) {
  if (!args.plan.experiment.empty() || !args.plan.plan_file.empty()) {
    say("nlaunch preflight: --from shows what was found, and checks nothing: leave the experiment out\n");
    return exit_code::usage;
  }
  const auto output = Output::open(args.output);
  if (!output) return complain(context, output.error());
  auto report = read_report(args.from);
  if (!report) return complain(context, report.error());
  output->judge(*report);
  return output->finish(*report, context);
}

int run(const Args& args, const Context& context) {
  if (!args.from.empty()) return show(args, context);
  if (args.node.wanted) return check_node({args.node, args.plan, args.level, args.output}, context);
  MachineSource machine(launch::find_install());
  const auto allocation = launch::find_allocation(context.environment);
  if (!allocation) return complain(context, allocation.error());
  if (!args.plan.experiment.empty() || !args.plan.plan_file.empty()) {
    return check_experiment(args, *allocation, context, machine);
  }
  const auto nodes = *allocation ? static_cast<std::uint32_t>((*allocation)->nodes.size()) : 0;
  const auto plan = load_machine_plan(args.plan, context, machine, nodes);
  if (!plan) return complain(context, plan.error());
  if (plan->scheduler == Scheduler::slurm) return check_nodes(args, *plan, **allocation, context);
  return check_here(args, *plan, context, machine);
}

}  // namespace

preflight::Report check_place(Place& place, preflight::Options options, const Context& context) {
  ProgressLine line(context);
  options.progress = line.teller();
  return place.check(options);
}

Result<preflight::Report> read_report(const std::string& path) {
  constexpr std::uint64_t kMost = 256U << 20U;
  const auto content = sys::read_regular_file(path, kMost);
  if (!content) return std::unexpected(content.error());
  try {
    const auto report = nlohmann::json::parse(*content);
    if (const auto known = check_format(report, formats::kPreflight, path); !known)
      return std::unexpected(known.error());
    return preflight::report_from_json(report);
  } catch (const std::exception& error) {
    Diagnostics out;
    out.error("preflight.report", {}, fmt::format("'{}' is no report of a preflight: {}", path, error.what()))
        .hint = "a run directory has one: attempt-0/preflight.json; nlaunch preflight --json prints one";
    return std::unexpected(std::move(out));
  }
}

PreflightLevel level_of(std::string_view typed) {
  for (const auto level : {PreflightLevel::quick, PreflightLevel::deep}) {
    if (typed == name_of(level)) return level;
  }
  return PreflightLevel::standard;
}

void print_report(const preflight::Report& report, bool json, const Context& context) {
  if (json) return print(json_text(preflight::to_json(report), 2) + "\n");
  if (!context.quiet) print(report::preflight_table(report, context.out()) + "\n");
  print(report::preflight_text(report, context.out()));
}

void add_preflight(CLI::App& app, Context& context) {
  auto args = std::make_shared<Args>();
  auto* command = app.add_subcommand(
      "preflight", "The checks alone; without an experiment, of all GPUs of the allocation or the machine");
  add_plan_options(*command, args->plan, Experiment::optional);
  command->add_option("--level", args->level, "quick (no CUDA context), standard or deep")
      ->check(CLI::IsMember({"quick", "standard", "deep"}));
  command->add_flag("--ladder", args->ladder,
                    "One GPU, one node, two nodes, all: up to the first that fails, and what is new there");
  command->add_option("--runs-dir", args->runs_dir, "Where the results are kept (runs)");
  add_output_options(*command, args->output);
  add_node_options(*command, args->node);
  command
      ->add_option("--from", args->from, "Check nothing: show a saved preflight.json, in all of these forms")
      ->type_name("FILE")
      ->excludes("--node")
      ->excludes("--level")
      ->excludes("--ladder");
  command->callback([args, &context] { context.run = [args, &context] { return run(*args, context); }; });
}

}  // namespace nlaunch::cli
