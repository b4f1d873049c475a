#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_gaps.h"
#include "lint/script_text.h"
#include "lint/shell_options.h"
#include "shell/words.h"

/// What a script itself does wrong before its programs start, and what bash did not reach in it.
namespace nlaunch::lint {
namespace {

void tell(const std::vector<Unread>& all, Report& report) {
  for (const auto& one : all) {
    const Report::Saying said{one.message, one.why, one.instead, ""};
    if (one.severity == Severity::error)
      report.error(one.span, said);
    else if (one.severity == Severity::warning)
      report.warning(one.span, said);
    else
      report.note(one.span, said);
  }
}

void check_unreadable(const LintInput& input, Report& report) {
  if (input.script) tell(input.script->unread, report);
}

const Registered<Rule> unreadable_rule{{
    .order = 350,
    .name = "unreadable",
    .title = "part of a script that bash did not reach",
    .explain =
        "nlaunch examines a script by letting bash run it without effects. The script can exit early "
        "there: an argument is missing, a variable is unset under set -u, or it reaches a limit. "
        "Everything up to that line is linted. Pass arguments after --, and variables with --env "
        "NAME=VALUE. "
        "A file, a program, a container or an answer that a script tests for and that only the cluster "
        "has is assumed to be there, with a note. "
        "Nothing is known about a sourced or started script that is not here.",
    .check = check_unreadable,
}};

void check_no_folder(const LintInput& input, Report& report) {
  if (input.script) tell(input.script->not_started, report);
}

const Registered<Rule> no_folder_rule{{
    .order = 357,
    .name = "no-folder",
    .title = "output into a directory that does not exist",
    .explain = "bash opens the file after > before it starts a program, and does not create directories: if "
               "the "
               "directory is missing, the program does not start. Directories are searched for in the "
               "directory where lint is called, then next to the script.",
    .source = "bash(1), REDIRECTION",
    .check = check_no_folder,
}};

void check_line_ends(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto& file = input.script->file;
  const auto at = file->text.find("\r\n");
  if (at == std::string::npos) return;
  const auto line = static_cast<std::uint32_t>(std::count(
                        file->text.begin(), file->text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) +
                    1;
  report.error({file, line, 1, 1},
               {"the file has Windows line endings (CRLF)",
                "bash treats the carriage return as part of every value, and sbatch rejects the script",
                fmt::format("sed -i 's/\\r$//' {}", file->name), ""});
}

const Registered<Rule> line_ends_rule{{
    .order = 360,
    .name = "line-ends",
    .title = "Windows line endings",
    .explain = "For bash, a carriage return is an ordinary character.",
    .source = "sbatch(1)",
    .check = check_line_ends,
}};

void check_failed_test(const LintInput& input, Report& report) {
  if (input.script) tell(input.script->failed_tests, report);
}

const Registered<Rule> failed_test_rule{{
    .order = 355,
    .name = "failed-test",
    .title = "a test of a variable that nothing sets",
    .explain =
        "[ $NAME -gt 1 ] is not a valid test if NAME is empty: bash prints an error and continues as if the "
        "test were false. In [[ ]] or (( )) an empty variable is 0.",
    .source = "bash(1), CONDITIONAL EXPRESSIONS",
    .check = check_failed_test,
}};

/// bash finds the function `conda` there.
bool brings_conda(const ScriptCommand& command) {
  const auto line = text::join(command.words, " ");
  const auto& name = command.words[0];
  const bool sources = name == "source" || name == ".";
  const bool reads = line.find("conda") != std::string::npos || line.find("bashrc") != std::string::npos ||
                     line.find("profile") != std::string::npos || line.ends_with(".sh") ||
                     line.ends_with("activate") || line.find("/.") != std::string::npos;  // ~/.my_settings
  return (sources && reads) || name == "module" || name == "ml" || name == "eval" || name == "conda()" ||
         line.find("shell.bash") != std::string::npos || line.find("shell hook") != std::string::npos;
}

void check_conda(const LintInput& input, Report& report) {
  if (!input.script || input.script->comments.empty()) return;
  const auto& first = input.script->comments.front();
  // Without a first line for the kernel, it is made to be sourced.
  if (input.batch.empty() && (first.span.line != 1 || !first.text.starts_with("#!"))) return;
  const bool login = first.span.line == 1 && (first.text.find(" -l") != std::string::npos ||
                                              first.text.find("--login") != std::string::npos ||
                                              first.text.find(" -i") != std::string::npos);
  if (login) return;
  for (const auto& command : input.script->commands) {
    if (brings_conda(command)) return;
    const auto& words = command.words;
    const bool tool = words[0] == "conda" || words[0] == "mamba" || words[0] == "micromamba";
    if (!tool || words.size() < 2 || words[1] != "activate") continue;
    report.warning(
        command.span,
        {fmt::format("{} activate in a shell that is not set up for it", words[0]),
         "a script does not read ~/.bashrc: this works only if the shell that starts it exports conda's "
         "function; otherwise programs from another environment run",
         fmt::format("add eval \"$({} shell.bash hook)\" above, or source …/etc/profile.d/conda.sh",
                     words[0]),
         ""});
    return;
  }
}

const Registered<Rule> conda_rule{{
    .order = 358,
    .name = "conda",
    .title = "conda activate without its function",
    .explain = "conda activate is a function that conda's hook defines. `conda init` writes it to "
               "~/.bashrc, which "
               "only interactive shells read.",
    .source = "docs.conda.io, conda init; bash(1), INVOCATION",
    .check = check_conda,
}};

void check_installs_at_once(const LintInput& input, Report& report) {
  if (!input.script) return;
  const Program* first = nullptr;
  for (const auto& program : input.script->programs) {
    const auto& words = program.words;
    const bool pip =
        words[0].ends_with("pip") || words[0].ends_with("pip3") || std::ranges::count(words, "pip") > 0;
    if (!pip || std::ranges::find(words, "install") == words.end() || !program.step) continue;
    if (first != nullptr && first->step == program.step && first->rank != program.rank &&
        first->span.line == program.span.line)
      return report.warning(first->span,
                            {"several tasks install packages at the same time",
                             "if they share the environment, one replaces files that another is loading",
                             "install once, before the steps", ""});
    if (first == nullptr) first = &program;
  }
}

const Registered<Rule> installs_at_once_rule{{
    .order = 359,
    .name = "installs-at-once",
    .title = "pip install in each task of a step",
    .explain = "pip does not lock: two that write to the same environment corrupt it. In a container, each "
               "task may "
               "have its own environment.",
    .source = "pip.pypa.io",
    .check = check_installs_at_once,
}};

/// The environment that a command creates: `uv venv DIR`, `conda create -n NAME`; empty: none.
std::string created_environment(const shell::Words& words) {
  const auto name = shell::program_name(words[0]);
  const auto after = [&](std::initializer_list<std::string_view> options) -> std::string {
    for (std::size_t i = 1; i + 1 < words.size(); ++i)
      if (std::ranges::find(options, words[i]) != options.end()) return words[i + 1];
    return "";
  };
  const bool conda = shell::is_any_of(name, {"conda", "mamba", "micromamba"}) && shell::has(words, "create");
  if (conda) return after({"-n", "--name", "-p", "--prefix"});
  if (name.starts_with("python") && after({"-m"}) == "venv") return words.back();
  if (name == "virtualenv") return words.back();
  static const shell::Options kValued{"--python", "-p", "--prompt"};
  if (name != "uv" || words.size() < 2 || words[1] != "venv") return "";
  const auto at = shell::program_at(words, 2, kValued);
  return at < words.size() ? words[at] : ".venv";
}

/// An environment that each job makes if it is not there.
void check_made_at_once(const LintInput& input, Report& report) {
  if (!input.script || input.batch.empty() || !input.script->in_next_job) return;
  const auto& next = input.script->in_next_job->programs;
  if (input.script->file->text.contains("flock")) return;
  for (const auto& program : input.script->programs) {
    const auto made = created_environment(program.words);
    const bool same =
        std::ranges::any_of(next, [&](const Program& one) { return created_environment(one.words) == made; });
    if (made.empty() || made.starts_with('-') || is_of_node(*input.script, made) || is_made_up(made) || !same)
      continue;
    return report.note(program.span,
                       {fmt::format("two jobs that start at once both create {}", text::printable(made)),
                        "one replaces files that the other is loading, or fails for them",
                        "create it before the jobs, or: flock ENVIRONMENT.lock … around it", ""});
  }
}

const Registered<Rule> made_at_once_rule{{
    .order = 529,
    .name = "made-at-once",
    .title = "an environment that two jobs create at the same time",
    .explain =
        "bash ran the script as two jobs: both create the environment, in the same place. A test whether "
        "it is there does not keep them apart.",
    .source = "docs.python.org, venv; conda create --help",
    .check = check_made_at_once,
}};

void check_unset(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& one : input.script->unset) {
    const Report::Saying saying{
        fmt::format("nothing sets {}", one.name),
        one.ends_script ? "the script ends here, unless the job gets it from outside: set -u is on"
                        : "bash silently treats it as empty: it is 0 in $(( )), and a path that starts "
                          "with it starts at the root",
        one.set_name.empty()
            ? fmt::format("pass --env {}=… if the job gets it from outside", one.name)
            : fmt::format(
                  "{}, if that is what you meant; otherwise pass --env {}=… if the job gets it from outside",
                  one.set_name, one.name),
        ""};
    // The site, or who submits the job, may set uppercase names.
    if (one.ends_script && text::lower(one.name) != one.name)
      report.note(one.span, saying);
    else
      report.warning(one.span, saying);
  }
}

const Registered<Rule> unset_rule{{
    .order = 356,
    .name = "unset",
    .title = "an unset variable in arithmetic or at the start of a path",
    .explain =
        "With set -u, an unset variable ends the script. Without it, bash treats it as empty. The rule "
        "examines $(( )), variables with a lowercase name, and the start "
        "of paths: $data/train becomes /train. Uppercase names at the start "
        "of a path may be set by the site, and are reported only if a variable with a similar name is set, "
        "or "
        "if it is the address that curl asks.",
    .source = "bash(1), set -u",
    .check = check_unset,
}};

/// A line without what is in quotes, and without its comment.
std::string outside_quotes(std::string_view line) {
  std::string out;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && c == '#' && (i == 0 || line[i - 1] == ' ')) break;
    if (c == '\\' && quote != '\'') {
      ++i;
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
      out += '_';
    } else {
      out += c;
    }
  }
  return out;
}

