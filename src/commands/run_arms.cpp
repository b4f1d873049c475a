#include "commands/run_arms.h"

#include <unistd.h>

#include <algorithm>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "bench/runs.h"
#include "cli/arms.h"
#include "launch/run_dir/run_folder.h"
#include "plan/json.h"
#include "report/progress_line.h"
#include "report/runs_text.h"
#include "session/child_run.h"
#include "session/lint_gate.h"
#include "supervise/stop_signal.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kUsualRepeats = 5;

/// Reads what one run left in its directory.
bench::RunRecord read_run(const fs::path& folder, sys::WaitStatus status, const fs::path& log,
                          const std::vector<plan::Metric>& metrics) {
  constexpr std::uint64_t kLargest = 256U << 20U;
  const auto text = sys::read_regular_file(folder / "summary.json", kLargest, sys::Links::refused);
  auto record = bench::read_summary(text ? parse_json(*text) : nlohmann::json());
  if (!text) {
    record.exit_code = status.ok() ? exit_code::internal : status.shell_code();
    record.sentence =
        fmt::format("nlaunch {} and left no summary; its output: {}", status.str(), log.string());
    record.cause = fmt::format("nlaunch {} and left no summary", status.str());
  }
  record.folder = folder.string();
  record.metrics = bench::summarized(bench::read_printed(folder, metrics));
  return record;
}

/// A run that is one of many stops when it fails or reaches its walltime: that is what is measured.
plan::Plan one_of_many(plan::Plan plan) {
  plan.restart.on_failure = false;
  if (plan.walltime) plan.walltime->then = Walltime::Then::stop;
  return plan;
}

class Comparer {
 public:
  Comparer(const RunArms& args, const std::vector<ArmPlan>& plans, const Context& context)
      : args_(args), context_(context), id_(launch::new_run_id()) {
    for (const auto& [arm, plan] : plans) {
      plans_.push_back(one_of_many(plan));
      found_.arms.push_back({arm, {}, {}});
    }
    found_.name = plans_.front().name;
    found_.site = plans_.front().site;
    found_.seed = args.seed.value_or(static_cast<std::uint64_t>(::getpid()));
    found_.repeats = args.repeats.value_or(kUsualRepeats);
    file_ = fs::absolute(fs::path(args.runs_dir) / found_.name / fmt::format("ab-{}.json", id_));
  }

  int run(std::vector<plan::Metric> metrics) {
    found_.metrics = std::move(metrics);
    const auto turns = bench::make_schedule(plans_.size(), found_.repeats, found_.seed);
    for (const auto& turn : turns) {
      auto record = take(turn, turns.size());
      if (!record) {
        end(record.error().first_message(), exit_code::internal);
      } else {
        keep(turn, std::move(*record));
      }
      save();
      if (!found_.stopped.empty()) break;
    }
    return finish(turns.size());
  }

 private:
  /// One run, from creating its directory to reading its results.
  Result<bench::RunRecord> take(const bench::Turn& turn, std::size_t turns) {
    const auto number = found_.order.size() + 1;
    const auto& arm = found_.arms[turn.arm].arm.name;
    const auto id = fmt::format("{}-{}", id_, number);
    const auto paths = launch::make_run_folder(args_.runs_dir, found_.name, id);
    if (!paths) return std::unexpected(paths.error());
    const auto file = paths->folder / "plan.json";
    const auto saved = sys::write_file_atomically(file, plan::to_text(plans_[turn.arm], 2) + "\n");
    if (!saved) return std::unexpected(saved.error());
    std::vector<std::string> argv{
        launch::find_install().program, "run", "--plan", file, "--run-dir", paths->folder, "--here"};
    argv.insert(argv.end(), args_.arguments.begin(), args_.arguments.end());
    // A preflight warms up the GPUs: the first turn of an arm must not be the only one with all of it.
    if (std::ranges::find(args_.arguments, "--fresh") == args_.arguments.end()) argv.emplace_back("--fresh");
    const auto log = paths->folder / "nlaunch.log";
    Result<sys::WaitStatus> status;
    {
      report::ProgressLine line(context_.console);
      if (const auto tell = line.teller()) tell(fmt::format("run {} of {}: {}", number, turns, arm));
      status = run_child(argv, context_.environment, log, signals_);
    }
    if (!status) return std::unexpected(status.error());
    auto record = read_run(paths->folder, *status, log, found_.metrics);
    record.repeat = turn.repeat;
    if (!context_.console.quiet) {
      context_.console.say(fmt::format("run {} of {} ({}), {}: {}\n", number, turns, paths->id,
                                       text::printable(arm), text::printable(record.sentence)));
    }
    return record;
  }

