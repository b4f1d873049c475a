#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/allocation.h"
#include "shell/srun.h"
#include "shell/words.h"

/// Words of a script that the shell or a program misinterprets.
namespace nlaunch::lint {
namespace {

/// "$NAME" of a variable that the program has, in a word that no shell will expand. Programs also read
/// ${NAME}.
std::string unexpanded_in(const Program& program, const std::string& word) {
  for (auto at = word.find('$'); at != std::string::npos; at = word.find('$', at + 1)) {
    const auto begin = at + 1;
    auto end = begin;
    while (end < word.size() && (word[end] == '_' || (word[end] >= 'A' && word[end] <= 'Z') ||
                                 (end > begin && word[end] >= '0' && word[end] <= '9')))
      ++end;
    const auto name = word.substr(begin, end - begin);
    constexpr std::size_t kShortest = 3;
    if (name.size() >= kShortest && program.environment.contains(name)) return name;
  }
  return {};
}

void check_unexpanded_word(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& program : input.script->programs) {
    if (!program.works) continue;
    const auto& words = program.words;
    const auto name = words[0].substr(words[0].rfind('/') + 1);
    if (name == "ray" || name == "nlaunch" || name == "ssh" || name == "awk")
      continue;  // they expand it, or pass it on
    for (std::size_t i = 1; i < words.size(); ++i) {
      const bool code = words[i - 1] == "-c" || words[i - 1] == "-e" ||
                        words[i].find('\n') != std::string::npos || words[i].find(' ') != std::string::npos;
      const auto variable = code ? std::string() : unexpanded_in(program, words[i]);
      if (variable.empty()) continue;
      return report.warning(program.span,
                            {fmt::format("{} gets the text ${} instead of its value", name, variable),
                             "nothing is expanded inside single quotes or after a backslash",
                             fmt::format("use \"${}\" in double quotes", variable), ""});
    }
  }
}

const Registered<Rule> unexpanded_word_rule{{
    .order = 361,
    .name = "unexpanded-word",
    .title = "an argument with the name of a variable instead of its value",
    .explain = "The shell expands $NAME, not the program. Only names of variables that the program has are "
               "reported.",
    .source = "bash(1), QUOTING",
    .check = check_unexpanded_word,
}};

/// A command that can get = as an argument: of bash, of each machine, or a function of the script.
bool is_command(const Script& script, const std::string& name) {
  constexpr std::array<std::string_view, 16> kNames{"echo", "printf", "test",  "expr",   "true", "false",
                                                    "awk",  "sed",    "grep",  "egrep",  "tr",   "cut",
                                                    "read", "let",    "local", "declare"};
  const RE2 function(R"re((?m)^\s*(?:function\s+)?)re" + name + R"re(\s*(?:\(\)|\{))re");
  return std::ranges::find(kNames, name) != kNames.end() || RE2::PartialMatch(script.file->text, function);
}

/// True if the = of `NAME "="` stands in quotes: it is meant as an argument.
bool is_quoted(const SourceSpan& span, const std::string& name) {
  const RE2 quoted("\\b" + name + R"re(\s+["'\\]=)re");
  return RE2::PartialMatch(span.source_line(), quoted);
}

void check_blanks_around_equals(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& command : input.script->commands) {
    const auto& words = command.words;
    if (words.size() > 2 && words[0] == "export" && words[2] == "=" && is_variable_name(words[1])) {
      report.error(command.span,
                   {fmt::format("this exports {} as it is, and then fails at =", words[1]),
                    "an assignment must not have spaces around =: the variable keeps its value, or "
                    "is not set",
                    fmt::format("export {}=…", words[1]), ""});
      continue;
    }
    if (words.size() < 2 || words[1] != "=" || !is_variable_name(words[0]) ||
        is_command(*input.script, words[0]) || is_quoted(command.span, words[0]))
      continue;
    report.error(command.span,
                 {fmt::format("bash treats {} as a program", words[0]),
                  "an assignment must not have spaces around =: the program is not found, and the variable "
                  "is not set",
                  fmt::format("{}=…", words[0]), ""});
  }
}

const Registered<Rule> blanks_around_equals_rule{{
    .order = 362,
    .name = "blanks-around-equals",
    .title = "an assignment with spaces around =",
    .explain = "NAME = VALUE is the command NAME with two arguments.",
    .source = "bash(1), PARAMETERS",
    .check = check_blanks_around_equals,
}};

void check_double_backslash(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  for (const auto& command : input.script->commands) {
    if (command.words.size() < 2 || command.words.back() != "\\" || command.span.file != input.script->file)
      continue;
    // The line that ends the command, and an option on the next one.
    auto end = command.span.line;
    const auto last = lines.end_of_command(end);
    while (end < last && !lines.line(end).ends_with(R"( \\)")) ++end;
    if (!lines.line(end).ends_with(R"( \\)") || !text::trim(lines.line(end + 1)).starts_with('-')) continue;
    return report.error(
        lines.find_text(R"(\\)", end, end),
        {"two backslashes end the command here",
         "the first one quotes the second: the program gets a backslash as its last argument, and "
         "the next line is a command of its own",
         "one backslash", ""});
  }
}

const Registered<Rule> double_backslash_rule{{
    .order = 354,
    .name = "double-backslash",
    .title = "two backslashes at the end of a line",
    .explain = "One backslash at the end of a line continues it. Two are one backslash as an argument.",
    .source = "bash(1), QUOTING",
    .check = check_double_backslash,
}};

void check_step_without_program(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& program : input.script->programs) {
    if (shell::program_name(program.words[0]) != "srun" ||
        shell::words_of_srun(program.words) < program.words.size())
      continue;
    report.error(
        program.span,
        {"this srun starts no program",
         "it fails; the program may be on the next line, with a backslash missing at the end of this "
         "one",
         "end the line with a backslash and no space after it", ""});
  }
}

