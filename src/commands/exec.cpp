#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/exit_code.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/load.h"
#include "launch/bind/bind.h"
#include "launch/install.h"
#include "launch/job/allocation.h"
#include "launch/job/pyxis.h"
#include "launch/job/slurm_job.h"
#include "launch/run_dir/run_folder.h"
#include "session/run_view.h"
#include "sys/proc.h"
#include "sys/spawn.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

namespace fs = std::filesystem;

struct ExecArgs {
  std::string run;
  std::string process;
  std::string runs_dir = "runs";
  std::vector<std::string> command;
};

/// Returns only if the program cannot be started.
int become(const std::string& program, const std::vector<std::string>& command,
           const std::vector<std::string>& environment, const Context& context) {
  sys::become(program, command, environment);
  context.console.say(fmt::format("nlaunch exec: cannot start {}: {}\n", program, std::strerror(errno)));
  return exit_code::internal;
}

/// In the environment of the process, and in its current directory.
int run_beside(const ProcessView& process, const std::vector<std::string>& command, const Context& context) {
  auto environment = sys::initial_environment(process.pid);
  // An exception of this command is none of the process.
  std::erase_if(environment, [](const std::string& entry) {
    return entry.starts_with(fmt::format("{}=", launch::kErrorFile));
  });
  std::error_code error;
  const auto folder = fs::read_symlink(fmt::format("/proc/{}/cwd", process.pid), error);
  if (!error) fs::current_path(folder, error);
  const auto program = sys::find_program(command[0], sys::env_value(environment, "PATH"), "");
  if (!program) return context.console.error(program.error());
  return become(*program, command, environment, context);
}

/// A node, in its component of the job if the job has components.
launch::Allocation on_node(const std::string& job, const std::string& host, const Context& context) {
  launch::Allocation allocation{.job_id = job, .nodes = {host}, .gpus = {}};
  if (const auto component = launch::component_of(job, host, context.environment)) {
    allocation.components.resize(*component);
    allocation.components.push_back({1, 0});
  }
  return allocation;
}

/// Runs the same command as a step on the node of the process.
int run_on_its_node(const RunView& view, const ProcessView& process, const std::vector<std::string>& command,
                    const Context& context) {
  if (view.job.empty() || process.host.empty()) {
    context.console.say(
        fmt::format("nlaunch exec: run {} is running on another host; run the command there\n", view.id));
    return exit_code::internal;
  }
  const auto plan = launch::plan_of_run(view.folder);
  if (!plan) return context.console.error(plan.error());
  const auto install = launch::find_install();
  const auto folder = fs::absolute(view.folder).string();
  auto there = launch::pyxis_options(*plan, install, folder);
  there.insert(there.end(), {install.program, "exec", folder, process.name, "--"});
  there.insert(there.end(), command.begin(), command.end());
  const auto step = launch::srun_command(*plan, on_node(view.job, process.host, context), {process.host},
                                         there, ::isatty(STDIN_FILENO) == 1 ? "--pty" : "--input=all");
  const auto srun = sys::find_program(step[0], sys::env_value(context.environment, "PATH"), "");
  if (!srun) return context.console.error(srun.error());
  return become(*srun, step, launch::srun_environment(context.environment), context);
}

int run_exec(const ExecArgs& args, const Context& context) {
  const auto view = view_run(args.runs_dir, args.run);
  if (!view) return context.console.error(view.error());
  if (const auto own = check_owner(*view); !own) return context.console.error(own.error());
  const auto found = std::ranges::find(view->processes, args.process, &ProcessView::name);
  if (found == view->processes.end() || !found->alive) {
    std::vector<std::string> alive;
    for (const auto& process : view->processes) {
      if (process.alive) alive.push_back(process.name);
    }
    context.console.say(fmt::format("nlaunch exec: '{}' {} in run {}; alive: {}\n", args.process,
                                    found == view->processes.end() ? "is not a process" : "is not alive",
                                    view->id, alive.empty() ? "none" : text::join(alive, ", ")));
    return exit_code::usage;
  }
  return found->here ? run_beside(*found, args.command, context)
                     : run_on_its_node(*view, *found, args.command, context);
}

void add_exec(Command program, Context& context) {
  auto args = std::make_shared<ExecArgs>();
  auto command =
      program.subcommand("exec", "Run a command in the environment of a process of a run")
          .examples({"nlaunch exec grpo engine.0 -- nvidia-smi", "nlaunch exec grpo learner.0 -- bash"});
  command.option("RUN", args->run, kRunHelp).required();
  command.option("PROCESS", args->process, "ROLE.INDEX").required();
  command.option("--runs-dir", args->runs_dir, "Directory that contains the runs [default: runs]");
  command.option("COMMAND", args->command, "Command to run, after --").value_name("-- COMMAND").required();
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_exec(*args, context); }; });
}

const Registered<cli::CommandEntry> exec_command{{"exec", 190, add_exec, CommandGroup::see}};

}  // namespace

}  // namespace nlaunch::commands
