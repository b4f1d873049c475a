#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/backend.h"
#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "bench/results.h"
#include "cli/arms.h"
#include "cli/load.h"
#include "commands/bench_drill.h"
#include "launch/run_dir/run_folder.h"
#include "plan/json.h"
#include "report/bench_html.h"
#include "report/bench_text.h"
#include "report/progress_line.h"
#include "session/interrupts.h"
#include "session/local_target.h"
#include "supervise/stop_signal.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

struct BenchArgs {
  PlanArgs plan;
  std::vector<std::string> vary;
  std::vector<std::string> only;
  std::uint32_t repeats = 5;
  std::optional<std::uint64_t> seed;
  bool json = false;
  std::string csv, html;
  std::string runs_dir = "runs";
  std::string drill;
};

/// An arm that is bound.
struct Bound {
  const plan::Plan& plan;
  std::unique_ptr<RunTarget> target;
  std::unique_ptr<AttemptHost> place;
  std::vector<preflight::Rank> ranks;
  bench::ArmResult result;
};

std::unique_ptr<RunTarget> make_venue(const plan::Plan& plan, const scheduler::CurrentJob* job,
                                      const Context& context, launch::MachineSource& machine) {
  if (job != nullptr) return job->target(plan, true, context);
  return std::make_unique<LocalTarget>(plan, true, context, machine);
}

/// Binds an arm in a directory of its own. Problems are recorded in its result.
void bind_arm(Bound& arm, const std::filesystem::path& folder, const std::string& id,
              const supervise::GuardianLink& guardian) {
  launch::RunPaths paths{id, folder, {}};
  auto made = sys::make_private_folder(folder);
  if (made) made = launch::make_attempt_folder(paths, 0);
  if (made) made = sys::write_file_atomically(folder / "plan.json", plan::to_text(arm.plan, 2) + "\n");
  if (!made) {
    arm.result.refused = made.error().first_message();
    return;
  }
  arm.place = arm.target->next(guardian);
  if (const auto refused = arm.place->bind(paths)) {
    arm.result.refused = refused->sentence;
    return;
  }
  auto ranks = arm.place->ranks();
  if (!ranks) {
    arm.result.refused = ranks.error().first_message();
    return;
  }
  arm.ranks = std::move(*ranks);
  arm.result.environments = bench::read_environments(paths.attempt);
}

/// Measures one repeat. What NCCL chose is read in the first repeat of an arm.
bench::Repeat measure(Bound& arm, const BenchArgs& args) {
  auto trials = bench::make_trials(arm.plan, arm.ranks, args.only);
  for (auto& trial : trials)
    trial.transport = arm.result.repeats.empty() && traits_of(trial.backend).logs_transport;
  const preflight::Deadlines deadlines{arm.plan.bench.timeout, arm.plan.bench.timeout};
  return bench::read_repeat(trials, arm.place->measure(trials, deadlines));
}

void measure_all(std::vector<Bound>& arms, bench::Bench& bench, const BenchArgs& args,
                 const Context& context) {
  report::ProgressLine line(context.console);
  const auto tell = line.teller();
  for (const auto& turn : bench::make_schedule(arms.size(), args.repeats, bench.seed)) {
    auto& arm = arms[turn.arm];
    if (!arm.result.refused.empty()) continue;
    if (Interrupts::received() != 0) return;
    if (tell) tell(fmt::format("repeat {} of {}: {}", turn.repeat + 1, args.repeats, arm.result.arm.name));
    auto repeat = measure(arm, args);
    bench.broken_off = arm.place->lost();
    if (!bench.broken_off.empty()) return;  // not a failure of the arm
    bench.order.push_back(turn);
    arm.result.repeats.push_back(std::move(repeat));
  }
}

/// False: it could not be written; the error is printed.
bool wrote(const Result<void>& result, const Context& context) {
  if (!result) context.console.error(result.error());
  return result.has_value();
}

int finish(const bench::Bench& bench, const BenchArgs& args, const std::filesystem::path& folder,
           const Context& context) {
  const auto text = json_text(bench::to_json(bench), 2) + "\n";
  bool written = wrote(sys::write_file_atomically(folder / "bench.json", text), context);
  if (!args.csv.empty())
    written = wrote(sys::write_named_file(args.csv, bench::csv(bench)), context) && written;
  if (!args.html.empty())
    written = wrote(sys::write_named_file(args.html, report::bench_html(bench)), context) && written;
  if (args.json) {
    context.console.result(text);
  } else {
    context.console.result(report::bench_answer(bench, context.console.result_paint));
    if (!context.console.quiet)
      context.console.result("\n" + report::bench_table(bench, context.console.result_paint) + "\n");
    context.console.result(report::bench_text(bench, context.console.result_paint));
    context.console.result(fmt::format("results: {}\n", (folder / "bench.json").string()));
  }
  const int code = bench::code_of(bench);
  return written || code != exit_code::ok ? code : exit_code::internal;
}

