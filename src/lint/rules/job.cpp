#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_input.h"
#include "shell/allocation.h"

/// What a job requests, and how it uses it.
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
  const auto* gpus = find_option(input.batch, "--gres");
  for (const auto* name : {"--gpus-per-node", "--gpus", "--gpus-per-task"})
    if (gpus == nullptr) gpus = find_option(input.batch, name);
  if (!works || by_step || gpus == nullptr) return;
  report.note(gpus->span,
              {"GPUs are requested, but no CPUs",
               "if the site sets no default per GPU (DefCpuPerGPU), each task gets one CPU, which its data "
               "loader workers share",
               "#SBATCH --cpus-per-task=N, or --cpus-per-gpu=N", ""});
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

}  // namespace
}  // namespace nlaunch::lint
