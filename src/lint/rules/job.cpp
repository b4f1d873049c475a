#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/catalogue.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_input.h"
#include "lint/script_text.h"
#include "shell/allocation.h"
#include "shell/words.h"

/// What a job requests, and how it uses it.
namespace nlaunch::lint {
namespace {

bool names_any(std::string_view path, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](auto part) { return path.find(part) != std::string_view::npos; });
}

void check_output_overwritten(const LintInput& input, Report& report) {
  if (!input.script) return;
  const bool array = find_option(input.batch, "--array") != nullptr;
  const auto* mode = find_option(input.batch, "--open-mode");
  if (mode != nullptr && mode->text.ends_with("append")) return;
  for (const auto& option : input.batch) {
    const auto path =
        option.text.starts_with("--error") ? value_of(option, "--error") : value_of(option, "--output");
    if (path.empty() || path == "/dev/null" || names_any(path, {"%j", "%J", "%A", "%N", "%n", "%t", "$"}))
      continue;
    // That all tasks of an array share it is told by another rule.
    if (array && !names_any(path, {"%a"})) continue;
    report.note(option.span,
                {fmt::format("the next job overwrites {}", text::printable(path)),
                 "its name does not contain the job id: submitting the script again erases the log of a "
                 "failed run, and two concurrent jobs mix their logs",
                 "use %j in the name: %x-%j.out", ""});
    return;
  }
}

const Registered<Rule> output_overwritten_rule{{
    .order = 427,
    .name = "output-overwritten",
    .title = "a log that the next job overwrites",
    .explain =
        "Slurm truncates the file of --output when a job starts (--open-mode=truncate is the default at "
        "most sites). %j is the job id, %x its name.",
    .source = "sbatch(1), filename pattern, --open-mode",
    .check = check_output_overwritten,
}};

void check_requeue_truncates(const LintInput& input, Report& report) {
  const auto* requeue = find_option(input.batch, "--requeue");
  if (!input.script || requeue == nullptr || find_option(input.batch, "--open-mode") != nullptr) return;
  report.note(requeue->span, {"a job that Slurm requeues overwrites its log",
                              "the job id stays the same, and so does the file: earlier output is lost",
                              "#SBATCH --open-mode=append", ""});
}

const Registered<Rule> requeue_truncates_rule{{
    .order = 428,
    .name = "requeue-truncates",
    .title = "a requeued job that truncates its own log",
    .explain =
        "A requeued job keeps its id. Without --open-mode=append, its log contains only the last attempt.",
    .source = "sbatch(1), --open-mode",
    .check = check_requeue_truncates,
}};

void check_mail(const LintInput& input, Report& report) {
  const auto* user = find_option(input.batch, "--mail-user");
  if (user == nullptr || find_option(input.batch, "--mail-type") != nullptr) return;
  report.note(user->span, {"no mail is sent: --mail-type is missing",
                           "--mail-user alone only names the recipient", "#SBATCH --mail-type=END,FAIL", ""});
}

const Registered<Rule> mail_rule{{
    .order = 429,
    .name = "mail",
    .title = "--mail-user without --mail-type",
    .explain = "--mail-type selects the events on which Slurm sends mail. Without it, Slurm sends none.",
    .source = "sbatch(1), --mail-type",
    .check = check_mail,
}};

void check_nodelist(const LintInput& input, Report& report) {
  const auto* list = find_option(input.batch, "--nodelist");
  const auto* nodes = find_option(input.batch, "--nodes");
  if (list == nullptr || nodes == nullptr) return;
  const auto hosts = value_of(*list, "--nodelist");
  const auto count = text::whole_number<std::uint32_t>(value_of(*nodes, "--nodes"));
  if (!count || hosts.find('[') != std::string::npos) return;
  const auto named = text::split(hosts, ',').size();
  if (named <= *count) return;
  report.error(list->span,
               {fmt::format("the job has {}, but {} hosts are named", text::count(*count, "node"), named),
                "--nodelist names hosts that the job must get, not hosts that it can choose from",
                "leave it out, or set --nodes to match; use --exclude for hosts to avoid", ""});
}

const Registered<Rule> nodelist_rule{{
    .order = 431,
    .name = "nodelist",
    .title = "more hosts named than nodes requested",
    .explain = "All hosts of --nodelist are part of the job. Slurm treats a longer list as a contradiction.",
    .source = "sbatch(1), --nodelist",
    .check = check_nodelist,
}};

