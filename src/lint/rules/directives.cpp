#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "plan/slurm.h"
#include "shell/allocation.h"
#include "shell/words.h"

/// What sbatch makes of the directives of a script, and of the folders in them.
namespace nlaunch::lint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNameCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

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

/// `{log_dir}`: a program fills it in before the script is submitted.
bool has_placeholder(const std::string& text) {
  static const RE2 kPlaceholder(R"re((?:^|[^$])\{\w+\})re");
  return RE2::PartialMatch(text, kPlaceholder);
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
      if (!is_expanded(folder).empty() || has_placeholder(folder) ||
          expanded.find('%') != std::string::npos || is_said_to_exist(input, expanded))
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
          has_placeholder(path) || path.find("rec-") != std::string::npos)
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

void check_fewer_tasks(const LintInput& input, Report& report) {
  const auto number = [&](std::string_view name) {
    const auto* option = find_option(input.batch, name);
    return option == nullptr ? std::nullopt : text::whole_number<std::uint32_t>(value_of(*option, name));
  };
  const auto nodes = number("--nodes");
  const auto tasks = number("--ntasks");
  if (!nodes || !tasks || *tasks == 0 || *tasks >= *nodes) return;
  report.warning(
      find_option(input.batch, "--ntasks")->span,
      {fmt::format("{} for {}", text::count(*tasks, "task"), text::count(*nodes, "node")),
       fmt::format("Slurm gives the job no more nodes than it has tasks: \"can't run {} processes on "
                   "{} nodes, setting nnodes to {}\"",
                   *tasks, *nodes, *tasks),
       "--ntasks-per-node=1", ""});
}

const Registered<Rule> fewer_tasks_rule{{
    .order = 570,
    .name = "fewer-tasks",
    .title = "fewer tasks than nodes",
    .explain = "--ntasks is for the whole job, not for a node.",
    .source = "Slurm, src/sbatch/opt.c; sbatch(1), --ntasks",
    .check = check_fewer_tasks,
}};

}  // namespace
}  // namespace nlaunch::lint