const Registered<Rule> step_without_program_rule{{
    .order = 363,
    .name = "step-without-program",
    .title = "srun without a program",
    .explain = "A line that continues on the next must end with a backslash. Without it, srun gets only its "
               "options.",
    .source = "srun(1)",
    .check = check_step_without_program,
}};

/// Calls `look` for each line of the script that is not a comment.
template <class Look>
void each_text(const Script& script, const Look& look) {
  const SourceLines lines(script.file);
  for (std::uint32_t number = 1; number <= lines.count(); ++number)
    if (const auto text = lines.line(number); !text::trim(text).starts_with('#'))
      look(text, lines.whole(number));
}

void check_own_path(const LintInput& input, Report& report) {
  if (!input.script || input.batch.empty()) return;
  const auto& text = input.script->file->text;
  if (text.find("SLURM_SUBMIT_DIR") != std::string::npos ||
      text.find("scontrol show job") != std::string::npos)
    return;
  static const RE2 kPath(
      R"re(\b(dirname|readlink -f|realpath)\s+(--\s+)?"?\$\{?(0|BASH_SOURCE(\[0\])?)\}?)re");
  bool told = false;
  each_text(*input.script, [&](std::string_view line, const SourceSpan& span) {
    if (told || !RE2::PartialMatch(line, kPath)) return;
    told = true;
    report.warning(
        span,
        {"the script looks up its own directory, but runs as a copy",
         "sbatch copies it: $0 is in a slurmd directory (/var/spool/…) that has none of your other files",
         "use SLURM_SUBMIT_DIR, or an absolute path", ""});
  });
}

const Registered<Rule> own_path_rule{{
    .order = 364,
    .name = "own-path",
    .title = "a batch script that looks up its own directory",
    .explain =
        "Slurm runs a copy of the script on the first node. Only if bash runs it directly does it find "
        "its own directory.",
    .source = "sbatch(1), DESCRIPTION",
    .check = check_own_path,
}};