void check_one_cpu(const LintInput& input, Report& report) {
  if (!input.script || !input.gpus || input.batch.empty() || !input.components.empty()) return;
  if (has_option(input.batch, {"--cpus-per-task", "--cpus-per-gpu", "--exclusive", "--mincpus",
                               "--cores-per-socket", "--ntasks-per-core", "--threads-per-core"}))
    return;
  const bool works =
      std::ranges::any_of(input.script->programs, [](const Program& program) { return program.works; });
  const bool by_step = std::ranges::any_of(input.steps, [](const Step& step) {
    return has_option(step.options, {"--cpus-per-task", "--cpus-per-gpu", "--exclusive"});
  });
  // Many tasks for one program: it gets the CPUs of all.
  const auto* of_node = find_option(input.batch, "--ntasks-per-node");
  const auto tasks =
      of_node == nullptr
          ? 0
          : text::whole_number<std::uint32_t>(value_of(*of_node, "--ntasks-per-node")).value_or(0);
  if (tasks > 2 * input.gpus.value_or(1)) return;
  const auto* gpus = find_option(input.batch, "--gres");
  for (const auto* name : {"--gpus-per-node", "--gpus", "--gpus-per-task"})
    if (gpus == nullptr) gpus = find_option(input.batch, name);
  if (!works || by_step || gpus == nullptr) return;
  report.note(gpus->span,
              {"GPUs are requested, but no CPUs",
               "if the site sets no default per GPU (DefCpuPerGPU), each task gets one CPU, which its data "
               "loader workers share",
               input.steps.empty()
                   ? "#SBATCH --cpus-per-task=N, or --cpus-per-gpu=N"
                   : "#SBATCH --cpus-per-task=N and srun --cpus-per-task=N (since Slurm 22.05 a step does "
                     "not inherit it), or #SBATCH --cpus-per-gpu=N",
               ""});
}

const Registered<Rule> one_cpu_rule{{
    .order = 432,
    .name = "one-cpu",
    .title = "a job that requests GPUs but no CPUs",
    .explain = "By default Slurm gives a task one CPU. Sites can set a default per GPU.",
    .source = "sbatch(1), --cpus-per-task; slurm.conf(5), DefCpuPerGPU",
    .check = check_one_cpu,
}};

void check_tasks_without_step(const LintInput& input, Report& report) {
  if (!input.script || !input.components.empty() || !ran_to_its_end(*input.script)) return;
  const auto* tasks = find_option(input.batch, "--ntasks-per-node");
  if (tasks == nullptr) tasks = find_option(input.batch, "--ntasks");
  const auto wanted = tasks == nullptr
                          ? std::nullopt
                          : text::whole_number<std::uint32_t>(tasks->text.substr(tasks->text.find('=') + 1));
  if (!wanted || *wanted < 2 || reaches_hosts_itself(input)) return;
  const Program* first = nullptr;
  for (const auto& program : input.script->programs) {
    if (program.step) return;
    if (!program.works) continue;
    const auto launcher = launcher_of(program);
    if (launcher) return;
    if (first == nullptr) first = &program;
  }
  if (first == nullptr) return;
  report.warning(tasks->span,
                 {fmt::format("{} are requested, but nothing starts them", text::count(*wanted, "task")),
                  fmt::format("without srun, {} runs once, in the batch script, and has no rank",
                              first->words[0].substr(first->words[0].rfind('/') + 1)),
                  "put srun in front of it", ""});
}

const Registered<Rule> tasks_without_step_rule{{
    .order = 433,
    .name = "tasks-without-step",
    .title = "tasks that nothing starts",
    .explain =
        "--ntasks sets the number of tasks of a step. The batch script is not one of them: srun starts them.",
    .source = "sbatch(1), --ntasks",
    .check = check_tasks_without_step,
}};