  void end(std::string why, int code) {
    found_.stopped = std::move(why);
    code_ = code;
  }

  void keep(const bench::Turn& turn, bench::RunRecord record) {
    while (signals_.next(Duration::zero()) != 0) {
    }
    if (record.was_stopped()) return end(record.sentence, record.exit_code);
    auto& arm = found_.arms[turn.arm];
    if (arm.environments.empty())
      arm.environments = bench::without_folder(
          bench::read_environments(fs::path(record.folder) / "attempt-0"), record.folder);
    found_.order.push_back(turn);
    arm.runs.push_back(std::move(record));
    if (const int signal = signals_.ended_by(); signal != 0)
      end(fmt::format("stopped by {}", supervise::name_of_stop(signal)),
          supervise::exit_code_of_stop(signal));
  }

  /// No interruption of any kind loses what has been measured.
  void save() {
    auto saved = sys::write_file_atomically(file_, text());
    if (saved) saved = launch::point_link(file_.parent_path() / "ab.json", file_.filename());
    if (saved || std::exchange(trouble_said_, true)) return;
    context_.console.error(saved.error());
  }

  [[nodiscard]] std::string text() const { return json_text(bench::to_json(found_), 2) + "\n"; }

  int finish(std::size_t turns) const {
    if (!found_.stopped.empty()) {
      context_.console.say(fmt::format("{} after {} of {} runs: {}\n",
                                       context_.console.paint.yellow("the comparison stopped"),
                                       found_.order.size(), turns, found_.stopped));
    }
    if (args_.json) {
      context_.console.result(text());
    } else {
      context_.console.result(report::runs_table(found_, context_.console.result_paint));
      context_.console.result(report::runs_text(found_, context_.console.result_paint));
      context_.console.result(fmt::format("results: {}\n", file_.string()));
    }
    if (trouble_said_) return exit_code::internal;
    return found_.stopped.empty() ? bench::code_of(found_) : code_;
  }

  const RunArms& args_;
  const Context& context_;
  std::string id_;
  std::vector<plan::Plan> plans_;
  bench::RunComparison found_;
  fs::path file_;
  HeldSignals signals_;
  int code_ = exit_code::ok;
  bool trouble_said_ = false;
};

/// Why these runs cannot be started here; empty: they can.
std::string out_of_place(const std::vector<ArmPlan>& plans, const scheduler::CurrentJob* job, bool here) {
  const auto& plan = plans.front().plan;
  const auto& traits = traits_of(plan.scheduler);
  if (job == nullptr && (here || traits.this_machine)) return "";
  if (job == nullptr && traits.allocate.empty())
    return fmt::format("{}: start a job with this command", scheduler::describe(plan));
  if (job != nullptr && !job->no_comparison().empty()) return job->no_comparison();
  return misfit(plans, job, "run");
}

bool lint_stops_any(const std::vector<ArmPlan>& plans, const launch::MachineSource& machine,
                    const RunArms& args, Context context) {
  bool stops = false;
  for (const auto& [arm, plan] : plans) {
    const auto who = fmt::format("nlaunch run ({})", arm.name);
    stops = lint_stops(plan, machine.install(), args.no_lint, who, context) || stops;
    context.console.quiet = true;  // print warnings once
  }
  return stops;
}

}  // namespace

void add_arms_options(Command command, RunArms& args) {
  add_vary_option(command, args.vary);
  command
      .option("--repeat", args.repeats,
              "Runs of each arm of --vary [default: 5]; fewer than 5 give no confidence interval")
      .in_range(1, 1000);
  command.option("--seed", args.seed, "Seed for the order of the arms and for the intervals");
  command.flag("--json", args.json, "Print the results of --vary and --repeat as JSON");
}

int run_arms(RunArms args, const PlanArgs& wanted, const Context& context) {
  launch::MachineSource machine(launch::find_install());
  const auto plans = load_arms(wanted, args.vary, context, machine);
  if (!plans) return context.console.error(plans.error());
  const auto& plan = plans->front().plan;
  const auto job = scheduler::current_job(plan.scheduler, context.environment);
  if (!job) return context.console.error(job.error());
  if (const auto why = out_of_place(*plans, job->get(), args.here); !why.empty()) {
    context.console.say(fmt::format("nlaunch run: {}\n", why));
    return exit_code::usage;
  }
  if (lint_stops_any(*plans, machine, args, context)) return exit_code::bad_input;
  const auto folder = *job ? (*job)->runs_dir(plan) : "";
  if (!folder.empty()) args.runs_dir = folder;  // other directories are lost
  return Comparer(args, *plans, context).run(plan.watch ? plan.watch->metrics : std::vector<plan::Metric>());
}

}  // namespace nlaunch::commands
