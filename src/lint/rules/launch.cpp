#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/allocation.h"
#include "shell/words.h"

/// How a script's programs are started: on which nodes, with which GPUs, and with which rendezvous.
namespace nlaunch::lint {
namespace {

// --- Where they meet ---

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

// --- How many there are ---

/// A trainer that runs its own engine on a GPU that its ranks leave free.
bool has_own_engine(const Program& program) {
  return std::ranges::any_of(program.words, [](const auto& word) {
    const auto text = text::lower(word);
    return text.find("vllm") != std::string::npos || text.find("sglang") != std::string::npos ||
           text.find("async") != std::string::npos || text.find("online") != std::string::npos;
  });
}

/// Launchers of one line that run in steps of one node each, as in a loop over nodes: the first of each node.
std::vector<const Program*> on_nodes_of_line(const Script& script, const Program& first) {
  std::vector<const Program*> programs;
  for (const auto& one : script.programs) {
    const bool same = one.works && one.step && one.nodes_of_step == 1 && one.span.line == first.span.line &&
                      one.span.file == first.span.file && launcher_of(one);
    const bool known =
        std::ranges::any_of(programs, [&](const Program* other) { return other->node == one.node; });
    if (same && !known) programs.push_back(&one);
  }
  return programs;
}

/// A loop starts one launcher on each node, in a step of its own.
void check_launchers_of_loop(const LintInput& input, const Program& program, const Launcher& launcher,
                             Report& report) {
  const auto programs = on_nodes_of_line(*input.script, program);
  if (programs.size() < 2 || !launcher.nodes || launcher.reaches) return;
  const bool all = programs.size() == input.nodes.value_or(1);
  if (*launcher.nodes != programs.size() && (all || *launcher.nodes < programs.size()))
    report.error(program.span,
                 {fmt::format("{} expects {}, but is started on {}", launcher.name,
                              text::count(*launcher.nodes, "node"), programs.size()),
                  *launcher.nodes > programs.size() ? "it waits for nodes that never come"
                                                    : "the extra nodes are rejected or wait forever",
                  "use $SLURM_JOB_NUM_NODES", ""});
}

/// `trainer.nnodes=1` of verl: how many nodes and GPUs of its Ray cluster it uses.
void check_trainer_size(const LintInput& input, Report& report) {
  if (!input.script || !ran_to_its_end(*input.script) || (!input.nodes && input.batch.empty())) return;
  const auto nodes = input.nodes.value_or(1);
  const bool divides = std::ranges::any_of(input.script->programs, [](const Program& one) {
    return is_server(one) || !variable(one, "CUDA_VISIBLE_DEVICES").empty() ||
           std::ranges::any_of(one.words, [](const auto& word) {
             return word.starts_with("rollout.n") || word.starts_with("reward_model.n");
           });
  });
  for (const auto& program : input.script->programs) {
    const auto said = [&](std::string_view name) -> std::optional<std::uint32_t> {
      for (const auto& word : program.words)
        if (word.starts_with(name)) return text::whole_number<std::uint32_t>(word.substr(name.size()));
      return std::nullopt;
    };
    const auto of_nodes = said("trainer.nnodes=");
    const auto of_gpus = said("trainer.n_gpus_per_node=");
    if (!of_nodes || !of_gpus || input.gpus.value_or(0) == 0) continue;
    const auto wants = *of_nodes * *of_gpus;
    const auto there = nodes * *input.gpus;
    const auto asked =
        fmt::format("verl uses {} times {}, but the job has {} times {}", text::count(*of_nodes, "node"),
                    text::count(*of_gpus, "GPU"), nodes, *input.gpus);
    constexpr auto kInstead = "trainer.nnodes=$SLURM_JOB_NUM_NODES, and trainer.n_gpus_per_node as requested";
    constexpr auto kSource = "verl, verl/trainer/config/ppo_trainer.yaml";
    if (wants > there)
      return report.error(program.span, {asked, "it waits for GPUs that Ray never has", kInstead, kSource});
    if (wants < there && !divides)
      return report.warning(program.span, {asked, "the others stay idle", kInstead, kSource});
  }
}

/// A configuration on its command line that is here and has an engine of its own: `use_vllm: true`.
bool names_an_engine_in_a_file(const LintInput& input, const Program& program) {
  static const RE2 kEngine(R"re((?m)^\s*(?:use_vllm|vllm\w*|rollout|sglang\w*)\s*:)re");
  return std::ranges::any_of(input.readings, [&](const Reading& reading) {
    const auto name = shell::program_name(reading.name);
    return (name.ends_with(".yaml") || name.ends_with(".yml")) && RE2::PartialMatch(reading.text, kEngine) &&
           std::ranges::any_of(program.words, [&](const std::string& word) { return word.ends_with(name); });
  });
}

void check_launcher_size(const LintInput& input, Report& report) {
  if (!input.script) return;
  check_trainer_size(input, report);
  each_line(*input.script, [&](const Program& program, const std::vector<const Program*>&) {
    const auto launcher = launcher_of(program);
    if (!launcher) return;
    check_launchers_of_loop(input, program, *launcher, report);
    const bool in_step = program.nodes_of_step > 1;
    if (in_step && launcher->nodes && *launcher->nodes != program.nodes_of_step && !launcher->reaches)
      return report.error(
          program.span,
          {fmt::format("{} expects {}, but its step runs on {}", launcher->name,
                       text::count(*launcher->nodes, "node"), program.nodes_of_step),
           *launcher->nodes > program.nodes_of_step ? "it waits for nodes that never come"
                                                    : "the extra nodes are rejected or wait forever",
           "--nnodes=$SLURM_JOB_NUM_NODES", ""});
    const auto gpus = gpus_of(input, program);
    if (gpus == 0 || !launcher->processes || program.local_tasks > 1) return;
    const auto of_loop = static_cast<std::uint32_t>(on_nodes_of_line(*input.script, program).size());
    const auto nodes = std::max({program.nodes_of_step, launcher->nodes.value_or(1), of_loop});
    const bool of_all = launcher->counts_all;
    const auto there = of_all ? gpus * nodes : gpus;
    const auto wants = *launcher->processes;
    const bool beside = std::ranges::any_of(input.script->programs, [&](const Program& other) {
      return other.works && other.span.line != program.span.line;
    });
    const bool on_cpus = std::ranges::any_of(program.words, [](const auto& word) {
      const auto text = text::lower(word);
      return text.find("gloo") != std::string::npos || text.find("cpu") != std::string::npos;
    });
    if (wants > there && !on_cpus)
      report.error(
          program.span,
          {fmt::format("{} starts {}, but there {}", launcher->name, text::count(wants, "process"),
                       there == 1 ? "is 1 GPU" : fmt::format("are {} GPUs", there)),
           "a process without a GPU fails (invalid device ordinal)", "start one process per GPU", ""});
    else if (wants < there && !beside && !has_own_engine(program) &&
             !names_an_engine_in_a_file(input, program))
      report.warning(
          program.span,
          {fmt::format("{} starts {}, but the job has {} GPUs{}", launcher->name,
                       text::count(wants, "process"), there, of_all && nodes > 1 ? " on all nodes" : ""),
           of_all && nodes > 1 ? "--num_processes is the total over all nodes" : "the others stay idle",
           of_all && nodes > 1 ? "--num_processes=$((SLURM_JOB_NUM_NODES * GPUS_PER_NODE))"
                               : "request fewer GPUs, or start more processes",
           ""});
  });
}

const Registered<Rule> launcher_size_rule{{
    .order = 443,
    .name = "launcher-size",
    .title = "a launcher whose node or process count does not match the job",
    .explain =
        "torchrun, accelerate and deepspeed start one process per GPU. --nnodes and --num_machines count "
        "nodes, --nproc_per_node the processes of a node, and accelerate's --num_processes those of all "
        "nodes. verl counts both in its trainer.",
    .source = "torch/distributed/run.py; accelerate launch --help",
    .check = check_launcher_size,
}};

void check_launcher_in_each_task(const LintInput& input, Report& report) {
  if (!input.script) return;
  each_line(*input.script, [&](const Program& program, const std::vector<const Program*>&) {
    const auto launcher = launcher_of(program);
    if (!launcher || program.local_tasks < 2 || launcher->processes == 1U) return;
    report.error(
        program.span,
        {fmt::format("{} tasks on a node each start {}", program.local_tasks, launcher->name),
         fmt::format("{} already starts one process per GPU of its node: they run {} times, on the same "
                     "GPUs and the same port",
                     launcher->name, program.local_tasks),
         "use --ntasks-per-node=1, or srun python without a launcher", ""});
  });
}

const Registered<Rule> launcher_in_each_task_rule{{
    .order = 444,
    .name = "launcher-in-each-task",
    .title = "a launcher in each of several tasks on a node",
    .explain = "Either srun starts one task per GPU, or one task per node starts torchrun, accelerate or "
               "deepspeed, which then starts the processes.",
    .source = "torch/distributed/run.py",
    .check = check_launcher_in_each_task,
}};

void check_idle_nodes(const LintInput& input, Report& report) {
  if (!input.script || input.batch.empty() || !ran_to_its_end(*input.script)) return;
  const auto nodes = input.nodes.value_or(1);
  if (nodes < 2 || !input.components.empty() || reaches_hosts_itself(input)) return;
  std::set<std::uint32_t> used;
  const Program* first = nullptr;
  for (const auto& program : input.script->programs) {
    if (!program.works) continue;
    if (first == nullptr || launcher_of(program)) first = &program;
    used.insert(program.node);
    if (program.nodes_of_step > 1) return;
  }
  if (first == nullptr || used.size() >= nodes) return;
  // Slurm chooses the nodes of steps that name none: one that runs beside another one gets other nodes.
  std::set<std::size_t> steps;
  for (const auto& program : input.script->programs)
    if (program.works && (program.background || !steps.empty()) && program.step) steps.insert(*program.step);
  if (steps.size() >= nodes) return;
  const auto launcher = launcher_of(*first);
  if (launcher && launcher->nodes.value_or(1) > 1 && used.size() == 1)
    return report.error(first->span,
                        {fmt::format("{} expects {}, but the batch script runs only on the first node",
                                     launcher->name, text::count(*launcher->nodes, "node")),
                         "nothing starts it on the other nodes, so it waits for them",
                         "put `srun --ntasks-per-node=1` in front of it", ""});
  report.warning(first->span, {fmt::format("the job has {}, but only {} any work", text::count(nodes, "node"),
                                           used.size() == 1 ? "one of them does"
                                                            : fmt::format("{} of them do", used.size())),
                               "the batch script runs on the first node; the others are allocated but idle",
                               "put srun in front of the program, or use --nodes=1", ""});
}

const Registered<Rule> idle_nodes_rule{{
    .order = 445,
    .name = "idle-nodes",
    .title = "nodes on which nothing is started",
    .explain =
        "A batch script runs only on the first node of its job. srun or mpirun starts programs on all nodes.",
    .source = "sbatch(1), DESCRIPTION",
    .check = check_idle_nodes,
}};

/// Other programs of MPI may expect one GPU for each task.
bool trains_with_torch(const LintInput& input, const Step& step) {
  const bool rendezvous = std::ranges::any_of(input.script->programs, [&](const Program& one) {
    return one.works && one.span.file == step.span.file && one.span.line == step.span.line &&
           (!variable(one, "MASTER_ADDR").empty() || launcher_of(one) ||
            shell::program_name(one.words[0]).starts_with("python"));
  });
  return rendezvous || step.argv.empty() || step.argv[0].ends_with(".sh");
}

void check_one_gpu_each(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& step : input.steps) {
    auto options = input.batch;
    options.insert(options.end(), step.options.begin(), step.options.end());
    const StepOption* hides = nullptr;
    bool none = false;
    for (const auto& option : options) {
      const std::string_view text = option.text;
      const bool one = text == "--gpus-per-task=1" || text.starts_with("--gpu-bind=single") ||
                       text.starts_with("--gpu-bind=per_task") || text.starts_with("--gpu-bind=map_gpu") ||
                       text.starts_with("--gpu-bind=mask_gpu");
      if (one) hides = &option;
      none = none || text == "--gpu-bind=none";
    }
    if (hides == nullptr || none || !step.several || !trains_with_torch(input, step)) continue;
    report.warning(
        hides->span,
        {"each task on a node sees only one of its GPUs",
         "Slurm hides the others: NCCL cannot copy directly between the GPUs of a node, and a program "
         "that uses the GPU of its local rank finds only GPU 0",
         "use --gpus-per-node=N with --gpu-bind=none: each task then uses the GPU of SLURM_LOCALID", ""});
    return;
  }
}

const Registered<Rule> one_gpu_each_rule{{
    .order = 446,
    .name = "one-gpu-each",
    .title = "tasks that see only one GPU of their node",
    .explain = "--gpus-per-task and --gpu-bind=single confine a task to its GPU. Copies between GPUs of "
               "a node (CUDA "
               "IPC) require both to be visible.",
    .source =
        "sbatch(1), --gpus-per-task, --gpu-bind; docs.nersc.gov, Process and Thread Affinity, GPU affinity",
    .check = check_one_gpu_each,
}};

void check_world_size(const LintInput& input, Report& report) {
  if (!input.script) return;
  each_line(*input.script, [&](const Program& program, const std::vector<const Program*>& tasks) {
    const auto size = text::whole_number<std::uint32_t>(variable(program, "WORLD_SIZE"));
    const auto count = text::whole_number<std::uint32_t>(variable(program, "SLURM_STEP_NUM_TASKS"));
    if (!program.step || !size || !count || *count < 2 || *size == *count || launcher_of(program)) return;
    // Only a program whose tasks have a rank of their own reads it.
    std::set<std::string> ranks;
    for (const auto* task : tasks) ranks.insert(variable(*task, "RANK"));
    if (ranks.size() < 2 || variable(program, "MASTER_ADDR").empty()) return;
    report.error(
        place_of(input, program, "WORLD_SIZE"),
        {fmt::format("WORLD_SIZE is {}, but the step has {}", *size, text::count(*count, "task")),
         *size > *count ? "all wait for ranks that never come"
                        : "the tasks with higher ranks are rejected, and the others run without them",
         "export WORLD_SIZE=$SLURM_NTASKS", ""});
  });
}

const Registered<Rule> world_size_rule{{
    .order = 460,
    .name = "world-size",
    .title = "a WORLD_SIZE that is not the number of tasks",
    .explain = "Without a launcher, the tasks of a step are the ranks: WORLD_SIZE must be their number. Only "
               "reported "
               "if each task gets its own RANK.",
    .source = "torch.distributed, Environment variable initialization",
    .check = check_world_size,
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

void check_not_in_background(const LintInput& input, Report& report) {
  if (!input.script) return;
  each_line(*input.script, [&](const Program& program, const std::vector<const Program*>&) {
    const auto launcher = launcher_of(program);
    if (!launcher || launcher->nodes.value_or(1) < 2 || launcher->reaches || program.background) return;
    if (on_nodes_of_line(*input.script, program).size() < 2) return;
    report.error(
        program.span,
        {fmt::format("{} waits here for the other nodes, which are started only after it has exited",
                     launcher->name),
         "without & the loop stays in its first turn: the first node waits until its rendezvous times out",
         "srun … &, and `wait` after the loop", ""});
  });
}

const Registered<Rule> not_in_background_rule{{
    .order = 461,
    .name = "not-in-background",
    .title = "a loop over nodes that waits for the first one",
    .explain = "A launcher with several nodes returns when all of them are done. A loop that starts one per "
               "node must "
               "start them in the background.",
    .source = "bash(1), Lists; torch/distributed/run.py",
    .check = check_not_in_background,
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

/// The word that the launcher takes for the training script: the first one after its own options.
std::optional<std::string> python_as_script(const Program& program) {
  static const RE2 kPython(R"((?:.*/)?python[\d.]*)");
  const auto& words = program.words;
  const bool any_program = shell::has(words, "--no_python") || shell::has(words, "--no-python");
  const bool is_module = shell::program_name(words[0]).starts_with("python");
  static const shell::Options kFlags{"--standalone",
                                     "--use_env",
                                     "--use-env",
                                     "--multi_gpu",
                                     "--mixed_precision",
                                     "launch",
                                     "torch.distributed.run",
                                     "torch.distributed.launch"};
  for (std::size_t i = 1; !any_program && i < words.size(); ++i) {
    if (words[i].ends_with(".py")) return std::nullopt;
    if (!RE2::FullMatch(words[i], kPython)) continue;
    // `--option python` is a value.
    const auto& before = words[i - 1];
    const bool is_value =
        before.starts_with("--") && before.find('=') == std::string::npos && !kFlags.contains(before);
    if (is_value || (is_module && before == "-m")) continue;
    return words[i];
  }
  return std::nullopt;
}

void check_python_as_script(const LintInput& input, Report& report) {
  if (!input.script) return;
  each_line(*input.script, [&](const Program& program, const std::vector<const Program*>&) {
    const auto launcher = launcher_of(program);
    const auto python = launcher ? python_as_script(program) : std::nullopt;
    if (!python || launcher->name == "lightning" || launcher->name == "fabric") return;
    report.error(program.span, {fmt::format("{} takes {} for the training script", launcher->name, *python),
                                "it starts `python python …` on each rank: can't open file 'python'",
                                launcher->name == "torchrun" ? "leave the word out, or pass --no-python"
                                                             : "leave the word out",
                                ""});
  });
}

const Registered<Rule> python_as_script_rule{{
    .order = 438,
    .name = "python-as-script",
    .title = "a launcher that is told to run python",
    .explain =
        "torchrun, accelerate launch and deepspeed start Python themselves: their first argument is the "
        "script.",
    .source = "torch/distributed/run.py, training_script",
    .check = check_python_as_script,
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
