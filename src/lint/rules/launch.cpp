#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "shell/words.h"

/// How a script's programs are started: on which nodes, with which GPUs, and how many processes.
namespace nlaunch::lint {
namespace {

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

}  // namespace
}  // namespace nlaunch::lint