int compare(const BenchArgs& args, const std::vector<ArmPlan>& plans, const scheduler::CurrentJob* job,
            const Context& context, launch::MachineSource& machine) {
  const auto paths = launch::make_run_folder(args.runs_dir, plans.front().plan.name);
  if (!paths) return context.console.error(paths.error());
  const auto guardian = supervise::enter_guarded([&context](const supervise::SupervisorLost& lost) {
    context.console.say(fmt::format("nlaunch bench: the supervisor {}\n", lost.status.str()));
  });
  const Interrupts interrupts;
  std::vector<Bound> arms;
  for (const auto& [arm, plan] : plans) {
    arms.push_back({plan,
                    make_venue(plan, job, context, machine),
                    nullptr,
                    {},
                    {arm, plan.bench.workloads, {}, "", {}}});
    bind_arm(arms.back(), paths->folder / fmt::format("arm-{}", arms.size() - 1), paths->id, guardian);
  }
  bench::Bench bench{
      plans.front().plan.name, plans.front().plan.site, args.seed.value_or(0), args.repeats, {}, {}, ""};
  if (!args.seed) bench.seed = static_cast<std::uint64_t>(::getpid());
  measure_all(arms, bench, args, context);
  for (auto& arm : arms) bench.arms.push_back(std::move(arm.result));
  const int code = finish(bench, args, paths->folder, context);
  if (const int signal = Interrupts::received(); signal != 0) return supervise::exit_code_of_stop(signal);
  return code;
}

/// Checks that the plan has workloads, and that --only names existing ones.
Result<void> check_workloads(const plan::Plan& plan, const std::vector<std::string>& only) {
  std::vector<std::string> names;
  for (const auto& workload : plan.bench.workloads) names.push_back(workload.work.name);
  if (names.empty()) {
    return std::unexpected(
        Diagnostics({Severity::error,
                     "bench.no-workloads",
                     fmt::format("'{}' has no workloads to measure", plan.experiment),
                     {},
                     {},
                     "add `bench: {workloads: ...}` (docs/bench.md), or use one of configs/bench"}));
  }
  for (const auto& one : only) {
    if (std::ranges::find(names, one) != names.end()) continue;
    const auto nearest = text::nearest(one, names);
    return std::unexpected(Diagnostics({Severity::error,
                                        "bench.only",
                                        fmt::format("--only: workload '{}' not found", one),
                                        {},
                                        {},
                                        nearest ? fmt::format("did you mean '{}'?", *nearest)
                                                : fmt::format("available: {}", text::join(names, ", "))}));
  }
  return {};
}

int run_bench(const BenchArgs& args, const Context& context) {
  if (!args.drill.empty()) return run_drills({args.drill, args.json, args.runs_dir}, args.plan, context);
  if (args.plan.experiment.empty() && args.plan.plan_file.empty()) {
    context.console.say("nlaunch bench: missing EXPERIMENT or --plan FILE (only --drill needs neither)\n");
    return exit_code::usage;
  }
  launch::MachineSource machine(launch::find_install());
  const auto plans = load_arms(args.plan, args.vary, context, machine);
  if (!plans) return context.console.error(plans.error());
  const auto job = scheduler::current_allocation(plans->front().plan.scheduler, context.environment);
  if (!job) return context.console.error(job.error());
  for (const auto& [arm, plan] : *plans) {
    if (const auto fit = check_workloads(plan, args.only); !fit) return context.console.error(fit.error());
  }
  if (const auto why = misfit(*plans, job->get(), "bench"); !why.empty()) {
    context.console.say(fmt::format("nlaunch bench: {}\n", why));
    return exit_code::usage;
  }
  return compare(args, *plans, job->get(), context, machine);
}

void add_bench(Command program, Context& context) {
  auto args = std::make_shared<BenchArgs>();
  auto command = program.subcommand("bench", "Benchmark the groups of a plan, and compare environments")
                     .examples({"nlaunch bench", "nlaunch bench grpo.yaml --vary NCCL_ALGO=Ring,Tree",
                                "nlaunch bench grpo.yaml --drill all"});
  add_plan_options(command, args->plan, Experiment::optional);
  add_drill_option(command, args->drill);
  add_vary_option(command, args->vary);
  command
      .option("--repeats", args->repeats,
              "Repeats of each arm [default: 5]; fewer than 5 give no confidence interval")
      .in_range(1, 1000);
  command.option("--seed", args->seed, "Seed for the order of the repeats and for the intervals");
  command.option("--only", args->only, "Run only these workloads (comma-separated); may be repeated")
      .value_name("WORKLOAD,...")
      .split_at(',')
      .one_word_each();
  command.option("--runs-dir", args->runs_dir, "Directory for the results [default: runs]");
  command.flag("--json", args->json, "Print JSON");
  command.option("--csv", args->csv, "Write every repeat as a row of this CSV file").value_name("FILE");
  command.option("--html", args->html, "Write an HTML page with curves, tables and environments")
      .value_name("FILE");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_bench(*args, context); }; });
}

const Registered<cli::CommandEntry> bench_command{
    {"bench", 35, add_bench, CommandGroup::check, exit_code::kBenchMeanings}};

}  // namespace

}  // namespace nlaunch::commands