void check_threads(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto job = allocation_of(input);
  if (job.cpus_per_task == 0) return;
  each_line(*input.script, [&](const Program& program, const std::vector<const Program*>&) {
    const auto threads = text::whole_number<std::uint32_t>(variable(program, "OMP_NUM_THREADS"));
    const auto launcher = launcher_of(program);
    const auto processes = launcher && !launcher->counts_all ? launcher->processes.value_or(1) : 1;
    const auto tasks = program.local_tasks;
    const auto cpus = job.cpus_per_task * (program.step ? tasks : job.tasks_per_node);
    constexpr std::uint32_t kThreadsOfACore = 2;
    if (!threads || *threads * processes * tasks <= cpus * kThreadsOfACore - 1) return;
    report.note(
        place_of(input, program, "OMP_NUM_THREADS"),
        {fmt::format("{} with {} each, on {}", text::count(processes * tasks, "process"),
                     text::count(*threads, "thread"), text::count(cpus, "CPU")),
         "they compete for the CPUs", "OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / processes per node))", ""});
  });
}

const Registered<Rule> threads_rule{{
    .order = 434,
    .name = "threads",
    .title = "more threads than CPUs",
    .explain = "OMP_NUM_THREADS applies to each process, and a launcher starts one process per GPU.",
    .source = "OpenMP, OMP_NUM_THREADS; torch/distributed/run.py",
    .check = check_threads,
}};

/// The name of a log without its directory, in lower case: "err-%j.txt".
std::string log_name(const std::vector<StepOption>& options, std::string_view option) {
  const auto* found = find_option(options, option);
  const auto path = found == nullptr ? std::string() : value_of(*found, option);
  return text::lower(path.substr(path.rfind('/') + 1));
}

/// Options of sbatch or srun.
void check_logs_of(const std::vector<StepOption>& options, Report& report) {
  const auto has = [](const std::string& name, std::string_view word) {
    return name.find(word) != std::string::npos;
  };
  const auto output = log_name(options, "--output");
  const auto error = log_name(options, "--error");
  const bool by_end = output.ends_with(".err") && !error.empty();
  if (!has(output, "err") || has(output, "out") || !(has(error, "out") || by_end) || has(error, "err"))
    return;
  report.warning(find_option(options, "--output")->span,
                 {fmt::format("the output goes to {}, and the errors go to {}", text::printable(output),
                              text::printable(error)),
                  "the two names are swapped", "swap the values of --output and --error", ""});
}

void check_logs_swapped(const LintInput& input, Report& report) {
  check_logs_of(input.batch, report);
  for (const auto& step : input.steps) check_logs_of(step.options, report);
}

const Registered<Rule> logs_swapped_rule{{
    .order = 423,
    .name = "logs-swapped",
    .title = "an output file named after errors, and the other way round",
    .explain = "--output is the file of the standard output, --error that of the standard error.",
    .source = "sbatch(1), srun(1), --output, --error",
    .check = check_logs_swapped,
}};

/// 2 for "gpu:2" and "gpu:a100:2", 1 for "a100:1" and "1".
std::optional<std::uint32_t> count_of_gpus(const std::string& value) {
  return text::whole_number<std::uint32_t>(value.substr(value.rfind(':') + 1));
}

void check_gpu_directives(const LintInput& input, Report& report) {
  const auto* gres = find_option(input.batch, "--gres");
  const auto* per_node = find_option(input.batch, "--gpus-per-node");
  if (gres == nullptr || per_node == nullptr || !input.components.empty()) return;
  const auto list = value_of(*gres, "--gres");
  if (!list.starts_with("gpu") || list.find(',') != std::string::npos) return;
  const auto one = list == "gpu" ? std::optional(1U) : count_of_gpus(list);
  const auto other = count_of_gpus(value_of(*per_node, "--gpus-per-node"));
  if (!one || !other || *one == *other) return;
  report.warning(
      per_node->span,
      {fmt::format("{} contradicts {}: both are GPUs per node", per_node->text, gres->text),
       "the job gets one of the two numbers, and only one is what was meant", "keep one of the two", ""});
}

const Registered<Rule> gpu_directives_rule{{
    .order = 419,
    .name = "gpu-directives",
    .title = "directives that request different numbers of GPUs",
    .explain = "--gres=gpu:N and --gpus-per-node=N both request N GPUs on each node.",
    .source = "sbatch(1), --gpus-per-node, --gres",
    .check = check_gpu_directives,
}};

/// True if an option of sbatch or srun requests GPUs, or whole nodes.
bool requests_gpus(const std::vector<StepOption>& options) {
  return std::ranges::any_of(options, [](const StepOption& option) {
    const std::string_view text = option.text;
    return text.starts_with("--gpus") || text.starts_with("--exclusive") || text.starts_with("--tres-per-") ||
           text.starts_with("--ntasks-per-gpu") || text.starts_with("--cpus-per-gpu") ||
           (text.starts_with("--gres") && text.find("gpu") != std::string_view::npos);
  });
}

