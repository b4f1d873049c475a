#include "commands/preflight_node.h"

#include <algorithm>
#include <chrono>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "commands/preflight_inner.h"
#include "launch/job/slurm_node.h"
#include "preflight/report/report_json.h"
#include "report/preflight_text.h"
#include "session/check.h"
#include "sys/command.h"
#include "sys/sweep.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

using namespace std::chrono_literals;

/// Slurm kills a HealthCheckProgram after a minute.
constexpr Duration kShortest = 5s;
constexpr Duration kForTheKill = 1s;  // of the checking process
constexpr Duration kForTheRest = 1s;  // that it started

std::string check_timeout(const std::string& text) {
  const auto parsed = parse_duration(text);
  if (!parsed) return parsed.error();
  return *parsed < kShortest ? fmt::format("must be at least {}", format_duration(kShortest)) : "";
}

/// How the timeout is divided.
struct Times {
  explicit Times(const NodeCheck& check) {
    const auto whole = parse_duration(check.timeout).value_or(kShortest);
    drain = check.drain ? std::min<Duration>(10s, whole / 4) : 0s;
    kill = whole - drain - kForTheKill - kForTheRest;
    stop = kill - std::min<Duration>(5s, kill / 4);
  }
  Duration stop{};   ///< the checks stop and report what they have
  Duration kill{};   ///< they are killed
  Duration drain{};  ///< for talking to Slurm
};

/// The script of a daemon may have no PATH.
std::vector<std::string> with_path(std::vector<std::string> environment) {
  if (sys::env_value(environment, "PATH").empty())
    environment.emplace_back("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  return environment;
}

std::vector<std::string> inner_command(const NodeCheckRequest& request, Duration stop) {
  std::vector<std::string> out{launch::find_install().program, "preflight", "--node", "--inner",
                               format_duration(stop)};
  const auto add = [&](const char* option, const std::vector<std::string>& values) {
    for (const auto& value : values) out.insert(out.end(), {option, value});
  };
  if (!request.plan.site.empty()) add("--site", {request.plan.site});
  if (!request.level.empty()) add("--level", {request.level});
  add("--site-dir", request.plan.site_dirs);
  add("--set", request.plan.set);
  add("--with", request.plan.with);
  add("--env", request.plan.env);
  return out;
}

/// The result: a report, or why nothing could be checked.
struct Checked {
  preflight::Report report;
  std::string refusal;  ///< for the options or the profile, as it was printed
};

preflight::Report undetermined(const std::string& why) {
  preflight::Report report;
  report.rows.push_back(preflight::unknown("node", "this machine", why));
  report.verdict = preflight::Status::unknown;
  return report;
}

/// In a separate process: a GPU or a file system that hangs can hang any process that uses it.
Checked run_inner(const NodeCheckRequest& request, const Times& times, const Context& context) {
  sys::SpawnRequest spawn;
  spawn.argv = inner_command(request, times.stop);
  spawn.env = with_path(context.environment);
  const auto of_the_caller =
      sys::own_descendants();  // of a shell that has become nlaunch, such as its logger
  sys::become_subreaper();
  const auto done = sys::run_command(std::move(spawn), times.kill);
  sys::sweep(of_the_caller, kForTheRest);
  if (!done) return {undetermined(done.error().first_message()), ""};
  if (done->timed_out)
    return {undetermined(fmt::format("the checks did not finish within {}", request.check.timeout)), ""};
  if (done->status.code() == exit_code::bad_input) {
    return {undetermined(done->err.substr(0, done->err.find('\n'))), done->err};
  }
  const auto json = parse_json(done->out);
  if (done->status.ok() && json.is_object()) return {preflight::report_from_json(json), ""};
  return {undetermined(fmt::format("the process that checks {}: {}", done->status.str(), done->err)), ""};
}

void drain(const std::string& node, const std::string& reason, Duration patience, const Context& context) {
  const auto drained =
      launch::drain_node(node, "nlaunch: " + reason, with_path(context.environment), patience);
  if (!drained) {
    context.console.say(fmt::format("nlaunch: cannot drain {}: {}\n", node, drained.error().first_message()));
  } else if (!*drained) {
    context.console.say(fmt::format("nlaunch: {} is already drained\n", node));
  }
}

/// Delivers the report and returns the exit code.
int conclude(const NodeCheckRequest& request, const Checked& checked, const Output& output,
             const Context& context) {
  if (request.check.prolog) {
    std::ignore = output.write(checked.report, context.console);
    const bool failed = checked.report.verdict == preflight::Status::fail;
    return failed ? exit_code::preflight_failed : exit_code::ok;
  }
  if (checked.refusal.empty()) return output.finish(checked.report, context);
  context.console.say(checked.refusal);
  return exit_code::bad_input;
}

}  // namespace

void add_node_options(Command app, NodeCheck& check) {
  auto node = app.flag("--node", check.wanted, "Check only this machine, in bounded time and without Slurm");
  app.flag(
         "--prolog", check.prolog,
         "With --node, as Slurm's Prolog: silent unless there is a problem; exit code 0 unless a check fails")
      .needs(node)
      .excludes("--json")
      .excludes("--strict");
  app.flag("--drain", check.drain, "With --node: drain the node if it fails (scontrol update)").needs(node);
  app.option("--timeout", check.timeout, "With --node: time limit of the whole check [default: 50s]")
      .value_name("TIME")
      .needs(node)
      .checked(check_timeout);
  app.option("--inner", check.inner).needs(node).hidden();
}

int check_node(const NodeCheckRequest& request, const Context& context) {
  const auto& check = request.check;
  if (!request.plan.experiment.empty() || !request.plan.plan_file.empty()) {
    context.console.say(
        "nlaunch preflight: --node checks the machine, whatever will run there: omit the experiment\n");
    return exit_code::usage;
  }
  if (!check.inner.empty()) {
    const auto time = parse_duration(check.inner).value_or(kShortest);
    return check_this_machine(request.plan, request.level, time, context);
  }
  const auto output = Output::open(request.output);
  if (!output) return context.console.error(output.error());
  const Times times(check);
  auto checked = run_inner(request, times, context);
  output->judge(checked.report);
  const auto node = launch::slurm_node_name(context.environment);
  const auto reason = report::preflight_reason(checked.report);
  const int code = conclude(request, checked, *output, context);
  if (check.prolog && !reason.empty()) context.console.say(fmt::format("nlaunch: {}: {}\n", node, reason));
  const bool failed = checked.report.verdict == preflight::Status::fail;
  if (check.drain && failed) drain(node, reason, times.drain, context);
  return code;
}

}  // namespace nlaunch::commands
