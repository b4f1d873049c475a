#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/allocation.h"
#include "shell/words.h"

/// Where the nodes of a training meet, and which rank each one has.
namespace nlaunch::lint {
namespace {

std::string address_of(const Program& program) {
  const auto launcher = launcher_of(program);
  if (launcher && launcher->address) return *launcher->address;
  return variable(program, "MASTER_ADDR");
}

std::string port_of(const Program& program) {
  const auto launcher = launcher_of(program);
  if (launcher && launcher->port && !launcher->port->empty()) return *launcher->port;
  return variable(program, "MASTER_PORT");
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address == "0.0.0.0" || address.starts_with("127.");
}

void check_rendezvous(const LintInput& input, Report& report) {
  if (!input.script) return;
  each_line(*input.script, [&](const Program& program, const std::vector<const Program*>& tasks) {
    if (!spans_nodes(program)) return;
    const auto launcher = launcher_of(program);
    const bool by_option = launcher && launcher->address;
    const auto address = address_of(program);
    // Without a launcher, there may be no rendezvous.
    const auto tell = [&](const SourceSpan& where, Report::Saying saying) {
      launcher ? report.error(where, std::move(saying)) : report.warning(where, std::move(saying));
    };
    const auto span = by_option ? program.span : place_of(input, program, "MASTER_ADDR");
    constexpr const char* kInstead =
        "MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n1)";
    if (is_loopback(address))
      return tell(
          span, {fmt::format("the rendezvous address is {}, which is a different host on each node", address),
                 "each node waits for the others on itself until the time limit", kInstead, ""});
    if (address == shell::Allocation::kLoginHost)
      return tell(span, {"the rendezvous address is the host from which the job was submitted",
                         "SLURM_SUBMIT_HOST is a login node: no rank listens there", kInstead, ""});
    const auto lower = text::lower(address);
    if (lower.starts_with("xxx") || lower.starts_with('<') || lower.find("your") != std::string::npos)
      return tell(span, {fmt::format("{} is a placeholder for an address that was never filled in",
                                     text::printable(address)),
                         "no host has that name", kInstead, ""});
    if (address.find('[') != std::string::npos || address.find(',') != std::string::npos)
      return tell(span,
                  {"the rendezvous address is a list of hosts",
                   "SLURM_JOB_NODELIST is a compressed host list (node[1-4]), not a hostname", kInstead, ""});
    const auto differ = [&](const auto& value) {
      return std::ranges::any_of(tasks, [&](const Program* task) {
        return task->node != program.node && value(*task) != value(program);
      });
    };
    if (differ(address_of))
      return tell(span,
                  {"each node determines the rendezvous address itself, and finds its own",
                   "an expression evaluated inside the step (hostname) differs on each node", kInstead, ""});
    if (differ(port_of))
      tell(by_option && launcher->port ? program.span : place_of(input, program, "MASTER_PORT"),
           {"each node chooses the rendezvous port itself",
            "an expression evaluated inside the step ($RANDOM, shuf, a free port) differs on each node",
            "choose it in the batch script, before srun, and export it", ""});
  });
}

const Registered<Rule> rendezvous_rule{{
    .order = 440,
    .name = "rendezvous",
    .title = "nodes that cannot rendezvous",
    .explain = "All ranks must use the same address and port, on the first node. localhost, a login node, a "
               "list of hosts, or a value that each node determines itself does not work.",
    .source = "torch.distributed, Environment variable initialization; sbatch(1), SLURM_SUBMIT_HOST",
    .check = check_rendezvous,
}};

void check_node_rank(const LintInput& input, Report& report) {
  if (!input.script) return;
  each_line(*input.script, [&](const Program& program, const std::vector<const Program*>& tasks) {
    const auto launcher = launcher_of(program);
    if (!launcher || !launcher->ranked || launcher->nodes.value_or(1) < 2 || program.nodes_of_step < 2 ||
        launcher->reaches)
      return;
    const bool same = std::ranges::all_of(tasks, [&](const Program* task) {
      const auto other = launcher_of(*task);
      return other && other->rank == launcher->rank;
    });
    const bool several =
        std::ranges::any_of(tasks, [&](const Program* task) { return task->node != program.node; });
    // If it is expanded in the batch shell, another rule reports it.
    if (!same || !several || program.span.source_line().find("SLURM_") != std::string::npos) return;
    const bool torch = launcher->name == "torchrun";
    report.error(
        program.span,
        {launcher->rank.empty()
             ? fmt::format("no node is told its rank: {} treats each one as the first", launcher->name)
             : fmt::format("all nodes have rank {}", text::printable(launcher->rank)),
         "each waits for the others as the first node, and none joins",
         torch ? "srun bash -c 'torchrun --node_rank=$SLURM_NODEID …', or --rdzv_backend=c10d"
               : "srun bash -c 'accelerate launch --machine_rank=$SLURM_NODEID …'",
         ""});
  });
}

const Registered<Rule> node_rank_rule{{
    .order = 441,
    .name = "node-rank",
    .title = "nodes that have the same rank",
    .explain =
        "With a static rendezvous, each node must be given its number. SLURM_NODEID differs in each task "
        "and must be expanded there: inside bash -c '…', not by the batch shell.",
    .source = "torch/distributed/run.py, --node-rank; accelerate launch, --machine_rank",
    .check = check_node_rank,
}};

/// The Python file that a program runs, if its text is known; nullptr if not.
const Reading* source_of(const LintInput& input, const Program& program) {
  const auto file =
      std::ranges::find_if(program.words, [](const std::string& word) { return word.ends_with(".py"); });
  if (!shell::program_name(program.words[0]).starts_with("python") || file == program.words.end())
    return nullptr;
  const auto name = std::filesystem::path(*file).lexically_normal().native();
  const auto found = std::ranges::find_if(input.readings, [&](const Reading& reading) {
    return reading.name == name || reading.name.ends_with("/" + name) || name.ends_with("/" + reading.name);
  });
  return found == input.readings.end() ? nullptr : &*found;
}

/// True if a Python program takes its rank from RANK, and mentions nothing else that could tell it.
bool wants_rank(const std::string& source) {
  static const RE2 kReads(R"re((?:environ(?:\.get)?\s*[\[(]|getenv\s*\()\s*["']RANK["'])re");
  static const RE2 kOther(
      R"re((?i)slurm|\bpmi|ompi_|mpi4py|submitit|lightning|hydra|deepspeed|accelerat|horovod|\bjax\b|)re"
      R"re(environ\s*\[\s*["']RANK["']\s*\]\s*=[^=])re");
  return RE2::PartialMatch(source, kReads) && !RE2::PartialMatch(source, kOther);
}