void check_no_gpu(const LintInput& input, Report& report) {
  if (!input.script || input.batch.empty() || !input.components.empty() || input.gpus ||
      requests_gpus(input.batch) ||
      std::ranges::any_of(input.steps, [](const Step& step) { return requests_gpus(step.options); }))
    return;
  const auto needs_gpu = [](const Program& program) {
    const auto launcher = launcher_of(program);
    const bool nv = std::ranges::find(program.words, "--nv") != program.words.end();
    const bool on_cpus = text::join(program.words, " ").find("cpu") != std::string::npos;
    return !on_cpus && (nv || is_engine(program) || (launcher && launcher->name == "torchrun"));
  };
  const auto tell = [&](const Program& program) {
    report.note(program.span, {fmt::format("{} needs GPUs, but the job requests none",
                                           shell::program_name(program.words[0])),
                               "Slurm then gives it none, unless the partition allocates whole nodes",
                               "#SBATCH --gpus-per-node=N", ""});
  };
  for (const auto& command : input.script->commands) {
    const Program program{.words = command.words, .span = command.span};
    if (command.works && command.span.file == input.script->file && needs_gpu(program)) return tell(program);
  }
  for (const auto& program : input.script->programs) {
    if (program.works && program.span.file == input.script->file && needs_gpu(program)) return tell(program);
  }
}

const Registered<Rule> no_gpu_rule{{
    .order = 421,
    .name = "no-gpu",
    .title = "a job that uses GPUs and requests none",
    .explain =
        "vLLM, SGLang, torchrun and containers with --nv use GPUs. A job without --gpus, --gpus-per-node, "
        "--gpus-per-task, --gres=gpu or --exclusive gets none, unless the site allocates whole nodes.",
    .source = "sbatch(1), --gpus; slurm.conf(5), OverSubscribe",
    .check = check_no_gpu,
}};

void check_job_name(const LintInput& input, Report& report) {
  const auto* option = find_option(input.batch, "--job-name");
  if (option == nullptr) return;
  const auto name = value_of(*option, "--job-name");
  for (const auto* pattern : {"%A", "%a", "%j", "%J", "%x", "%u", "%N"}) {
    if (name.find(pattern) == std::string::npos) continue;
    return report.warning(option->span, {fmt::format("{} in --job-name is not replaced", pattern),
                                         "only file names have patterns: all jobs have exactly this name",
                                         "leave it out: squeue and sacct show the id next to the name", ""});
  }
}

const Registered<Rule> job_name_rule{{
    .order = 424,
    .name = "job-name",
    .title = "a file name pattern in the name of the job",
    .explain = "Slurm replaces %j, %A and the like in --output, --error and --input only.",
    .source = "sbatch(1), filename pattern",
    .check = check_job_name,
}};

/// A variable that Slurm sets only if an option is given.
struct OptionalVariable {
  std::string_view name;
  std::string_view option;
};
constexpr std::array<OptionalVariable, 6> kOptionalVariables{{{"SLURM_CPUS_PER_TASK", "--cpus-per-task"},
                                                              {"SLURM_CPUS_PER_GPU", "--cpus-per-gpu"},
                                                              {"SLURM_NTASKS_PER_NODE", "--ntasks-per-node"},
                                                              {"SLURM_GPUS", "--gpus"},
                                                              {"SLURM_GPUS_PER_NODE", "--gpus-per-node"},
                                                              {"SLURM_GPUS_PER_TASK", "--gpus-per-task"}}};

