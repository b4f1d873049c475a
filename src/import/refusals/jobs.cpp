#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "import/refusals/refusal.h"
#include "shell/srun.h"

/// The job itself: its size, its tasks, and what no plan can express.
namespace nlaunch::import {
namespace {

bool starts_a_program(const Imported& out) {
  return std::ranges::any_of(out.roles, [](const auto& role) { return role.part.has_value(); });
}

/// True for a script for one node of many that must be started on each of them.
bool runs_on_each_node(const shell::Recording& recording, const Imported& out) {
  const bool places = std::ranges::any_of(recording.commands, [](const auto& command) {
    return command.fate == shell::Fate::launcher && command.task;
  });
  return starts_a_program(out) && out.nodes > 1 && out.pools.empty() && out.directives.empty() &&
         out.slurm.empty() && !places &&
         std::ranges::all_of(out.parts, [](const Part& part) { return !part.in_step; });
}

/// "-p gpu, --gres=gpu:8" of an srun outside a job.
std::string what_it_asks_of_slurm(const shell::Words& argv) {
  if (shell::program_name(argv[0]) != "srun") return {};
  constexpr std::array<std::pair<const char*, const char*>, 7> kOptions{{{"-p", "--partition"},
                                                                         {"-A", "--account"},
                                                                         {"-t", "--time"},
                                                                         {"-G", "--gpus"},
                                                                         {"-C", "--constraint"},
                                                                         {"", "--gres"},
                                                                         {"", "--gpus-per-node"}}};
  std::vector<std::string> asked;
  for (const auto& [letter, name] : kOptions)
    if (const auto value = shell::option(argv, shell::words_of_srun(argv), letter, name))
      asked.push_back(fmt::format("{}={}", name, text::printable(*value)));
  return text::join(asked, ", ");
}

/// ". bash says: ...", if the text of a `bash -c` is broken.
std::string syntax_error(const shell::Recording& recording) {
  const auto said = recording.broken_text();
  return said.empty() ? "" : fmt::format(". bash says of the text after -c: {}", text::printable(said));
}

Sentences starts_nothing(const Examined& script) {
  if (starts_a_program(script.out)) return {};
  for (const auto& command : script.recording.commands)
    if (shell::program_name(command.argv[0]) == "sbatch")
      return {fmt::format(
          "the script does not start a program itself: it submits a job at line {}. Import what it submits",
          command.line)};
  return {"the script does not start a program that could be a role; --commands shows what it would start"};
}

Sentences is_for_one_node(const Examined& script) {
  if (!runs_on_each_node(script.recording, script.out)) return {};
  return {
      fmt::format("the script has no #SBATCH lines and starts programs on only one node, but --nodes "
                  "requests {}. If it is started on each node, pass --per-node, and use --env for the node's "
                  "number and the first host: --per-node --env RANK={{node}} --env MASTER_ADDR={{first}}",
                  script.out.nodes)};
}

Sentences has_other_tasks(const Examined& script) {
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    // If the script reads its output, that is the first unknown.
    const bool is_read = std::ranges::any_of(
        part.commands, [&](auto index) { return script.recording.commands[index].output_is_read; });
    return part.problem.empty() || is_read ? "" : fmt::format("{}: {}", role.name, part.problem);
  });
}

Sentences has_unknown_markers(const Examined& script) {
  return of_each(script.unknown,
                 [&](const auto& what) { return fmt::format("a command of the script contains {}", what); });
}

Sentences is_an_array(const Examined& script) {
  const auto& array = script.allocation.array;
  const bool has_task = std::ranges::any_of(script.out.parts, [](const Part& part) {
    const auto id = part.changes.find("SLURM_ARRAY_TASK_ID");
    return id != part.changes.end() && id->second;
  });
  if (array.size() < 2 || script.allocation.array_task || !has_task) return {};
  return {
      fmt::format("line {}: the job is an array of {} tasks, but an experiment is only one of them: select "
                  "it with --env SLURM_ARRAY_TASK_ID={}",
                  script.directives.array_line, array.size(), array.front())};
}

Sentences requests_the_job_by_srun(const Examined& script) {
  Sentences texts;
  if (!script.out.directives.empty() || !script.out.slurm.empty()) return texts;
  for (const auto& command : script.recording.commands)
    if (const auto asked = what_it_asks_of_slurm(command.argv); !asked.empty())
      texts.push_back(
          fmt::format("line {}: the script has no #SBATCH lines, and this srun requests the job itself ({}): "
                      "move these options to #SBATCH lines and import the script again",
                      command.line, asked));
  return texts;
}

Sentences cannot_be_expressed(const Examined& script) {
  return of_each(script.out.not_said,
                 [&](const auto& one) { return fmt::format("line {}: {}", one.line, one.text); });
}

Sentences has_tasks_that_fail(const Examined& script) {
  return of_each(script.recording.failed, [&](const auto& one) {
    return fmt::format(
        "the tasks of the step at line {} exit with {}, and may start more if nothing is missing: --commands "
        "shows how far they get{}",
        one.line, one.name, syntax_error(script.recording));
  });
}

}  // namespace

std::span<const Refusal> refusals_of_jobs() {
  static constexpr std::array kRefusals{
      Refusal{"import.no-program", starts_nothing},
      Refusal{"import.one-node", is_for_one_node},
      Refusal{"import.tasks", has_other_tasks},
      Refusal{"import.unknown", has_unknown_markers},
      Refusal{"import.array", is_an_array},
      Refusal{"import.srun", requests_the_job_by_srun},
      Refusal{"import.not-said", cannot_be_expressed},
      Refusal{"import.failed-task", has_tasks_that_fail},
  };
  return kRefusals;
}

}  // namespace nlaunch::import
