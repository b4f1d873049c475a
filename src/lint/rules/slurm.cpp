#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/registry.h"
#include "base/text.h"
#include "lint/catalogue.h"
#include "lint/rule.h"

namespace nlaunch::lint {
namespace {

std::string value_of(const StepOption& option, std::string_view name) {
  const auto text = std::string_view(option.text);
  return text.starts_with(name) && text.substr(name.size()).starts_with('=')
             ? std::string(text.substr(name.size() + 1))
             : std::string();
}

bool is_upper_name(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string_view::npos &&
         (text[0] < '0' || text[0] > '9');
}

/// The variable whose value a comma cuts in two, or nothing.
std::string cut_value(const std::string& list) {
  std::string last;
  for (const auto& part : text::split(list, ',')) {
    const auto equals = part.find('=');
    if (equals != std::string::npos) {
      last = part.substr(0, equals);
    } else if (!last.empty() && !part.empty() && !is_upper_name(part) && !part.ends_with("_proxy")) {
      return last;
    } else if (!last.empty()) {
      // A word in capitals may be a name; behind a variable that takes a list it is more of its value.
      const auto known = find_variables(last);
      if (!known.empty() && known.front()->type == ValueType::list && find_variables(part).empty())
        return last;
    }
  }
  return {};
}

void check_export(const StepOption& option, Report& report) {
  const auto list = value_of(option, "--export");
  const auto name = cut_value(list);
  if (name.empty()) return;
  report.error(option.span,
               {fmt::format("--export cuts the value of {} at its comma", name),
                "srun takes every comma for the start of the next variable: the rest of the value is lost",
                fmt::format("export {}=… in front of srun, and --export=ALL", name), ""});
}

bool has(const std::vector<StepOption>& options, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(options, [&](const StepOption& option) {
    return std::ranges::any_of(names, [&](std::string_view name) {
      return option.text == name || option.text.starts_with(std::string(name) + "=") ||
             (!name.starts_with("--") && option.text.starts_with(name));
    });
  });
}

void check_export_commas(const LintInput& input, Report& report) {
  for (const auto& option : input.batch) check_export(option, report);
  for (const auto& step : input.steps) {
    for (const auto& option : step.options) check_export(option, report);
  }
}

const Registered<Rule> export_commas_rule{{
    .order = 390,
    .name = "export-commas",
    .title = "a value with commas in --export",
    .explain = "srun and sbatch part the list at every comma.",
    .source = "srun(1), --export",
    .check = check_export_commas,
}};

void check_cpus_per_task(const LintInput& input, Report& report) {
  if (!input.script || !has(input.batch, {"--cpus-per-task"})) return;
  const auto& environment = input.environments.front();
  if (environment.find("SRUN_CPUS_PER_TASK") != nullptr) return;
  for (const auto& step : input.steps) {
    if (has(step.options, {"--cpus-per-task", "-c", "--cpus-per-gpu", "--exclusive", "--cpu-bind"})) continue;
    if (step.open_ended) continue;
    report.warning(
        step.span,
        {"srun does not take over --cpus-per-task from the job",
         "since Slurm 22.05 each step asks for itself: without it a task may be left with one core, and data "
         "loading crawls",
         "srun --cpus-per-task=$SLURM_CPUS_PER_TASK, or export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK", ""});
    return;  // the first says it for all
  }
}

const Registered<Rule> cpus_per_task_rule{{
    .order = 400,
    .name = "cpus-per-task",
    .title = "cpus-per-task that a step does not take over",
    .explain = "Up to Slurm 21.08 a step took it from the job.",
    .source = "Slurm's release notes of 22.05",
    .check = check_cpus_per_task,
}};

void check_usr1(const LintInput& input, Report& report) {
  for (const auto& option : input.batch) {
    const auto signal = value_of(option, "--signal");
    if (signal.find("USR1") == std::string::npos && signal.find(":10@") == std::string::npos &&
        !signal.starts_with("10@"))
      continue;
    report.warning(
        option.span,
        {"--signal asks for USR1",
         "NCCL's and some frameworks' own handlers take this signal, or die of it: the job ends where it "
         "should "
         "have been saved",
         fmt::format("USR2, or TERM: --signal={}@…", signal.starts_with("B:") ? "B:USR2" : "USR2"), ""});
  }
}

const Registered<Rule> usr1_rule{{
    .order = 410,
    .name = "usr1",
    .title = "a warning signal that others use",
    .explain = "USR1's default is to end a process, and libraries take it for their own ends.",
    .source = "facebookincubator/submitit pull request 1708",
    .check = check_usr1,
}};

void check_output_folder(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& option : input.batch) {
    for (const auto* name : {"--output", "--error"}) {
      const auto path = value_of(option, name);
      const auto slash = path.rfind('/');
      if (slash == std::string::npos || slash == 0 || path.find('%') < slash) continue;
      const auto folder = path.substr(0, slash);
      const bool made = std::ranges::any_of(input.script->commands, [&](const Command& command) {
        return command.name() == "mkdir" && std::ranges::any_of(command.words, [&](const Word& word) {
                 const auto text = word.constant().value_or("");
                 return text == folder || text == folder + "/" || "./" + text == folder ||
                        text == "./" + folder;
               });
      });
      if (!made) continue;
      report.warning(option.span,
                     {fmt::format("the script makes {} itself, where Slurm already wants to write", folder),
                      "Slurm opens this file before the script begins: without the folder the job fails, and "
                      "leaves no line",
                      fmt::format("mkdir -p {} before sbatch", folder), ""});
      return;
    }
  }
}

const Registered<Rule> output_folder_rule{{
    .order = 420,
    .name = "output-folder",
    .title = "a log folder that is made too late",
    .explain = "Slurm opens --output and --error before the script's first line.",
    .source = "sbatch(1), --output",
    .check = check_output_folder,
}};

void check_lost_directive(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto& commands = input.script->commands;
  for (const auto& comment : input.script->comments) {
    const auto word = comment.text.substr(0, comment.text.find_first_of(" \t"));
    const bool meant = word == "#SBATCH";
    const bool late = meant && !commands.empty() && comment.span.line > commands.front().span.line;
    constexpr std::array<std::string_view, 6> kMisspelt{"#SBTACH", "#SBACTH", "#SABTCH",
                                                        "#SBATH",  "#SBTCH",  "#sbatch"};
    if (std::ranges::find(kMisspelt, word) != kMisspelt.end()) {
      report.warning(comment.span, {fmt::format("{} is not #SBATCH", word),
                                    "sbatch takes the line for a comment", "#SBATCH", ""});
    } else if (late) {
      report.warning(comment.span, {"this #SBATCH stands behind the first command",
                                    "sbatch reads them up to the first command: this one is a comment",
                                    "move it up, above everything that runs", ""});
    }
  }
}

const Registered<Rule> lost_directive_rule{{
    .order = 430,
    .name = "lost-directive",
    .title = "a line for sbatch that sbatch does not see",
    .explain = "sbatch reads lines that begin with #SBATCH, up to the first command. A misspelt one is a "
               "comment, and so is one that comes later.",
    .source = "sbatch(1)",
    .check = check_lost_directive,
}};

}  // namespace
}  // namespace nlaunch::lint
