#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/registry.h"
#include "base/text.h"
#include "lint/catalogue.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "plan/slurm.h"
#include "shell/allocation.h"
#include "shell/words.h"

/// The directives of a Slurm job and the options of its steps: what sbatch and srun make of them.
namespace nlaunch::lint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNameCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

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

/// The part of a path that a shell would expand but sbatch does not; empty if none.
std::string is_expanded(std::string_view value) {
  if (value == "~" || value.starts_with("~/")) return "~";
  const auto at = value.find('$');
  if (at == std::string_view::npos) return {};
  auto name = value.substr(at);
  const bool braces = name.size() > 1 && name[1] == '{';
  const auto end = braces ? std::min(name.find('}'), name.size() - 1) + 1
                          : std::min(name.find_first_not_of(kNameCharacters, 1), name.size());
  return std::string(name.substr(0, end));
}

void check_unexpanded(const LintInput& input, Report& report) {
  for (const auto& option : input.batch) {
    const auto equals = option.text.find('=');
    // Other programs interpret --wrap and --comment; slurmd reads --export.
    if (equals == std::string::npos || option.text.starts_with("--comment=")) continue;
    const auto text = is_expanded(std::string_view(option.text).substr(equals + 1));
    if (text.empty()) continue;
    const auto name = option.text.substr(0, equals);
    const bool path = name == "--output" || name == "--error" || name == "--input" || name == "--chdir";
    report.error(
        option.span,
        {fmt::format("sbatch does not expand {}: {} gets it verbatim", text, name),
         path ? "no shell reads #SBATCH lines: Slurm looks for a directory with exactly this name, and the "
                "job fails without any output"
              : "no shell reads #SBATCH lines",
         path ? fmt::format("write out the path, or pass {} on sbatch's command line; %u is the user", name)
              : fmt::format("pass {} on sbatch's command line, where a shell expands it", name),
         ""});
  }
}

const Registered<Rule> unexpanded_rule{{
    .order = 418,
    .name = "unexpanded",
    .title = "a variable in #SBATCH, which is never expanded",
    .explain =
        "#SBATCH lines are comments for bash, and sbatch expands only file name patterns in them (%j, %x, "
        "%u). $HOME and ~ are not expanded.",
    .source = "sbatch(1)",
    .check = check_unexpanded,
}};

/// %j and similar patterns, which no directory can have before the job exists.
bool names_job(std::string_view folder) {
  for (auto at = folder.find('%'); at != std::string_view::npos && at + 1 < folder.size();
       at = folder.find('%', at + 2)) {
    const auto letter = folder.find_first_not_of("0123456789", at + 1);
    if (letter != std::string_view::npos &&
        std::string_view("jJAats").find(folder[letter]) != std::string_view::npos)
      return true;
  }
  return false;
}

/// Relative to where sbatch may be called: next to the script, and in the directories above it.
bool is_seen(const LintInput& input, const std::string& folder) {
  auto place = fs::path(input.script->file->name).parent_path();
  if (input.folder_exists(folder)) return true;
  while (!place.empty()) {
    if (input.folder_exists(place / folder)) return true;
    if (place == place.parent_path()) break;
    place = place.parent_path();
  }
  return false;
}

/// %x and %u replaced by the name of the job, if a directive gives it, and of the user.
std::string with_names(const LintInput& input, std::string folder, const std::string& user) {
  const auto* option = find_option(input.batch, "--job-name");
  const auto job = option != nullptr ? value_of(*option, "--job-name") : std::string();
  RE2::GlobalReplace(&folder, "%u", user);
  if (!job.empty() && job.find('\\') == std::string::npos) RE2::GlobalReplace(&folder, "%x", job);
  return folder;
}

void check_no_interpreter(const LintInput& input, Report& report) {
  if (!input.script || !input.script->file || input.batch.empty()) return;
  const auto& file = input.script->file;
  if (file->text.starts_with("#!")) return;
  report.error({file, 1, 1, 1},
               {"sbatch refuses this script: its first line does not begin with #!",
                "\"This does not look like a batch script\": the first line must name the interpreter",
                "#!/bin/bash as the first line", ""});
}