void check_not_sh(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kSh(R"re(^#!\s*(?:/usr)?/bin/(?:env\s+)?(?:sh|dash)(?:\s|$))re");
  static const RE2 kExecs(R"re((?m)\bexec\s+(?:/\S*/)?(?:env\s+)?bash\b)re");
  struct Construct {
    RE2 pattern;
    const char* name;
    const char* instead;
  };
  static const std::array<Construct, 8> kOfBash{{
      {RE2(R"re((?:^|&&|\|\||;)\s*(source)\s)re"), "source", "write ."},
      {RE2(R"re((?:^|[\s;])(\[\[)\s)re"), "[[ ]]", "use [ ]"},
      {RE2(R"re(^\s*(?:export\s+|local\s+)?[A-Za-z_]\w*\+?=(\())re"), "an array",
       "put the words into one variable"},
      {RE2(R"re(^\s*set\s[^#]*(pipefail))re"), "pipefail", "do without the pipe"},
      {RE2(R"re((<<<))re"), "<<<", "write printf … |"},
      {RE2(R"re((&>))re"), "&>", "write > FILE 2>&1"},
      {RE2(R"re((?:\s)(\{\d+\.\.\d+\}))re"), "{1..4}", "use seq"},
      {RE2(R"re(^\s*(function)\s+\w)re"), "function", "write NAME() {"},
  }};
  const SourceLines lines(input.script->file);
  if (!RE2::PartialMatch(lines.line(1), kSh) || RE2::PartialMatch(without_comments(lines), kExecs)) return;
  for (const auto number : lines_of_commands(lines)) {
    for (const auto& one : kOfBash) {
      std::string found;
      if (!RE2::PartialMatch(outside_quotes(lines.line(number)), one.pattern, &found)) continue;
      return report.warning(
          lines.find_text(found, number, number),
          {fmt::format("{} is bash's, but the first line says sh", one.name),
           "where sh is dash (Debian, Ubuntu, most images) this line fails, or does something else",
           fmt::format("#!/bin/bash in the first line, or {}", one.instead), ""});
    }
  }
}