void check_rank_not_set(const LintInput& input, Report& report) {
  if (!input.script) return;
  each_line(*input.script, [&](const Program& program, const std::vector<const Program*>& tasks) {
    const auto count = text::whole_number<std::uint32_t>(variable(program, "SLURM_STEP_NUM_TASKS"));
    if (!program.step || !count || *count < 2 || tasks.size() < 2 || launcher_of(program)) return;
    const auto* source = source_of(input, program);
    const bool told =
        std::ranges::any_of(tasks, [](const Program* task) { return !variable(*task, "RANK").empty(); });
    if (source == nullptr || told || !wants_rank(source->text)) return;
    report.warning(program.span,
                   {fmt::format("{} reads RANK, which nothing sets for the {} of this step",
                                shell::program_name(source->name), text::count(*count, "task")),
                    "srun sets SLURM_PROCID and SLURM_LOCALID: a program that does not know them takes each "
                    "task for the only one, on GPU 0",
                    "srun bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS "
                    "python …', or torchrun in one task per node",
                    ""});
  });
}

const Registered<Rule> rank_not_set_rule{{
    .order = 465,
    .name = "rank-not-set",
    .title = "tasks of a step that are not told their rank",
    .explain =
        "torchrun sets RANK, LOCAL_RANK and WORLD_SIZE; srun does not. Only reported if the program is "
        "here, reads RANK and nowhere mentions Slurm or a library that does.",
    .source = "torch.distributed, Environment variable initialization; srun(1), OUTPUT ENVIRONMENT VARIABLES",
    .check = check_rank_not_set,
}};

/// A rendezvous that is not of this node alone: the launchers of the step are meant as one.
bool means_one_world(const Program& program, const Launcher& launcher) {
  const bool local =
      launcher.address && (*launcher.address == "localhost" || *launcher.address == "127.0.0.1");
  return (launcher.address && !local && !launcher.address->empty()) || !launcher.rank.empty() ||
         !variable(program, "NODE_RANK").empty();
}

void check_own_world(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& program : input.script->programs) {
    const auto launcher = launcher_of(program);
    if (!program.works || program.nodes_of_step < 2 || !launcher || launcher->name != "torchrun" ||
        value_of(program, {"--nnodes"}) || !variable(program, "PET_NNODES").empty() ||
        !means_one_world(program, *launcher))
      continue;
    return report.error(program.span, {"torchrun starts on several nodes, but has no --nnodes: it counts one",
                                       "each node trains on its own, or torchrun refuses its rank",
                                       "torchrun --nnodes=$SLURM_NNODES …", ""});
  }
}

const Registered<Rule> own_world_rule{{
    .order = 474,
    .name = "own-world",
    .title = "torchrun on several nodes without --nnodes",
    .explain = "--nnodes is 1 by default, whatever the rendezvous address and the rank of the node are.",
    .source = "torch/distributed/run.py, --nnodes",
    .check = check_own_world,
}};