const Registered<Rule> no_interpreter_rule{{
    .order = 402,
    .name = "no-interpreter",
    .title = "a batch script without #!",
    .explain = "sbatch accepts only a script whose first line names its interpreter.",
    .source = "sbatch(1), DESCRIPTION",
    .check = check_no_interpreter,
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
  static const shell::Options kEnds{"kill", "pkill", "killall", "scancel", "wait"};
  return std::ranges::any_of(script.commands, [&](const ScriptCommand& command) {
    return command.span.line >= first && command.span.line <= last &&
           kEnds.contains(shell::program_name(command.words[0]));
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

/// Relative paths are those of another directory.
bool runs_elsewhere(const LintInput& input) {
  return std::ranges::any_of(input.batch, [](const auto& option) {
    const auto folder = value_of(option, "--chdir");
    return !folder.empty() && folder != "." && folder != "./";
  });
}

/// `--exists logs/`
bool is_said_to_exist(const LintInput& input, const std::string& folder) {
  return std::ranges::any_of(input.existing, [&](std::string_view path) {
    while (path.ends_with('/')) path.remove_suffix(1);
    while (path.starts_with("./")) path.remove_prefix(2);
    return path == folder || path.ends_with("/" + folder);
  });
}

void check_output_folder(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& option : input.batch) {
    for (const auto* name : {"--output", "--error"}) {
      const auto path = value_of(option, name);
      const auto slash = path.rfind('/');
      if (slash != std::string::npos && names_job(path.substr(0, slash))) {
        report.warning(
            option.span,
            {fmt::format("{} is in a directory named after the job", option.text),
             "Slurm does not create directories, and this one cannot be created before the job has its id: "
             "the job fails without any output",
             "put the id into the file name: an existing directory, then %x-%j.out", ""});
        return;
      }
      if (slash == std::string::npos || slash == 0) continue;
      const auto folder = path.substr(0, slash);
      const bool pattern = folder.find('%') != std::string::npos;
      const auto expanded = with_names(input, folder, std::string(shell::Allocation::kUser));
      if (!is_expanded(folder).empty() || expanded.find('%') != std::string::npos ||
          is_said_to_exist(input, expanded))
        continue;
      const auto& submitted = input.script->folder;
      const bool made = std::ranges::any_of(input.script->commands, [&](const ScriptCommand& command) {
        return command.words[0] == "mkdir" &&
               std::ranges::any_of(command.words, [&](const std::string& text) {
                 return text == expanded || text == expanded + "/" || "./" + text == expanded ||
                        text == "./" + expanded || (!submitted.empty() && text == submitted + "/" + expanded);
               });
      });
      const bool missing = !pattern && path[0] != '/' && input.folder_exists && !runs_elsewhere(input) &&
                           !is_seen(input, folder);
      if (!made && !missing) continue;
      if (!made) {
        report.note(
            option.span,
            {fmt::format("the log directory {} does not exist here", folder),
             "Slurm opens this file before the script starts, and does not create directories: submitted "
             "from here, the job fails without any output",
             fmt::format("run `mkdir -p {}` before sbatch", folder), ""});
        return;
      }
      report.warning(
          option.span,
          {fmt::format("the script creates {} itself, after Slurm needs it", folder),
           "Slurm opens this file before the script starts: if the directory is missing, the job "
           "fails without any output",
           fmt::format("run `mkdir -p {}` before sbatch", with_names(input, folder, "$USER")), ""});
      return;
    }
  }
}

const Registered<Rule> output_folder_rule{{
    .order = 420,
    .name = "output-folder",
    .title = "a log directory that is created too late, or cannot exist",
    .explain =
        "Slurm opens --output and --error before the script's first line, and does not create directories: "
        "one that the script creates comes too late, and one named after the job (%j) cannot exist. A "
        "relative "
        "path is looked up here and next to the script.",
    .source = "sbatch(1), --output",
    .check = check_output_folder,
}};

/// "--nodes" of "# SBATCH --nodes=2"; empty for any other comment.
std::string parted_option(std::string_view comment) {
  constexpr std::string_view kWord = "SBATCH";
  const auto rest = text::trim(comment.substr(1));
  if (rest.data() == comment.data() + 1 || !rest.starts_with(kWord)) return {};
  const auto words = directive_words(rest.substr(kWord.size()));
  if (words.empty() || words[0].size() < 2 || !words[0].starts_with('-')) return {};
  const auto option = long_option(words[0]);
  return option.substr(0, option.find('='));
}

/// True if the option is given, or another one that requests the same.
bool is_replaced(const std::vector<StepOption>& options, std::string_view option) {
  const std::array<std::vector<std::string_view>, 2> kinds{
      {{"--mem", "--mem-per-cpu", "--mem-per-gpu"},
       {"--gres", "--gpus", "--gpus-per-node", "--gpus-per-task"}}};
  return has_option(options, {option}) || std::ranges::any_of(kinds, [&](const auto& kind) {
           return std::ranges::find(kind, option) != kind.end() &&
                  std::ranges::any_of(kind, [&](auto one) { return has_option(options, {one}); });
         });
}

/// `#SBSTCH --mem=8G`, `#sbatch -N 2`.
bool is_misspelt(const std::string& comment) {
  static const RE2 kLike(R"re(^#([A-Z]{5,8}|sbatch)\s+-{1,2}[A-Za-z])re");
  static const std::vector<std::string> kMeant{"SBATCH"};
  std::string word;
  if (!RE2::PartialMatch(comment, kLike, &word) || word == "SBATCH") return false;
  return word == "sbatch" || text::nearest(word, kMeant).has_value();
}

void check_lost_directive(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto first = input.script->first_command;
  for (const auto& comment : input.script->comments) {
    const auto word = comment.text.substr(0, comment.text.find_first_of(" \t"));
    const bool meant = word == "#SBATCH";
    const bool late = meant && first > 0 && comment.span.line > first;
    if (const auto option = parted_option(comment.text);
        !option.empty() && (first == 0 || comment.span.line < first) && !is_replaced(input.batch, option)) {
      report.note(comment.span, {fmt::format("# SBATCH with a space is a comment: {} is ignored", option),
                                 "sbatch reads only lines that start with #SBATCH, without a space",
                                 "use #SBATCH, or ##SBATCH to turn it off", ""});
    } else if (is_misspelt(comment.text)) {
      report.warning(comment.span, {fmt::format("{} is not #SBATCH", word),
                                    "sbatch treats the line as a comment", "#SBATCH", ""});
    } else if (late) {
      report.warning(comment.span,
                     {"this #SBATCH is after the first command",
                      "sbatch reads #SBATCH lines up to the first command: this one is a comment",
                      "move it before the first command", ""});
    }
  }
}

const Registered<Rule> lost_directive_rule{{
    .order = 430,
    .name = "lost-directive",
    .title = "an #SBATCH line that sbatch does not see",
    .explain = "sbatch reads lines that start with #SBATCH, up to the first command. A misspelled line, "
               "one with a space in #SBATCH, or one that comes later is a comment.",
    .source = "sbatch(1)",
    .check = check_lost_directive,
}};

void check_sbatch_option(const LintInput& input, Report& report) {
  constexpr std::array<std::string_view, 8> kOfSrun{"cpu-bind", "mpi",        "kill-on-bad-exit", "label",
                                                    "pty",      "unbuffered", "multi-prog",       "relative"};
  for (const auto& option : input.batch) {
    if (!option.text.starts_with("--")) continue;
    const auto name = option.text.substr(2, option.text.find('=') - 2);
    if (name.empty() || plan::sbatch_takes(name)) continue;
    const bool of_srun = std::ranges::find(kOfSrun, name) != kOfSrun.end();
    auto known = plan::sbatch_options();
    for (const auto* more :
         {"nodes", "ntasks", "ntasks-per-node", "array", "export", "chdir", "signal", "requeue"})
      known.emplace_back(more);
    const auto near = text::nearest(name, known);
    const bool begins =
        std::ranges::any_of(known, [&](const std::string& one) { return one.starts_with(name); });
    if (!near && !of_srun && !begins) continue;  // a site's plugins have their own options
    report.error(option.span, {of_srun ? fmt::format("--{} is an option of srun, not of sbatch", name)
                                       : fmt::format("sbatch has no option --{}", name),
                               "sbatch rejects the script",
                               of_srun ? fmt::format("use srun --{} in front of the program", name)
                               : near  ? fmt::format("--{}, if that is what you meant", *near)
                                       : "use the full name of the option",
                               ""});
  }
}

const Registered<Rule> sbatch_option_rule{{
    .order = 435,
    .name = "sbatch-option",
    .title = "an option in #SBATCH that sbatch does not have",
    .explain =
        "A misspelled option, one that only srun has, or an ambiguous prefix. Other unknown options may come "
        "from a site plugin and are not reported.",
    .source = "sbatch(1); Slurm src/common/slurm_opt.c",
    .check = check_sbatch_option,
}};

void check_stray_word(const LintInput& input, Report& report) {
  const SourceSpan* told = nullptr;
  for (const auto& word : input.stray) {
    if (word.text == "hetjob" || word.text == "packjob" || word.text == ":") continue;
    if (told != nullptr && told->line == word.span.line) continue;
    told = &word.span;
    const auto before = std::ranges::find_if(input.batch, [&](const StepOption& option) {
      return option.span.line == word.span.line &&
             (option.text.starts_with("--nodelist") || option.text.starts_with("--exclude"));
    });
    const bool list = before != input.batch.end();
    report.error(word.span,
                 {fmt::format("'{}' does not belong to any option", word.text),
                  list ? "a node list uses commas, not spaces: names after a space are not part of it"
                       : "sbatch treats it as an argument, and reads no options after it",
                  list ? fmt::format("{},{}", before->text, word.text)
                       : "quote a value with spaces; put a # before a comment",
                  ""});
  }
}

const Registered<Rule> stray_word_rule{{
    .order = 437,
    .name = "stray-word",
    .title = "a word in #SBATCH that does not belong to any option",
    .explain =
        "An option takes one word. The second node of --nodelist=a b, or the rest of an unquoted value with "
        "spaces, is lost or ends option parsing.",
    .source = "sbatch(1); getopt(3)",
    .check = check_stray_word,
}};

void check_array_output(const LintInput& input, Report& report) {
  if (!input.script || !has_option(input.batch, {"--array"})) return;
  for (const auto& option : input.batch) {
    const bool path = option.text.starts_with("--output=") || option.text.starts_with("--error=");
    if (!path) continue;
    const auto name = std::string_view(option.text).substr(option.text.find('=') + 1);
    const bool own =
        std::ranges::any_of(std::array{"%a", "%j", "%N", "/dev/null"},
                            [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
    const bool to_fill_in = name.find('<') != std::string_view::npos;
    if (own || to_fill_in) continue;
    report.warning(option.span,
                   {"all tasks of the array write to one file",
                    "each truncates it when it starts (--open-mode=truncate), and their lines are mixed",
                    "use %A_%a in the name", ""});
    return;
  }
}

const Registered<Rule> array_output_rule{{
    .order = 426,
    .name = "array-output",
    .title = "a log that all tasks of an array share",
    .explain = "%A is the job id of the array, %a the index of the task, %j the job id of the task.",
    .source = "sbatch(1), filename pattern",
    .check = check_array_output,
}};

void check_array_name(const LintInput& input, Report& report) {
  if (!input.script || has_option(input.batch, {"--array"}) ||
      input.script->file->text.find("SLURM_ARRAY_") != std::string::npos)
    return;
  for (const auto& option : input.batch) {
    const bool path = option.text.starts_with("--output=") || option.text.starts_with("--error=");
    if (!path || option.text.find("%a") == std::string::npos) continue;
    report.note(option.span, {"%a is the array index, but this job is not an array",
                              "Slurm writes 4294967294 instead", "use %j, or --array", ""});
    return;
  }
}

const Registered<Rule> array_name_rule{{
    .order = 425,
    .name = "array-name",
    .title = "an array index in a log name, without an array",
    .explain = "Without --array, the index has the value that stands for no index.",
    .source = "sbatch(1), filename pattern; Slurm src/slurmd/slurmstepd/fname.c",
    .check = check_array_name,
}};

/// A variable that srun sets in each task, if the shell that reads `text` expands it: not in single quotes
/// and not after a backslash.
std::string task_variable_in(std::string_view text) {
  constexpr std::array<std::string_view, 4> kOfTask{"SLURM_NODEID", "SLURM_PROCID", "SLURM_LOCALID",
                                                    "SLURMD_NODENAME"};
  bool single = false;
  bool twice = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\' && !single) {
      ++at;
    } else if (c == '\'' && !twice) {
      single = !single;
    } else if (c == '"' && !single) {
      twice = !twice;
    } else if (c == '$' && !single) {
      auto name = text.substr(at + 1);
      if (name.starts_with('{')) name.remove_prefix(1);
      for (const auto known : kOfTask) {
        const auto end = name.substr(std::min(known.size(), name.size()));
        if (name.starts_with(known) && (end.empty() || !is_upper_name(end.substr(0, 1))))
          return std::string(known);
      }
    }
  }
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
      const bool several = list.find_first_of(" \n\t") != std::string_view::npos;
      if (!several && !list.empty()) continue;
      report.error(
          step.span,
          {several ? "srun -w gets several nodes in one word, separated by spaces"
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
        "them, the second is empty. A list for srun uses commas.",
    .source = "bash(1), Arrays; srun(1), --nodelist",
    .check = check_node_list,
}};

/// The GPUs that an option requests: 4 of "--gres=gpu:a100:4", "--gpus=4"; nullopt: none, or not a number.
std::optional<std::uint32_t> gpus_in(const std::vector<StepOption>& options, std::string_view name) {
  const auto* option = find_option(options, name);
  if (option == nullptr) return std::nullopt;
  auto value = value_of(*option, name);
  if (name == "--gres" && !value.starts_with("gpu")) return std::nullopt;
  if (value.find(',') != std::string::npos) return std::nullopt;
  return text::whole_number<std::uint32_t>(value.substr(value.rfind(':') + 1));
}

void check_gpu_requests(const LintInput& input, Report& report) {
  const auto all = gpus_in(input.batch, "--gpus");
  if (!all || !input.nodes || !input.components.empty()) return;
  for (const auto* name : {"--gpus-per-node", "--gres", "--gpus-per-task"}) {
    const auto each = gpus_in(input.batch, name);
    const auto asked = shell::asked_for([&](std::string_view option) {
      const auto* found = find_option(input.batch, fmt::format("--{}", option));
      return found == nullptr ? "" : value_of(*found, fmt::format("--{}", option));
    });
    const auto tasks = std::max(1U, asked.tasks);
    const auto per_node =
        std::string_view(name) == "--gpus-per-task" ? each.value_or(0) * tasks : each.value_or(0);
    if (!each || per_node * *input.nodes == *all) continue;
    return report.warning(
        find_option(input.batch, "--gpus")->span,
        {fmt::format("--gpus={} is not what {} asks for: {} nodes with {} each are {}", *all, name,
                     *input.nodes, text::count(per_node, "GPU"), per_node * *input.nodes),
         "--gpus is the number of GPUs of the whole job: Slurm rejects the job, or gives it fewer GPUs "
         "than the programs expect",
         fmt::format("{} alone", name), ""});
  }
}

const Registered<Rule> gpu_requests_rule{{
    .order = 403,
    .name = "gpu-requests",
    .title = "two requests for GPUs that differ",
    .explain = "--gpus counts the GPUs of the job, --gpus-per-node and --gres those of each node, and "
               "--gpus-per-task those of each task.",
    .source = "sbatch(1), --gpus",
    .check = check_gpu_requests,
}};

void check_given_twice(const LintInput& input, Report& report) {
  if (!input.script || !input.components.empty()) return;
  for (std::size_t i = 0; i < input.batch.size(); ++i) {
    const auto& later = input.batch[i];
    const auto name = later.text.substr(0, later.text.find('='));
    const auto value = value_of(later, name);
    if (value.empty() || name == "--mail-type") continue;  // sbatch adds those up
    for (std::size_t k = 0; k < i; ++k) {
      const auto before = value_of(input.batch[k], name);
      if (before.empty() || before == value || input.batch[k].span.line == later.span.line) continue;
      return report.warning(later.span, {fmt::format("{} is already {} on line {}", name,
                                                     text::printable(before), input.batch[k].span.line),
                                         "sbatch silently uses the last one", "remove the other line", ""});
    }
  }
}

const Registered<Rule> given_twice_rule{{
    .order = 404,
    .name = "given-twice",
    .title = "a directive that another one overrides",
    .explain = "Of two #SBATCH lines with the same option, the last one counts.",
    .source = "sbatch(1)",
    .check = check_given_twice,
}};

void check_step_folder(const LintInput& input, Report& report) {
  if (!input.script || !input.folder_exists || runs_elsewhere(input)) return;
  for (const auto& step : input.steps) {
    for (const auto* name : {"--output", "--error"}) {
      const auto* option = find_option(step.options, name);
      const auto path = option == nullptr ? "" : value_of(*option, name);
      const auto slash = path.rfind('/');
      if (slash == std::string::npos || slash == 0 || path[0] == '/' || path.find('%') < slash ||
          path.find("rec-") != std::string::npos)
        continue;
      const auto folder = path.substr(0, slash);
      const bool made = std::ranges::any_of(input.script->commands, [&](const ScriptCommand& command) {
        return command.words[0] == "mkdir" &&
               std::ranges::any_of(command.words, [&](const std::string& word) {
                 return word == folder || word == folder + "/" || word == "./" + folder ||
                        word.ends_with("/" + folder) || word.starts_with(folder + "/");
               });
      });
      const bool moves = std::ranges::any_of(
          input.script->commands, [](const ScriptCommand& command) { return command.words[0] == "cd"; });
      if (made || moves || is_seen(input, folder)) continue;
      return report.warning(
          step.span,
          {fmt::format("the directory {} of this step's output does not exist here, and the script does not "
                       "create it",
                       text::printable(folder)),
           "srun does not create directories: \"Unable to open file\", and the step does not start",
           fmt::format("mkdir -p {} before srun", text::shell_quote(folder)), ""});
    }
  }
}

const Registered<Rule> step_folder_rule{{
    .order = 406,
    .name = "step-folder",
    .title = "the output of a step in a directory that nothing creates",
    .explain = "srun opens the files of --output and --error before it starts the tasks.",
    .source = "srun(1), --output",
    .check = check_step_folder,
}};

}  // namespace
}  // namespace nlaunch::lint