const Registered<Rule> not_sh_rule{{
    .order = 481,
    .name = "not-sh",
    .title = "a script of sh with constructs of bash",
    .explain = "sh is bash on Red Hat's systems, where it works, and dash on Debian's. Only the first such "
               "construct is reported.",
    .source = "dash(1); ShellCheck SC3001 to SC3054",
    .check = check_not_sh,
}};

/// `--model <model_name> --port 8000`
void check_placeholder(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kPlaceholder(R"re(\s=?(<[A-Za-z][\w.-]*(?:[ ][\w.-]+)*>)(?:\s|$))re");
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    std::string placeholder;
    if (!RE2::PartialMatch(outside_quotes(lines.command(number)), kPlaceholder, &placeholder)) continue;
    report.error(
        lines.find_text(placeholder, number, lines.end_of_command(number)),
        {fmt::format("{} has to be filled in", text::printable(placeholder)),
         "bash reads it as two redirections: from a file of that name, which is missing, into one named "
         "by the next word",
         "the value itself, in quotes if it has blanks", ""});
  }
}

const Registered<Rule> placeholder_rule{{
    .order = 492,
    .name = "placeholder",
    .title = "a <placeholder> in a command",
    .explain = "Outside of quotes, < and > redirect: the command does not start if the file is missing.",
    .source = "bash(1), REDIRECTION",
    .check = check_placeholder,
}};