void check_rank_ignored(const LintInput& input, Report& report) {
  static const RE2 kRankOfShell(R"re((node|machine)[-_]rank[= ]"?\$\{?SLURM_(NODEID|PROCID))re");
  if (!input.script) return;
  for (const auto& program : input.script->programs) {
    const auto of_torch = value_of(program, {"--node_rank", "--node-rank"});
    const auto rank = of_torch ? of_torch : value_of(program, {"--machine_rank", "--machine-rank"});
    // 0 for all nodes is a rank only if it was meant to be another one on each.
    const bool by_shell = program.nodes_of_step > 1 && program.span.file &&
                          RE2::PartialMatch(program.span.file->text, kRankOfShell);
    if (!program.works || !rank || (*rank == "0" && !by_shell) ||
        value_of(program, {"--rdzv_backend", "--rdzv-backend"}) != "c10d")
      continue;
    const auto launcher = launcher_of(program);
    const bool torch = launcher && launcher->name == "torchrun";
    return report.note(program.span,
                       {fmt::format("{} has no effect with --rdzv_backend=c10d",
                                    of_torch ? "--node_rank" : "--machine_rank"),
                        "the rendezvous numbers the nodes itself, in any order: rank 0 need not be on the "
                        "first node",
                        torch ? "leave it out; or, for a fixed order: --master_addr, --master_port and no "
                                "--rdzv_backend"
                              : "leave it out",
                        ""});
  }
}

const Registered<Rule> rank_ignored_rule{{
    .order = 463,
    .name = "rank-ignored",
    .title = "a node rank that the rendezvous ignores",
    .explain = "torchrun passes --node_rank to the static rendezvous only. With c10d, the store assigns the "
               "ranks when the nodes join.",
    .source = "torch/distributed/run.py, config_from_args",
    .check = check_rank_ignored,
}};

void check_rendezvous_option(const LintInput& input, Report& report) {
  if (!input.script) return;
  each_line(*input.script, [&](const Program& program, const std::vector<const Program*>&) {
    const auto conf = value_of(program, {"--rdzv_conf", "--rdzv-conf"});
    const bool backend = value_of(program, {"--rdzv_backend", "--rdzv-backend"}).has_value();
    const auto launcher = launcher_of(program);
    if (!launcher || !conf || conf->find("rdzv_backend=") == std::string::npos || backend) return;
    report.warning(
        program.span,
        {"--rdzv_conf does not choose the rendezvous backend",
         fmt::format("rdzv_backend is not one of its settings: {} uses its default, static", launcher->name),
         "--rdzv_backend c10d", ""});
  });
}

const Registered<Rule> rendezvous_option_rule{{
    .order = 462,
    .name = "rendezvous-option",
    .title = "a rendezvous backend in the wrong option",
    .explain = "--rdzv_conf has the settings of a backend (timeouts). --rdzv_backend chooses it.",
    .source = "torch/distributed/run.py; accelerate/commands/launch.py",
    .check = check_rendezvous_option,
}};

void check_rank_missing(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& program : input.script->programs) {
    const auto launcher = launcher_of(program);
    if (!program.works || !launcher || launcher->name != "torchrun" || !launcher->ranked ||
        !launcher->rank.empty() || value_of(program, {"--node_rank", "--node-rank"}) ||
        launcher->nodes.value_or(1) < 2 || program.nodes_of_step > 1 ||
        !variable(program, "PET_NODE_RANK").empty())
      continue;
    return report.error(program.span,
                        {fmt::format("torchrun is told of {}, but not which one this is",
                                     text::count(*launcher->nodes, "node")),
                         "--node_rank is 0 by default: every node takes itself for the first, and waits for "
                         "the others",
                         "--node_rank=$NODE_RANK, or --rdzv_backend=c10d", ""});
  }
}

const Registered<Rule> rank_missing_rule{{
    .order = 538,
    .name = "rank-missing",
    .title = "torchrun for several nodes without the rank of its node",
    .explain = "Reported for a script that runs on each node by itself, with --nnodes above 1, a master "
               "address, and no --node_rank.",
    .source = "torch/distributed/run.py, --node-rank",
    .check = check_rank_missing,
}};

void check_fixed_address(const LintInput& input, Report& report) {
  if (!input.script || input.nodes.value_or(1) < 2 || input.batch.empty() ||
      has_option(input.batch, {"--nodelist", "-w"}))
    return;
  static const RE2 kFixed(
      R"re(^\s*(?:export\s+)?(?:MASTER_ADDR|HEAD_NODE_IP|HEAD_NODE|RAY_ADDRESS)=["']?(\d+\.\d+\.\d+\.\d+|[a-z][a-z-]*\d+)(?::\d+)?["']?\s*(?:#.*)?$)re");
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    std::string host;
    if (!RE2::PartialMatch(lines.line(number), kFixed, &host) || host.starts_with("127.") ||
        host == "0.0.0.0")
      continue;
    return report.warning(lines.whole(number),
                          {fmt::format("{} is fixed, but Slurm chooses the nodes of the job", host),
                           "on other nodes, no rank listens there: all wait until the time limit",
                           "$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)", ""});
  }
}

const Registered<Rule> fixed_address_rule{{
    .order = 573,
    .name = "fixed-address",
    .title = "the address of a node in a job that may get other nodes",
    .explain = "Reported for jobs of several nodes without --nodelist.",
    .source = "sbatch(1), --nodelist",
    .check = check_fixed_address,
}};

}  // namespace
}  // namespace nlaunch::lint
