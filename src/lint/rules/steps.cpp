#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "base/registry.h"
#include "base/text.h"
#include "lint/catalogue.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/words.h"

/// The steps of a Slurm job: what srun makes of its options, and what reaches the tasks.
namespace nlaunch::lint {
namespace {

bool is_upper_name(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string_view::npos &&
         (text[0] < '0' || text[0] > '9');
}

/// The variable whose value is cut at a comma, or empty.
std::string cut_value(const std::string& list) {
  std::string last;
  for (const auto& part : text::split(list, ',')) {
    const auto equals = part.find('=');
    if (equals != std::string::npos) {
      last = part.substr(0, equals);
    } else if (!last.empty() && !part.empty() && !is_upper_name(part) && !part.ends_with("_proxy")) {
      return last;
    } else if (!last.empty()) {
      // An uppercase word may be a name; after a variable that accepts a list, it belongs to the value.
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
               {fmt::format("--export cuts off the value of {} at its comma", name),
                "srun treats every comma as the start of the next variable: the rest of the value is lost",
                fmt::format("use `export {}=…` before srun, and --export=ALL", name), ""});
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
    .explain = "srun and sbatch split the list at every comma.",
    .source = "srun(1), --export",
    .check = check_export_commas,
}};

/// `--cpu-bind=none`, or with a list of CPUs: the tasks do not get what Slurm would choose.
bool binds_otherwise(const Step& step) {
  const auto* bind = find_option(step.options, "--cpu-bind");
  if (bind == nullptr) return false;
  const auto value = value_of(*bind, "--cpu-bind");
  return std::ranges::any_of(std::array{"no", "mask", "map"},
                             [&](std::string_view word) { return value.find(word) != std::string::npos; });
}

void check_cpus_per_task(const LintInput& input, Report& report) {
  const auto* cpus = find_option(input.batch, "--cpus-per-task");
  if (!input.script || cpus == nullptr || cpus->text == "--cpus-per-task=1") return;
  const auto& environment = input.environments.front();
  if (environment.find("SRUN_CPUS_PER_TASK") != nullptr) return;
  for (const auto& step : input.steps) {
    if (has_option(step.options, {"--cpus-per-task", "-c", "--cpus-per-gpu"}) || binds_otherwise(step))
      continue;
    if (step.open_ended) continue;
    report.warning(
        step.span,
        {"srun does not inherit --cpus-per-task from the job",
         "since Slurm 22.05 each step must request its own: otherwise a task can end up with one core, and "
         "data loading crawls",
         "srun --cpus-per-task=$SLURM_CPUS_PER_TASK, or export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK", ""});
    return;  // one finding covers all
  }
}

const Registered<Rule> cpus_per_task_rule{{
    .order = 400,
    .name = "cpus-per-task",
    .title = "cpus-per-task that a step does not inherit",
    .explain = "Up to Slurm 21.08 a step inherited it from the job.",
    .source = "Slurm's release notes of 22.05",
    .check = check_cpus_per_task,
}};

/// The step of a program, if it is on a line of its own.
const Step* step_of(const LintInput& input, const Program& program) {
  const auto found = std::ranges::find_if(input.steps, [&](const Step& step) {
    return step.span.file == program.span.file && step.span.line == program.span.line;
  });
  return found == input.steps.end() ? nullptr : &*found;
}

/// It says which part of the node it needs, or that it shares.
bool takes_its_part(const Step& step) {
  return std::ranges::any_of(step.options, [](const StepOption& option) {
    return std::ranges::any_of(std::array{"--overlap", "--exact", "--gres", "--gpus", "--mem",
                                          "--oversubscribe", "--jobid", "--exclusive"},
                               [&](const char* name) { return option.text.starts_with(name); });
  });
}

bool names_its_nodes(const Step& step) {
  return std::ranges::any_of(step.options,
                             [](const StepOption& option) { return option.text.starts_with("--nodelist"); });
}

/// Between two lines the script ends a program, or waits until it has ended.
bool ends_something(const Script& script, std::uint32_t first, std::uint32_t last) {
  return std::ranges::any_of(script.commands, [&](const ScriptCommand& command) {
    return command.span.line >= first && command.span.line <= last &&
           (shell::kills(command.words) ||
            shell::is_any_of(shell::program_name(command.words[0]), {"scancel", "wait"}));
  });
}

void check_step_waits(const LintInput& input, Report& report) {
  if (!input.script || input.gpus.value_or(0) == 0) return;
  const auto& programs = input.script->programs;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const auto* step = programs[i].step && programs[i].works ? step_of(input, programs[i]) : nullptr;
    if (step == nullptr || takes_its_part(*step) || programs[i].environment.contains("SLURM_OVERLAP"))
      continue;
    for (std::size_t k = 0; k < i; ++k) {
      const auto& before = programs[k];
      const auto* other = before.step && before.works && before.background && before.step != programs[i].step
                              ? step_of(input, before)
                              : nullptr;
      const bool on_one = input.nodes.value_or(0) == 1 ||
                          (other != nullptr && names_its_nodes(*step) && names_its_nodes(*other));
      if (other == nullptr || !on_one || before.node != programs[i].node || takes_its_part(*other) ||
          ends_something(*input.script, before.span.line, step->span.line) ||
          shell::had_ended(before.waited, programs[i].waited))
        continue;
      return report.warning(
          step->span,
          {fmt::format("this step starts only when the one of line {} has ended", before.span.line),
           fmt::format(
               "since Slurm 20.11 a step has its resources alone, by default all GPUs and all memory of "
               "its nodes: {}",
               is_server(before) ? "beside a server it waits for ever (\"Requested nodes are busy\")"
                                 : "the two run one after the other"),
           "srun --overlap, or a share for each: srun --exact --gpus=N --mem=N", ""});
    }
  }
}

const Registered<Rule> step_waits_rule{{
    .order = 436,
    .name = "step-waits",
    .title = "a step that cannot start beside another one",
    .explain =
        "Steps of a job do not share resources unless they say so. A step that names none takes all of its "
        "nodes' GPUs and memory.",
    .source = "srun(1), --overlap, --exact and --gres; Slurm's release notes of 20.11",
    .check = check_step_waits,
}};

/// A variable that srun sets in each task, if the shell that reads `text` expands it: not in single quotes
/// and not after a backslash.
std::string task_variable_in(std::string_view text) {
  for (const auto& expansion : expansions_in(text))
    if (shell::is_any_of(expansion.name,
                         {"SLURM_NODEID", "SLURM_PROCID", "SLURM_LOCALID", "SLURMD_NODENAME"}))
      return expansion.name;
  return {};
}

/// The batch script runs on the first node, so such a variable then has the right value.
bool means_first(std::string_view variable) {
  return std::ranges::any_of(
      std::array<std::string_view, 8>{"LEAD", "HEAD", "MASTER", "MAIN", "FIRST", "ADDR", "SERVER", "RDZV"},
      [&](std::string_view word) { return variable.find(word) != std::string_view::npos; });
}

void check_rank_of_shell(const LintInput& input, Report& report) {
  if (!input.script || input.script->commands.empty()) return;
  // In a c10d rendezvous, the store assigns ranks.
  const auto decides_itself = [](const Step& step) {
    const auto names = [](std::string_view text) { return text.find("rdzv") != std::string_view::npos; };
    return names(step.text) || std::ranges::any_of(step.argv, names);
  };
  const auto tell = [&](const SourceSpan& span, const std::string& name) {
    report.error(
        span,
        {fmt::format("${} is expanded here, by the batch script's shell", name),
         "every task gets the value of the first node: all have the same rank",
         fmt::format("use srun bash -c '… ${} …', in single quotes, so that each task expands it", name),
         ""});
  };
  for (const auto& step : input.steps) {
    // Runs on one node now, but is written for more.
    const bool grows =
        step.text.find("NNODES") != std::string::npos || step.text.find("NUM_NODES") != std::string::npos;
    if (!(step.several || grows) || step.span.file != input.script->file || decides_itself(step)) continue;
    if (const auto name = task_variable_in(step.text); !name.empty()) tell(step.span, name);
  }
  // A path with a node's number in it, which is the first node's number for all.
  const auto tell_path = [&](const SourceSpan& span, const std::string& variable, const std::string& name) {
    report.warning(
        span,
        {fmt::format("${} is expanded here, by the batch script's shell", name),
         fmt::format("every task gets the value of the first node: {} names the same file or directory "
                     "on all nodes, and anything created here is created only on this node",
                     variable),
         fmt::format("use srun bash -c 'export {}=…${}; …', in single quotes, so that each task expands it",
                     variable, name),
         ""});
  };
  if (input.steps.empty()) return;
  const auto batch_shell = input.script->shell;
  for (const auto& command : input.script->commands) {
    if (command.shell != batch_shell || command.span.file != input.script->file) continue;
    const auto& word =
        command.words.size() > 1 && command.words[0] == "export" ? command.words[1] : command.words[0];
    const auto equals = word.find('=');
    if (equals == std::string::npos || !is_upper_name(word.substr(0, equals))) continue;
    const auto variable = word.substr(0, equals);
    const auto name = task_variable_in(command.span.source_line());
    if (name.empty() || (name == "SLURMD_NODENAME" && means_first(variable))) continue;
    const bool path = word.find('/') != std::string::npos;
    const RE2 sets_again(fmt::format(R"re((?:^|[\s;&"']){}=\S*\$)re", variable));  // in each task
    const bool again = std::ranges::any_of(input.steps, [&](const Step& step) {
      return std::ranges::any_of(step.argv,
                                 [&](const auto& one) { return RE2::PartialMatch(one, sets_again); });
    });
    const bool used = !again && std::ranges::any_of(input.steps, [&](const Step& step) {
      return step.several && (path || !decides_itself(step)) && step.span.line > command.span.line &&
             step.exported.contains(variable);
    });
    if (used && path) tell_path(command.span, variable, name);
    if (used && !path) tell(command.span, name);
  }
}

const Registered<Rule> rank_of_shell_rule{{
    .order = 405,
    .name = "rank-of-shell",
    .title = "a task's rank that the batch shell expands",
    .explain =
        "SLURM_NODEID, SLURM_PROCID and SLURM_LOCALID differ from task to task. In the batch script, before "
        "srun, they have the values of the first node: if they are expanded in srun's command line or "
        "exported "
        "there, all tasks get the same values.",
    .source = "srun(1), OUTPUT ENVIRONMENT VARIABLES; sbatch(1)",
    .check = check_rank_of_shell,
}};

void check_node_list(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& step : input.steps) {
    if (!step.argv.empty() && shell::node_of(step.argv[0])) {
      report.error(
          step.span,
          {"srun gets several nodes as several words: the second one is the program that it starts",
           "no program has the name of a node, and the step fails at once",
           "join them with commas: LIST=$(IFS=,; echo \"${NODES[*]}\"), then srun -w \"$LIST\"", ""});
      continue;
    }
    for (const auto& option : step.options) {
      constexpr std::string_view kList = "--nodelist=";
      if (!option.text.starts_with(kList)) continue;
      const auto list = std::string_view(option.text).substr(kList.size());
      // Blanks separate nodes as commas do.
      const bool several = list.find('\n') != std::string_view::npos;
      if (!several && !list.empty()) continue;
      report.error(
          step.span,
          {several ? "srun -w gets several nodes in one word, separated by line breaks"
                   : "srun -w gets no node: its value is empty",
           "Slurm knows no node with this name, and the step does not start",
           "use one element per node: NODES=($(scontrol show hostnames \"$SLURM_JOB_NODELIST\")), without "
           "quotes around it",
           ""});
      break;
    }
  }
}

const Registered<Rule> node_list_rule{{
    .order = 407,
    .name = "node-list",
    .title = "a step on nodes whose names are not separated",
    .explain =
        "NODES=(\"$LIST\") is an array with one element that contains all names: the first element is all of "
        "them, the second is empty. A list for srun has commas or blanks within one word.",
    .source = "bash(1), Arrays; srun(1), --nodelist; Slurm src/common/hostlist.c, hostlist_create_dims",
    .check = check_node_list,
}};

/// `--export=A=1`: a list without ALL and NONE.
bool drops_environment(const shell::Words& words) {
  const auto list = shell::option(words, words.size(), "", "--export");
  if (!list || list->empty()) return false;
  const auto names = text::split(*list, ',');
  return std::ranges::none_of(
             names, [](const auto& one) { return one == "ALL" || one == "NONE" || one == "NIL"; }) &&
         std::ranges::any_of(names, [](const auto& one) { return one.contains('='); });
}

void check_export_drops(const LintInput& input, Report& report) {
  if (!input.script) return;
  std::set<std::uint32_t> told;
  for (const auto& command : input.script->commands) {
    const auto name = shell::program_name(command.words[0]);
    if ((name != "sbatch" && name != "srun") || !drops_environment(command.words) ||
        !told.insert(command.span.line).second)
      continue;
    report.note(command.span,
                {name == "sbatch" ? "the job gets only these variables, not the others of this environment"
                                  : "the tasks get only these variables, not the others of the job",
                 "a list in --export replaces the environment: PATH, the modules and the virtual environment "
                 "are not passed on",
                 "--export=ALL,NAME=VALUE", ""});
  }
}

const Registered<Rule> export_drops_rule{{
    .order = 551,
    .name = "export-drops",
    .title = "--export with a list that drops the rest of the environment",
    .explain = "Without ALL, only the variables of the list are passed on.",
    .source = "sbatch(1), srun(1), --export",
    .check = check_export_drops,
}};

void check_uncomputed(const LintInput& input, Report& report) {
  static const RE2 kComputes(
      R"re(^(--(?:ntasks|nodes|ntasks-per-node|cpus-per-task|gpus|gpus-per-node|gpus-per-task))=([\w{}]+[*+/][\w{}]+)$)re");
  const auto check = [&](const StepOption& option) {
    std::string name;
    std::string value;
    if (!RE2::FullMatch(option.text, kComputes, &name, &value)) return;
    report.error(option.span, {fmt::format("Slurm does not compute {}", text::printable(value)),
                               fmt::format("{} takes a number: the step is refused", name),
                               "$((A * B)) in the script, and its value here", ""});
  };
  for (const auto& option : input.batch) check(option);
  for (const auto& step : input.steps) std::ranges::for_each(step.options, check);
}

const Registered<Rule> uncomputed_rule{{
    .order = 552,
    .name = "uncomputed",
    .title = "a product where Slurm takes a number",
    .explain = "Neither Slurm nor bash computes 2*4 in an option.",
    .source = "srun(1), --ntasks",
    .check = check_uncomputed,
}};

void check_errors_in_value(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kTakes(
      R"re((?i)^\s*(?:export\s+|local\s+)?(\w*(?:ip|addr|address|host|hostname|node|port))="?\$\((\s*(?:srun|ssh)\s[^)]*2>&1[^)]*)\))re");
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    std::string name;
    std::string command;
    if (!RE2::PartialMatch(lines.command(number), kTakes, &name, &command)) continue;
    report.note(
        lines.whole(number),
        {fmt::format("the messages of srun become part of {}", name),
         "2>&1 adds what srun, or the site's prolog, prints as an error to the value", "leave out 2>&1", ""});
  }
}

const Registered<Rule> errors_in_value_rule{{
    .order = 571,
    .name = "errors-in-value",
    .title = "an address with messages in it",
    .explain =
        "Reported for NAME=$(srun … 2>&1) and NAME=$(ssh … 2>&1), if NAME is a host, an address or a port.",
    .source = "bash(1), Command Substitution",
    .check = check_errors_in_value,
}};

}  // namespace
}  // namespace nlaunch::lint