/// `cp -r "$BEST/"* model` with an empty BEST.
void check_whole_root(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const shell::Options kTools{"rm", "cp", "mv", "chmod", "chown", "rsync", "tar", "ln"};
  for (const auto& command : input.script->commands) {
    const auto& words = command.words;
    const bool all = shell::has(words, "/bin") && shell::has(words, "/etc") && shell::has(words, "/usr");
    const auto line = command.span.source_line();
    const bool pattern = line.contains("/*") || line.contains("/\"*");
    if (!all || !pattern || !kTools.contains(shell::program_name(words[0]))) continue;
    return report.warning(
        command.span,
        {fmt::format("{} gets all directories of the machine if what is in front of /* is empty, as here",
                     shell::program_name(words[0])),
         "a variable that nothing sets, or a command that prints nothing, leaves only /*",
         "${NAME:?} stops the script if NAME is empty", ""});
  }
}

const Registered<Rule> whole_root_rule{{
    .order = 507,
    .name = "whole-root",
    .title = "a path that becomes /*",
    .explain = "\"$DIR\"/* is /* if DIR is empty. bash ran the script without effects, and expanded it so.",
    .source = "bash(1), Parameter Expansion",
    .check = check_whole_root,
}};

void check_conda_words(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& command : input.script->commands) {
    const auto& words = command.words;
    const bool tool = shell::is_any_of(words[0], {"conda", "mamba", "micromamba"});
    if (!tool || words.size() < 4 || words[1] != "activate") continue;
    const auto names = std::count_if(words.begin() + 2, words.end(),
                                     [](const auto& word) { return !word.starts_with('-'); });
    const bool valued =
        std::ranges::any_of(words, [](const auto& word) { return word == "-n" || word == "-p"; });
    if (names < 2 || valued) continue;
    return report.error(command.span,
                        {fmt::format("{} activate takes one environment", words[0]),
                         "it refuses more, and the script goes on with the Python that it has",
                         fmt::format("{} activate {}", words[0], text::printable(words.back())), ""});
  }
}

const Registered<Rule> conda_words_rule{{
    .order = 557,
    .name = "conda-words",
    .title = "conda activate with more than one environment",
    .explain = "conda activate refuses additional arguments.",
    .source = "docs.conda.io, Managing environments",
    .check = check_conda_words,
}};

void check_conda_nounset(const LintInput& input, Report& report) {
  if (!input.script) return;
  OptionByShell nounset(*input.script, kNounset);
  for (const auto& command : input.script->commands) {
    const bool strict = nounset.after(command);
    const auto& words = command.words;
    if (!strict || words.size() < 2) continue;
    const bool sources = words[0] == "source" || words[0] == ".";
    const bool conda = (words[0] == "conda" || words[0] == "mamba") && words[1] == "activate";
    static const RE2 kOfSystem(R"re(/\.bashrc$|^/etc/bashrc$|^/etc/profile$|conda[^ ]*/bin/activate$)re");
    if (!conda && !(sources && RE2::PartialMatch(words[1], kOfSystem))) continue;
    return report.note(
        command.span,
        {fmt::format("set -u is on in {}", conda ? "conda activate" : text::printable(words[1])),
         conda ? "the activation scripts of compilers, MKL and others use variables that may not be set: the "
                 "script ends there with \"unbound variable\""
               : "it uses variables that may not be set in a job, such as PS1: the script ends there with "
                 "\"unbound variable\"",
         "set +u before it, and set -u behind it", ""});
  }
}

const Registered<Rule> conda_nounset_rule{{
    .order = 558,
    .name = "conda-nounset",
    .title = "conda activate or ~/.bashrc under set -u",
    .explain = "Files that were written for interactive shells do not expect set -u.",
    .source = "bash(1), set -u",
    .check = check_conda_nounset,
}};

}  // namespace
}  // namespace nlaunch::lint
