#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_input.h"
#include "shell/allocation.h"

/// What a job asks for, and what it does with it.
namespace nlaunch::lint {
namespace {

bool names_any(std::string_view path, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](auto part) { return path.find(part) != std::string_view::npos; });
}

void check_output_overwritten(const LintInput& input, Report& report) {
  if (!input.script || find_option(input.batch, "--array") != nullptr) return;
  const auto* mode = find_option(input.batch, "--open-mode");
  if (mode != nullptr && mode->text.ends_with("append")) return;
  for (const auto& option : input.batch) {
    const auto path =
        option.text.starts_with("--error") ? value_of(option, "--error") : value_of(option, "--output");
    if (path.empty() || path == "/dev/null" || names_any(path, {"%j", "%J", "%A", "%N", "%n", "%t", "$"}))
      continue;
    report.note(option.span,
                {fmt::format("the next job writes over {}", text::printable(path)),
                 "its name has nothing of the job's: the log of a run that failed is gone when the script is "
                 "submitted again, and two jobs at once mix theirs",
                 "%j in the name: %x-%j.out", ""});
    return;
  }
}

const Registered<Rule> output_overwritten_rule{{
    .order = 427,
    .name = "output-overwritten",
    .title = "a log that the next job writes over",
    .explain =
        "Slurm empties the file of --output when a job starts (--open-mode=truncate is the default of most "
        "sites). %j is the job's number, %x its name.",
    .source = "sbatch(1), filename pattern, --open-mode",
    .check = check_output_overwritten,
}};

void check_requeue_truncates(const LintInput& input, Report& report) {
  const auto* requeue = find_option(input.batch, "--requeue");
  if (!input.script || requeue == nullptr || find_option(input.batch, "--open-mode") != nullptr) return;
  report.note(requeue->span,
              {"a job that Slurm requeues begins its log anew",
               "the number stays the same, and so does the file: what was written before is gone",
               "#SBATCH --open-mode=append", ""});
}

const Registered<Rule> requeue_truncates_rule{{
    .order = 428,
    .name = "requeue-truncates",
    .title = "a requeued job that empties its own log",
    .explain =
        "A requeued job keeps its number. Without --open-mode=append its log holds the last attempt alone.",
    .source = "sbatch(1), --open-mode",
    .check = check_requeue_truncates,
}};

void check_mail(const LintInput& input, Report& report) {
  const auto* user = find_option(input.batch, "--mail-user");
  if (user == nullptr || find_option(input.batch, "--mail-type") != nullptr) return;
  report.note(user->span, {"no mail is sent: nothing says when", "--mail-user alone names who would get it",
                           "#SBATCH --mail-type=END,FAIL", ""});
}

const Registered<Rule> mail_rule{{
    .order = 429,
    .name = "mail",
    .title = "somebody to write to, and no occasion",
    .explain = "--mail-type says on which events Slurm writes. Without it there are none.",
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
               {fmt::format("the job has {}, and {} hosts are named", text::count(*count, "node"), named),
                "--nodelist names hosts that the job has to have, not those that it may have",
                "leave it out, or --nodes as many; --exclude names those to stay off", ""});
}

const Registered<Rule> nodelist_rule{{
    .order = 431,
    .name = "nodelist",
    .title = "more hosts named than nodes asked for",
    .explain = "All hosts of --nodelist are of the job. Slurm takes a longer list for a contradiction.",
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
  const auto* gpus = find_option(input.batch, "--gres");
  for (const auto* name : {"--gpus-per-node", "--gpus", "--gpus-per-task"})
    if (gpus == nullptr) gpus = find_option(input.batch, name);
  if (!works || by_step || gpus == nullptr) return;
  report.note(
      gpus->span,
      {"GPUs are asked for, and no CPUs",
       "where the site sets none for a GPU (DefCpuPerGPU), each task has one CPU: its workers that load "
       "data share it",
       "#SBATCH --cpus-per-task=N, or --cpus-per-gpu=N", ""});
}

const Registered<Rule> one_cpu_rule{{
    .order = 432,
    .name = "one-cpu",
    .title = "a job that asks for GPUs and no CPUs",
    .explain = "Slurm gives a task one CPU where nothing else is said. Sites may set a number for each GPU.",
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
                 {fmt::format("{} are asked for, and nothing starts them", text::count(*wanted, "task")),
                  fmt::format("without srun {} runs once, in the batch script, and finds no rank",
                              first->words[0].substr(first->words[0].rfind('/') + 1)),
                  "srun in front of it", ""});
}

const Registered<Rule> tasks_without_step_rule{{
    .order = 433,
    .name = "tasks-without-step",
    .title = "tasks that nothing starts",
    .explain = "--ntasks says how many tasks a step has. The batch script is none of them: srun starts them.",
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
    report.note(place_of(input, program, "OMP_NUM_THREADS"),
                {fmt::format("{} of {} each, on {}", text::count(processes * tasks, "process"),
                             text::count(*threads, "thread"), text::count(cpus, "CPU")),
                 "they take the CPUs from each other",
                 "OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / processes of a node))", ""});
  });
}

const Registered<Rule> threads_rule{{
    .order = 434,
    .name = "threads",
    .title = "more threads than CPUs",
    .explain = "OMP_NUM_THREADS is that of each process: a launcher starts one for each GPU.",
    .source = "OpenMP, OMP_NUM_THREADS; torch/distributed/run.py",
    .check = check_threads,
}};

}  // namespace
}  // namespace nlaunch::lint