void check_all_addresses(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kAsks(
      R"re(=\s*"?(?:\$\(|`)[^)|`]*hostname\s+(-I|--all-ip-addresses|-i|--ip-address)\s*(?:\)|`))re");
  bool told = false;
  each_text(*input.script, [&](std::string_view line, const SourceSpan& span) {
    std::string option;
    if (told || !RE2::PartialMatch(line, kAsks, &option)) return;
    const auto name = std::string(text::trim(line.substr(0, line.find('='))));
    const auto variable = name.substr(name.rfind(' ') + 1);
    // It is checked later: `if [[ "$ip" == *" "* ]]`, read -ra, ${ip%% *}.
    const auto& text = input.script->file->text;
    const bool cut = text.find("${" + variable + "%") != std::string::npos ||
                     text.find("${" + variable + "[") != std::string::npos ||
                     text.find("\"$" + variable + "\" == *") != std::string::npos ||
                     text.find("<<< ") != std::string::npos;
    // VARIABLE=$(echo $VARIABLE | cut -d' ' -f1), on a later line.
    const RE2 narrowed(
        fmt::format(R"re((?m)^\s*(?:export\s+)?{0}=.*\${{?{0}\b.*\b(?:cut|awk|head|sed|tr)\b)re", variable));
    if (cut || (is_variable_name(variable) && RE2::PartialMatch(text, narrowed))) return;
    told = true;
    const bool all = option == "-I" || option == "--all-ip-addresses";
    report.note(
        span,
        {all ? "hostname -I prints all addresses of the node"
             : fmt::format("hostname {} can print several addresses", option),
         all ? "it lists the addresses of all interfaces, separated by spaces, in no particular "
               "order; not all can be reached from other nodes"
             : "it prints what the resolver has for the name: an IPv6 and an IPv4 address, separated by "
               "a space, or 127.0.1.1 where /etc/hosts says so",
         "add | awk '{print $1}', or use the hostname", ""});
  });
}

const Registered<Rule> all_addresses_rule{{
    .order = 365,
    .name = "all-addresses",
    .title = "all addresses of a host used as one",
    .explain =
        "hostname -I prints the addresses of all interfaces, hostname -i those that the resolver knows.",
    .source = "hostname(1)",
    .check = check_all_addresses,
}};

void check_port_range(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kRange(R"re(shuf\s+-i\s*(\d+)-\d+)re");
  // PORT=$((20000 + SLURM_JOB_ID % 20000)), PORT=$((RANDOM % 20000 + 20000))
  static const RE2 kSum(R"re(\(\(\s*(\d+)\s*\+\s*\(?\s*[^()+*/-]+%\s*(\d+)\s*\)?\s*\)\))re");
  static const RE2 kSumBehind(R"re(\(\(\s*\(?\s*[^()+*/-]+%\s*(\d+)\s*\)?\s*\+\s*(\d+)\s*\)\))re");
  each_text(*input.script, [&](std::string_view line, const SourceSpan& span) {
    std::uint32_t first = 0;
    std::uint32_t size = 0;
    constexpr std::uint32_t kFirstFree = 1024;
    constexpr std::uint32_t kFirstOfKernel = 32768;
    const auto lower = text::lower(std::string(line));
    if (lower.find("port") == std::string::npos) return;
    if (RE2::PartialMatch(line, kSum, &first, &size) || RE2::PartialMatch(line, kSumBehind, &size, &first)) {
      const auto end = first + size;
      if (end <= kFirstOfKernel && first >= kFirstFree) return;
      report.note(span,
                  {fmt::format("the port is between {} and {}", first, end - 1),
                   first < kFirstFree ? "only root can listen below 1024: runs fail now and then"
                                      : "from 32768 up, Linux gives ports to outgoing connections: now and "
                                        "then another program already has it",
                   "20000 + x % 10000", ""});
      return;
    }
    if (!RE2::PartialMatch(line, kRange, &first) || first >= kFirstFree) return;
    report.warning(
        span, {fmt::format("a random port is chosen from {} up", first),
               "only root can listen below 1024: runs fail now and then", "shuf -i 20000-30000 -n 1", ""});
  });
}

const Registered<Rule> port_range_rule{{
    .order = 366,
    .name = "port-range",
    .title = "a random port that may not be usable",
    .explain = "Ports below 1024 are reserved for root, and Linux assigns ports 32768 to 60999 to any "
               "outgoing connection.",
    .source = "ip(7), ip_local_port_range",
    .check = check_port_range,
}};

void check_proxy_scheme(const LintInput& input, Report& report) {
  for (const auto* name : {"https_proxy", "HTTPS_PROXY"}) {
    each_value(
        input, report, name, [&](const Environment&, const Setting& setting, const std::string& value) {
          if (!value.starts_with("https://")) return;
          report.note(setting.span, {fmt::format("{} requests TLS to the proxy itself", setting.name),
                                     "most cluster proxies speak HTTP and tunnel HTTPS: the connection fails",
                                     fmt::format("{}=http://…", setting.name), ""});
        });
  }
}

const Registered<Rule> proxy_scheme_rule{{
    .order = 367,
    .name = "proxy-scheme",
    .title = "a proxy reached over TLS",
    .explain = "The variable's name says which URLs use the proxy; its value says how to reach the proxy.",
    .source = "curl(1), ENVIRONMENT",
    .check = check_proxy_scheme,
}};

void check_library_path(const LintInput& input, Report& report) {
  if (!input.script || input.modules.empty()) return;
  bool told = false;
  static const RE2 kReplaces(
      R"re(^\s*export\s+LD_LIBRARY_PATH=["']?([^"'$\s]|\$[^L{]|\$\{[^L])*["']?\s*$)re");
  each_text(*input.script, [&](std::string_view line, const SourceSpan& span) {
    const bool behind = std::ranges::any_of(input.modules, [&](const Module& module) {
      return module.span.file == span.file && module.span.line < span.line;
    });
    if (told || !behind || line.find("LD_LIBRARY_PATH", line.find('=')) != std::string_view::npos ||
        !RE2::PartialMatch(line, kReplaces))
      return;
    told = true;
    report.warning(
        span, {"LD_LIBRARY_PATH is overwritten after modules were loaded",
               "their entries are lost: their libraries are not found, or the system's are found instead",
               "export LD_LIBRARY_PATH=…:$LD_LIBRARY_PATH", ""});
  });
}

const Registered<Rule> library_path_rule{{
    .order = 368,
    .name = "library-path",
    .title = "LD_LIBRARY_PATH without the entries of modules",
    .explain = "Modules add their directories to the list. A new value drops them.",
    .source = "ld.so(8)",
    .check = check_library_path,
}};

void check_option_as_program(const LintInput& input, Report& report) {
  if (!input.script) return;
  std::uint32_t told = 0;  // the line
  const SourceLines lines(input.script->file);
  for (const auto& program : input.script->programs) {
    if (!program.words[0].starts_with("--") || std::exchange(told, program.span.line) == program.span.line)
      continue;
    // `docker run vllm/vllm-openai --model m`: the image has a program of its own.
    static const RE2 kContainer(
        R"re(\b(?:docker|podman|nerdctl|podman-hpc)\s+run\b|\b(?:apptainer|singularity)\s+run\b)re");
    if (RE2::PartialMatch(lines.command(program.span.line), kContainer)) continue;
    report.error(program.span,
                 {fmt::format("bash starts the option {} as a program", text::printable(program.words[0])),
                  "the line before does not end with a backslash, or has a comment or a space behind it: the "
                  "program there does not get this option and those after it",
                  "end the line before with a backslash", ""});
  }
}

/// A name with a dash is none of a variable: `NAME-X=1` is a command.
void check_no_command(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kAssigns(R"re([A-Za-z_]\w*-[\w-]*=.*)re");
  std::set<std::uint32_t> told;
  for (const auto& program : input.script->programs) {
    const auto& word = program.words[0];
    const bool assigns = RE2::FullMatch(word, kAssigns);
    if ((!assigns && word != "-" && word != "+" && word != "=") || !told.insert(program.span.line).second)
      continue;
    report.error(program.span,
                 {fmt::format("bash starts {} as a program",
                              text::printable(assigns ? word.substr(0, word.find('=') + 1) : word)),
                  assigns ? "the name of a variable has no dash: nothing is set"
                          : "it is not found, and the rest of the line does not run: a line of a diff, or a "
                            "dash too much",
                  assigns ? "an underscore" : "leave it out", ""});
  }
}

const Registered<Rule> no_command_rule{{
    .order = 567,
    .name = "no-command",
    .title = "a line that is no command",
    .explain = "A sign of a diff in front of a command, or the name of a variable with a dash.",
    .source = "bash(1), Command Execution; Definitions, name",
    .check = check_no_command,
}};

const Registered<Rule> option_as_program_rule{{
    .order = 381,
    .name = "option-as-program",
    .title = "an option on a line of its own",
    .explain = "A command ends at the end of its line, unless a backslash is the last character there.",
    .source = "bash(1), QUOTING",
    .check = check_option_as_program,
}};

void check_similar_hosts(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& command : input.script->commands) {
    const auto& words = command.words;
    const auto name = shell::program_name(words[0]);
    if (!name.ends_with("grep") || words.size() < 3) continue;
    const bool inverts = std::ranges::any_of(words, [](const std::string& word) {
      return word == "--invert-match" ||
             (word.size() > 1 && word[0] == '-' && word[1] != '-' && word.contains('v'));
    });
    const bool whole = std::ranges::any_of(words, [](const std::string& word) {
      return word == "--word-regexp" || word == "--line-regexp" ||
             (word.size() > 1 && word[0] == '-' && word[1] != '-' &&
              word.find_first_of("wx") != std::string::npos);
    });
    const auto host = std::find_if(words.begin() + 1, words.end(),
                                   [](const std::string& word) { return shell::node_of(word).has_value(); });
    if (!inverts || whole || host == words.end()) continue;
    return report.warning(
        command.span,
        {fmt::format("{} -v with the name of a node also removes nodes whose names begin with it", name),
         "node1 is part of node10 to node19: those nodes get nothing to do", fmt::format("{} -vx", name),
         ""});
  }
}

const Registered<Rule> similar_hosts_rule{{
    .order = 383,
    .name = "similar-hosts",
    .title = "a list of nodes without one, and without those with similar names",
    .explain = "grep looks for a part of the line. -x compares the whole line, -w whole words.",
    .source = "grep(1)",
    .check = check_similar_hosts,
}};

/// `bash -c "… $@"` in double quotes: the shell that reads it splits it at each argument.
void check_parted_text(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& step : input.steps) {
    constexpr std::size_t kFirstMore = 3;  // bash -c TEXT
    const auto at = step.text.find("$@");
    if (at == std::string::npos || at == 0 || step.text[at - 1] == '"' || step.text[at - 1] == '\\' ||
        step.argv.size() <= kFirstMore || step.argv[1] != "-c")
      continue;
    report.error(
        step.span,
        {fmt::format("$@ cuts off the text for {} -c at its first argument", step.argv[0]),
         fmt::format("\"… $@\" expands to one word per argument: '{}' and the following become the inner "
                     "shell's $0, $1, …, and the program does not get them",
                     text::printable(step.argv[kFirstMore])),
         "use $*, which is one word", ""});
  }
}

/// `bash -c 'torchrun train.py "$@"'` without words behind the text: that shell has no arguments.
void check_lost_arguments(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kReads(R"re((?:^|[^\\])\$(?:@|\*|\{@\}|\{\*\}))re");
  static const RE2 kSets(R"re(\bset\s+--|\(\)\s*\{|\bfunction\s)re");
  for (const auto& step : input.steps) {
    // Also behind a container: the last three words are `bash -c TEXT`.
    constexpr std::size_t kWords = 3;
    const auto size = step.argv.size();
    if (size < kWords || !shell::is_shell(step.argv[size - kWords]) ||
        !step.argv[size - 2].starts_with('-') || !step.argv[size - 2].ends_with('c'))
      continue;
    const auto& text = step.argv.back();
    if (!RE2::PartialMatch(text, kReads) || RE2::PartialMatch(text, kSets)) continue;
    report.warning(step.span, {"\"$@\" within this text is empty: the inner shell gets no arguments",
                               "the arguments of the script do not reach the program",
                               "bash -c '… \"$@\"' _ \"$@\"", ""});
  }
}

const Registered<Rule> lost_arguments_rule{{
    .order = 484,
    .name = "lost-arguments",
    .title = "$@ in the text of bash -c that gets no arguments",
    .explain = "The words behind the text of bash -c are its $0, $1, …: without them, $@ is empty there.",
    .source = "bash(1), OPTIONS, -c",
    .check = check_lost_arguments,
}};

const Registered<Rule> parted_text_rule{{
    .order = 409,
    .name = "parted-text",
    .title = "$@ within the text of bash -c",
    .explain =
        "\"a $@ b\" expands to as many words as there are arguments. bash -c runs only the first of them.",
    .source = "bash(1), Special Parameters; shellcheck SC2145",
    .check = check_parted_text,
}};

}  // namespace
}  // namespace nlaunch::lint