/// True if the script sets the variable, tests it, or has a default for it.
bool is_handled(const SourceLines& lines, std::string_view name) {
  const RE2 handles(fmt::format(
      R"re((\b{0}=|\$\{{{0}:?[-=?+]|-[nzv]\s+"?\$?\{{?{0}\b|\bexport\s+{0}\b|\bunset\s+{0}\b))re", name));
  return std::ranges::any_of(lines_of_commands(lines), [&](std::uint32_t number) {
    return RE2::PartialMatch(lines.command(number), handles);
  });
}

void check_slurm_name(const LintInput& input, Report& report) {
  if (!input.script || input.batch.empty()) return;
  const SourceLines lines(input.script->file);
  std::set<std::string> told;
  for (const auto number : lines_of_commands(lines)) {
    for (const auto& one : expansions_in(lines.command(number))) {
      const bool misspelt = one.name.starts_with("SLURM_") && find_variables(one.name).empty();
      const auto meant = misspelt ? nearest_variable(one.name) : std::nullopt;
      if (!meant || is_handled(lines, one.name) || !told.insert(one.name).second) continue;
      report.warning(
          lines.find_text(one.name, number, lines.end_of_command(number)),
          {fmt::format("Slurm sets no variable {}", one.name), "bash takes it as empty", *meant, ""});
    }
  }
}

const Registered<Rule> slurm_name_rule{{
    .order = 473,
    .name = "slurm-name",
    .title = "a misspelt variable of Slurm",
    .explain =
        "A name that is nearly one of Slurm's is empty in the job: an option with it gets no value, or "
        "the next word as its value.",
    .source = "sbatch(1), OUTPUT ENVIRONMENT VARIABLES",
    .check = check_slurm_name,
}};

/// Where the script uses a variable for more than printing it; 0: nowhere.
std::uint32_t line_of_use(const SourceLines& lines, std::string_view name) {
  static const RE2 kPrints(R"re(^\s*(echo|printf)\s)re");
  const RE2 counts(fmt::format(R"re(\(\([^)]*\b{}\b)re", name));
  for (const auto number : lines_of_commands(lines)) {
    const auto command = lines.command(number);
    if (RE2::PartialMatch(command, kPrints)) continue;
    if (RE2::PartialMatch(command, counts)) return number;
    for (const auto& one : expansions_in(command))
      if (one.name == name && one.rest.empty()) return number;
  }
  return 0;
}

/// Where the script prints it; 0: nowhere.
std::uint32_t line_of_print(const SourceLines& lines, std::string_view name) {
  static const RE2 kPrints(R"re(^\s*(echo|printf)\s)re");
  for (const auto number : lines_of_commands(lines)) {
    const auto command = lines.command(number);
    if (!RE2::PartialMatch(command, kPrints)) continue;
    for (const auto& one : expansions_in(command))
      if (one.name == name && one.rest.empty()) return number;
  }
  return 0;
}

void check_slurm_unset(const LintInput& input, Report& report) {
  if (!input.script || !input.components.empty() ||
      !has_option(input.batch, {"--nodes", "--ntasks", "--ntasks-per-node", "--tasks-per-node", "--gres",
                                "--gpus", "--gpus-per-node", "--gpus-per-task"}))
    return;
  const SourceLines lines(input.script->file);
  const bool gpus = has_option(input.batch, {"--gres", "--gpus", "--gpus-per-node", "--gpus-per-task"});
  for (const auto& one : kOptionalVariables) {
    const bool given = has_option(input.batch, {one.option}) ||
                       (one.option == "--ntasks-per-node" && has_option(input.batch, {"--tasks-per-node"}));
    // What no directive requests may be given on sbatch's command line.
    const bool of_gpus = one.name.starts_with("SLURM_GPUS");
    if (given || (of_gpus && !gpus) || is_handled(lines, one.name)) continue;
    const auto line = line_of_use(lines, one.name);
    if (line == 0) {
      if (const auto print = line_of_print(lines, one.name); print > 0)
        report.note(lines.find_text(one.name, print, lines.end_of_command(print)),
                    {fmt::format("{} is printed, but it is empty: the job is not submitted with {}", one.name,
                                 one.option),
                     "Slurm sets the variable only if that option is given",
                     of_gpus ? std::string("SLURM_GPUS_ON_NODE, which Slurm sets in each case")
                             : "#SBATCH " + std::string(one.option) + "=…",
                     ""});
      continue;
    }
    report.warning(
        lines.find_text(one.name, line, lines.end_of_command(line)),
        {fmt::format("{} is empty: the job is not submitted with {}", one.name, one.option),
         "Slurm sets the variable only if that option is given: an argument with it is empty, and in $(( )) "
         "it is 0",
         of_gpus ? "SLURM_GPUS_ON_NODE, which Slurm sets in each case, or #SBATCH " +
                       std::string(one.option) + "=…"
                 : "#SBATCH " + std::string(one.option) + "=…",
         ""});
  }
}

const Registered<Rule> slurm_unset_rule{{
    .order = 412,
    .name = "slurm-unset",
    .title = "a variable of Slurm that this job does not have",
    .explain = "SLURM_CPUS_PER_TASK, SLURM_NTASKS_PER_NODE, SLURM_GPUS and SLURM_GPUS_PER_NODE exist only if "
               "the job "
               "is submitted with the option of the same name. --gres=gpu:N sets none of them.",
    .source = "sbatch(1), OUTPUT ENVIRONMENT VARIABLES",
    .check = check_slurm_unset,
}};

void check_no_time(const LintInput& input, Report& report) {
  if (!input.script || input.batch.empty() || !input.components.empty()) return;
  const bool said = std::ranges::any_of(input.batch, [](const StepOption& option) {
    return option.text.starts_with("--ti") || option.text.starts_with("--deadline");  // also what is misspelt
  });
  if (said || has_option(input.batch, {"-t"})) return;
  const bool works =
      std::ranges::any_of(input.script->programs, [](const Program& program) { return program.works; });
  if (!works) return;
  report.note(input.batch.front().span,
              {"the job requests no time limit",
               "it gets the partition's default: a short one ends the run early, without a warning; with a "
               "long one the job starts later, as backfill finds no gap for it",
               "#SBATCH --time=HH:MM:SS", ""});
}

const Registered<Rule> no_time_rule{{
    .order = 477,
    .name = "no-time",
    .title = "a job without --time",
    .explain =
        "Without --time a job gets DefaultTime of its partition, or else its MaxTime. Slurm sends TERM "
        "when it is over, then KILL.",
    .source = "sbatch(1), --time; slurm.conf(5), DefaultTime",
    .check = check_no_time,
}};

/// `pip install`, `conda install`, `uv pip install`: what changes the environment that is active. Not into a
/// directory of its own.
bool installs(const ScriptCommand& command) {
  const auto& words = command.words;
  const auto name = shell::program_name(words[0]);
  auto from = words.begin() + 1;
  if (name == "uv" || (name.starts_with("python") && shell::has(words, "-m"))) {
    from = std::ranges::find(words, "pip");
    if (from == words.end()) return false;
    ++from;
  } else if (name != "pip" && name != "pip3" && name != "conda" && name != "mamba") {
    return false;
  }
  const bool elsewhere = std::ranges::any_of(words, [](const std::string& word) {
    return word.starts_with("--target") || word == "-t" || word.starts_with("--prefix") || word == "-p";
  });
  const auto verb = std::find_if(from, words.end(), [](const auto& word) { return !word.starts_with('-'); });
  return verb != words.end() && *verb == "install" && !elsewhere;
}

/// The script makes the environment itself, or runs in a container that is made for it.
bool makes_environment(const Script& script) {
  static const RE2 kMakes(
      R"re(-m\s+venv\b|\bvirtualenv\b|\buv\s+venv\b|\b(conda|mamba)\s+(env\s+)?create\b|\bPYTHONUSERBASE=|(?:source|\.)\s+["']?(?:\$\{?(?:SLURM_)?TMPDIR\b|/tmp/|/dev/shm/)|--container-image|\b(docker|podman|apptainer|singularity|enroot)\s)re");
  return RE2::PartialMatch(without_comments(SourceLines(script.file)), kMakes);
}

void check_installs_in_job(const LintInput& input, Report& report) {
  if (!input.script || input.batch.empty() || makes_environment(*input.script)) return;
  for (const auto& command : input.script->commands) {
    if (command.span.file != input.script->file || command.shell != input.script->shell || !installs(command))
      continue;
    return report.note(command.span,
                       {"the job changes the environment that it runs in",
                        "other jobs with this environment import half-installed packages, two that start at "
                        "once break it, and the run depends on the day it started",
                        "install before you submit, or into a venv of this job ($TMPDIR)", ""});
  }
}

const Registered<Rule> installs_in_job_rule{{
    .order = 478,
    .name = "installs-in-job",
    .title = "a job that installs packages into a shared environment",
    .explain = "pip replaces files in place, without a lock: programs that import them meanwhile may see old "
               "and new ones. Not reported if the script makes the environment, or runs a container.",
    .source = "pip documentation, pip install",
    .check = check_installs_in_job,
}};

}  // namespace
}  // namespace nlaunch::lint
