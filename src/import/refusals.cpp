#include "import/refusals.h"

#include <fmt/format.h>

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/secrets.h"
#include "base/text.h"
#include "import/texts.h"
#include "lint/script_input.h"
#include "shell/answers.h"
#include "shell/srun.h"

namespace nlaunch::import {
namespace {

using Sentences = std::vector<std::string>;

/// What `reason` says of each of them, without empty texts.
template <typename All, typename Reason>
Sentences of_each(const All& all, const Reason& reason) {
  Sentences texts;
  for (const auto& one : all)
    if (std::string text = reason(one); !text.empty()) texts.push_back(std::move(text));
  return texts;
}

/// The same of each role that is a program of the script.
template <typename Reason>
Sentences of_roles(const Examined& script, const Reason& reason) {
  return of_each(script.out.roles, [&](const ImportedRole& role) {
    return role.part ? reason(role, script.out.parts[*role.part]) : std::string();
  });
}

/// True for a step that the recorder does not take apart.
bool is_not_taken_apart(const Part& part) {
  const auto name = part.argv.empty() ? std::string() : shell::program_name(part.argv[0]);
  return name == "srun" || name.starts_with("mpi") || name == "orterun";
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

/// "`nvidia-smi topo -m` (line 18) says"
std::string who_says(const shell::Recording& recording) {
  std::vector<std::string> asked;
  for (const auto& one : recording.made_up)
    if (shell::describes_machine(one.name.substr(0, one.name.find(' '))))
      asked.push_back(fmt::format("`{}` (line {})", text::printable(one.name), one.line));
  return fmt::format("{} {}", text::join(asked, ", "), asked.size() == 1 ? "says" : "say");
}

/// An argument that should name a host but is empty: "--node-ip-address=", "--address :6379".
std::optional<std::string> empty_host(const shell::Words& argv) {
  static const RE2 kName(R"(--([\w-]*[-_])?(addr|address|ip|host|endpoint|master)([-_][\w-]*)?)");
  static const RE2 kEmpty(R"(:\d{2,5})");
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const auto equals = argv[i].find('=');
    if (!RE2::FullMatch(argv[i].substr(0, equals), kName)) continue;
    const bool apart = equals == std::string::npos;
    if (apart && i + 1 == argv.size()) continue;
    const auto value = apart ? argv[i + 1] : argv[i].substr(equals + 1);
    if (value.empty() || RE2::FullMatch(value, kEmpty)) return apart ? argv[i] + " " + value : argv[i];
  }
  return std::nullopt;
}

/// True if the program moves itself to the background, so that exit code 0 does not mean it is done.
bool detaches(const shell::Words& argv) {
  const auto name = shell::program_name(argv[0]);
  const auto has = [&](const char* word) { return shell::has(argv, word); };
  return (name == "nginx" &&
          std::ranges::none_of(argv, [](const auto& word) { return word.contains("daemon off"); })) ||
         (name == "redis-server" && has("--daemonize")) || name == "slapd" ||
         (name == "mongod" && has("--fork")) || (name == "pg_ctl" && has("start")) ||
         (name == "nvidia-cuda-mps-control" && has("-d"));
}

/// "/dev/fd/63", in the command line of a program: what `<(...)` and `>(...)` become.
std::optional<std::string> substituted(const shell::Words& argv) {
  static const RE2 kPipe(R"((?:^|=)(/dev/fd/\d+)$)");
  std::string path;
  for (const auto& word : argv)
    if (RE2::PartialMatch(word, kPipe, &path)) return path;
  return std::nullopt;
}

/// `xargs -P 8` on the line of a part: it starts several of them at once.
bool is_of_parallel_xargs(const shell::Recording& recording, const Part& part) {
  static const shell::Options kValued{"-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s"};
  static const RE2 kParallel(R"(-[a-zA-Z0-9]*P(\d*)|--max-procs=(\d+))");
  return std::ranges::any_of(recording.traced, [&](const auto& one) {
    const bool here = part.line == 0 || (one.line == part.line && one.script == part.script);
    if (!here || !one.text.starts_with("xargs ")) return false;
    const auto words = shell::words_of(one.text);
    const auto program = shell::program_at(words, 1, kValued);
    for (std::size_t i = 1; i < std::min(program, words.size()); ++i) {
      std::string number;
      std::string of_long;
      if (!RE2::FullMatch(words[i], kParallel, &number, &of_long)) continue;
      if (number.empty()) number = of_long.empty() && i + 1 < words.size() ? words[i + 1] : of_long;
      return number != "1";
    }
    return false;
  });
}

/// ". bash says: ...", if the text of a `bash -c` is broken.
std::string syntax_error(const std::string& output) {
  static const RE2 kBroken(R"((?m)^\S+: -c: (line \d+: (?:syntax error|unexpected EOF).*)$)");
  std::string said;
  return RE2::PartialMatch(output, kBroken, &said)
             ? fmt::format(". bash says of the text after -c: {}", text::printable(said))
             : "";
}

// --- Each reason by itself ---

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

Sentences starts_a_node(const Examined& script) {
  return of_roles(script, [](const ImportedRole&, const Part& part) -> std::string {
    if (!shell::node_of(part.argv[0])) return {};
    return fmt::format(
        "line {}: srun starts '{}', the name of a node: it gets several nodes as several words. Join them "
        "with commas",
        part.line, text::printable(part.argv[0]));
  });
}

Sentences substitutes_a_process(const Examined& script) {
  return of_roles(script, [](const ImportedRole&, const Part& part) -> std::string {
    const auto path = substituted(part.argv);
    if (!path) return {};
    return fmt::format(
        "line {}: `{}` reads or writes {}, a process substitution, which exists only while bash runs the "
        "script: use a file instead",
        part.line, text::printable(text::shell_join(part.argv)), *path);
  });
}

Sentences uses_parallel_xargs(const Examined& script) {
  return of_roles(script, [&](const ImportedRole&, const Part& part) -> std::string {
    if (!is_of_parallel_xargs(script.recording, part)) return {};
    return fmt::format(
        "line {}: xargs starts several programs at once (-P), and which of them run at the same time is not "
        "known: start them with & in a loop, and `wait`",
        part.line);
  });
}

Sentences has_a_step_of_several(const Examined& script) {
  return of_roles(script, [](const ImportedRole& role, const Part& part) -> std::string {
    if (!is_not_taken_apart(part)) return {};
    return fmt::format(
        "line {}: this step cannot be imported. It starts several programs (`a : b`, --multi-prog), or its "
        "nodes are not nodes of the job: give each program its own step, on nodes of the job",
        role.line);
  });
}

Sentences lacks_a_host(const Examined& script) {
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    const auto word = empty_host(script.recording.commands[part.commands[0]].argv);
    if (!word) return {};
    return fmt::format(
        "line {}: `{}` has no host: the script gets it from the output of a program, which is not known "
        "here. Give the output with --prints 'PART OF THE COMMAND=TEXT'",
        role.line, text::printable(*word));
  });
}

Sentences starts_a_daemon(const Examined& script) {
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    if (!detaches(part.program)) return {};
    return fmt::format(
        "line {}: `{}` moves itself to the background, where nlaunch does not see it: start it in the "
        "foreground, "
        "with & (nginx: -g 'daemon off;')",
        role.line, text::printable(text::shell_join(script.recording.commands[part.commands[0]].argv)));
  });
}

Sentences has_no_name(const Examined& script) {
  return of_roles(script, [](const ImportedRole& role, const Part&) -> std::string {
    if (!role.command.empty() && !role.command[0].empty()) return {};
    return fmt::format("line {}: the program name is empty", role.line);
  });
}

Sentences has_unknown_markers(const Examined& script) {
  return of_each(script.unknown,
                 [&](const auto& what) { return fmt::format("a command of the script contains {}", what); });
}

Sentences reads_unknown_output(const Examined& script) {
  return of_each(script.recording.commands, [&](const auto& command) {
    if (!command.output_is_read) return std::string();
    return fmt::format(
        "line {} reads the output of `{}`, which is not known because it did not run. Give the output with "
        "--prints 'PART OF THE COMMAND=TEXT'",
        command.line, text::printable(text::shell_join(command.argv)));
  });
}

Sentences depends_on_the_machine(const Examined& script) {
  return of_each(script.recording.by_machine, [&](const auto& one) {
    return fmt::format(
        "line {}: '{}' depends on what {} about the machine, which is made up. Give its output from the "
        "cluster with --prints 'PART OF THE COMMAND=TEXT'{}",
        one.line, text::printable(one.name), who_says(script.recording),
        script.allocation.gpus_per_node == 0 ? ", and the number of GPUs per node with --gpus" : "");
  });
}

/// A name of the simulated job: of a node, the cluster or the partition.
bool is_made_up_name(const std::string& word) {
  return word == shell::Allocation::kCluster || word == "rec-partition" || shell::node_of(word).has_value();
}

/// `case NAME in nid*) ...`, unless a pattern comes from the job itself: `$first)`.
bool has_fixed_patterns(const std::vector<std::string>& lines, std::uint32_t line) {
  static const RE2 kEnd(R"(\besac\b)");
  static const RE2 kOfJob(R"(^[^()]*\$[^()]*\))");
  for (auto i = line; i < lines.size() && !RE2::PartialMatch(lines[i], kEnd); ++i)
    if (RE2::PartialMatch(lines[i], kOfJob)) return false;
  return true;
}

/// The made-up name in a comparison: `[[ $(hostname) == nid* ]]`, `[ "$SLURM_CLUSTER_NAME" = juwels ]`. A
/// test for one particular other host (`login`) does not count: no node of the cluster is that host either.
std::optional<std::string> name_compared(const shell::Words& words) {
  constexpr std::array<std::string_view, 4> kOperators{"==", "=", "!=", "=~"};
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    if (std::ranges::find(kOperators, words[i]) == kOperators.end()) continue;
    const auto& left = words[i - 1];
    const auto& right = words[i + 1];
    const bool is_pattern = words[i] == "=~" || right.find_first_of("*?[") != std::string::npos;
    // `== *" "*`: whether it is a list.
    const bool is_of_blanks = right.find_first_not_of("*? \t'\"\\") == std::string::npos;
    if (is_made_up_name(left) && right.find("rec-") == std::string::npos && !is_of_blanks &&
        (is_pattern || !shell::node_of(left)))
      return left;
  }
  return std::nullopt;
}

/// The name that `case WORD in` looks at: bash traces the word as it is written.
std::optional<std::string> name_of_case(const shell::Recording& recording, const std::string& word) {
  if (word.find("$(hostname") != std::string::npos || word.find("`hostname") != std::string::npos)
    return shell::Allocation::host(0);
  static const RE2 kVariable(R"(\$\{?(\w+))");
  std::string variable;
  if (!RE2::PartialMatch(word, kVariable, &variable)) return std::nullopt;
  std::string value;
  for (const auto& entry : recording.environment)
    if (entry.starts_with(variable + "=")) value = entry.substr(variable.size() + 1);
  for (const auto& set : recording.assignments)
    if (set.name == variable) value = set.value;
  return is_made_up_name(value) ? std::optional(value) : std::nullopt;
}

Sentences decides_by_a_name(const Examined& script) {
  return of_each(script.recording.traced, [&](const auto& one) -> std::string {
    if (one.script.substr(one.script.rfind('/') + 1) != script.out.script) return {};
    const auto words = shell::words_of(one.text);
    std::optional<std::string> name;
    if (words.size() > 2 && words[0] == "case" && has_fixed_patterns(script.lines, one.line))
      name = name_of_case(script.recording, one.text);
    const auto& printed = script.recording.printed;
    if (std::ranges::find(printed, one.line, &shell::Absent::line) != printed.end())
      return {};
    else if (!words.empty() && (words[0] == "[[" || words[0] == "["))
      name = name_compared(words);
    if (!name) return {};
    const auto* const how = *name == shell::Allocation::kCluster ? "--env SLURM_CLUSTER_NAME=NAME"
                            : *name == "rec-partition"           ? "--env SLURM_JOB_PARTITION=NAME"
                                                                 : "--prints hostname=NAME";
    return fmt::format(
        "line {}: the script decides by '{}', which is a made-up name: give that of the cluster with {}",
        one.line, *name, how);
  });
}

Sentences passes_output_on(const Examined& script) {
  return of_each(script.recording.passed_on, [&](const auto& one) {
    return fmt::format(
        "line {}: a program uses {}, which contains the redirected output of another program; the output of "
        "a role goes to its log: let the program write the file itself",
        one.line, text::printable(one.name));
  });
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
        one.line, one.name, syntax_error(script.recording.output));
  });
}

Sentences lacks_a_folder(const Examined& script) {
  return of_each(script.recording.no_folder, [&](const auto& one) {
    const auto folder = one.name.substr(0, one.name.rfind('/') + 1);
    return fmt::format(
        "line {} writes to {}, but {} does not exist: bash does not start the program, here or on the "
        "cluster. Create the directory or, if the cluster has it, pass --exists {}",
        one.line, text::printable(one.name), text::printable(folder), text::shell_quote(folder));
  });
}

/// A secret is read when the process starts.
bool sets_a_secret(const shell::Recording& recording, std::uint32_t line) {
  return std::ranges::any_of(recording.assignments, [&](const auto& set) {
    return set.line == line && looks_like_secret(set.name);
  });
}

Sentences reads_unknown_contents(const Examined& script) {
  return of_each(script.recording.contents, [&](const auto& one) {
    if (sets_a_secret(script.recording, one.line)) return std::string();
    return fmt::format(
        "line {} reads {}, which is known to exist, but not its contents. Import on a machine that has it, "
        "or give the output of the command (--prints 'PART OF THE COMMAND=TEXT')",
        one.line, text::printable(one.name));
  });
}

/// `<FILE>` on the line that reads FILE.
const shell::Absent* placeholder_of(const shell::Recording& recording, const shell::Absent& unread) {
  const auto found = std::ranges::find_if(recording.placeholders, [&](const auto& one) {
    return one.line == unread.line && one.name == "<" + unread.name + ">";
  });
  return found == recording.placeholders.end() ? nullptr : &*found;
}

/// The files that are missing here, each once, with a placeholder or without one.
std::vector<shell::Absent> unread_files(const Examined& script, bool with_placeholder) {
  std::set<std::string> names;
  std::vector<shell::Absent> files;
  for (const auto& one : script.recording.unread)
    if (!sets_a_secret(script.recording, one.line) && names.insert(one.name).second &&
        (placeholder_of(script.recording, one) != nullptr) == with_placeholder)
      files.push_back(one);
  return files;
}

Sentences has_a_placeholder(const Examined& script) {
  return of_each(unread_files(script, true), [&](const auto& one) {
    return fmt::format(
        "line {} has a placeholder, {}, which bash treats as a redirection: replace it with its value, then "
        "import the script",
        one.line, text::printable(placeholder_of(script.recording, one)->name));
  });
}

Sentences lacks_a_file(const Examined& script) {
  Sentences texts;
  for (const auto& one : unread_files(script, false)) {
    const auto line = fmt::format("line {} reads {}, ", one.line, text::printable(one.name));
    if (!one.found_in.empty())
      texts.push_back(
          line +
          fmt::format(
              "which does not exist here but does in the script's directory: call `nlaunch import` in {}",
              text::printable(one.found_in)));
    else
      texts.push_back(
          line + fmt::format("which is not on this machine. Import on a machine that has it, or {}",
                             one.is_sourced
                                 ? fmt::format("treat it as empty (--exists {})", text::shell_quote(one.name))
                                 : "give the output of the command (--prints 'PART OF THE COMMAND=TEXT')"));
  }
  return texts;
}

/// `wait -n` waits for any program, and `wait %2` for one by a number that bash gives.
Sentences waits_for_an_unknown_one(const Examined& script) {
  const auto programs = std::ranges::count_if(script.out.roles, [&](const ImportedRole& role) {
    return role.part && role.kind != RoleKind::engine && !role.ray && script.out.parts[*role.part].background;
  });
  if (programs < 2) return {};
  const auto is_counted = [&](const auto& one) {
    static const RE2 kCounts(R"(^(wc |grep .*-\w*c))");
    return std::ranges::any_of(script.recording.traced, [&](const auto& other) {
      return other.line == one.line && other.script == one.script && RE2::PartialMatch(other.text, kCounts);
    });
  };
  return of_each(script.recording.traced, [&](const auto& one) -> std::string {
    static const RE2 kRunning(R"(^(jobs .*-\w*r|pgrep .*-\w*c.*-P|pgrep .*-P.*-\w*c))");
    static const RE2 kOwn(R"(^(jobs\b|pgrep .*-P))");
    if (RE2::PartialMatch(one.text, kRunning) || (RE2::PartialMatch(one.text, kOwn) && is_counted(one)))
      return fmt::format(
          "line {}: the script starts a program when another one has exited (`{}`): a plan starts "
          "all of a stage at once",
          one.line, text::printable(one.text));
    if (!one.text.starts_with("wait -n") && !one.text.starts_with("wait %")) return {};
    return fmt::format(
        "line {}: `{}` does not say for which program it waits: wait for its process id (PID=$!, then wait "
        "\"$PID\")",
        one.line, text::printable(one.text));
  });
}

/// `while kill -0 $A && kill -0 $B; do sleep 5; done`: until the first of them has exited.
Sentences waits_for_the_first(const Examined& script) {
  static const RE2 kWhile(R"re(^\s*while\b.*(?:kill -0|ps -p)[^&|;]*&&.*(?:kill -0|ps -p))re");
  static const RE2 kUntil(R"re(^\s*until\b.*!\s*(?:kill -0|ps -p).*\|\|.*!\s*(?:kill -0|ps -p))re");
  static const RE2 kBreaks(
      R"re((?:kill -0|ps -p)[^&|;]*\|\|\s*break\b.*(?:kill -0|ps -p)[^&|;]*\|\|\s*break\b)re");
  static const RE2 kProc(R"re(^\s*(?:while|until)\b.*/proc/\$)re");
  Sentences texts;
  std::uint32_t number = 0;
  for (const auto& line : script.lines) {
    ++number;
    if (RE2::PartialMatch(line, kWhile) || RE2::PartialMatch(line, kUntil) ||
        RE2::PartialMatch(line, kBreaks))
      texts.push_back(
          fmt::format("line {}: the script waits for the first of several programs to exit, and a plan waits "
                      "for all of a "
                      "stage",
                      number));
    else if (RE2::PartialMatch(line, kProc))
      texts.push_back(
          fmt::format("line {}: the script waits for a process by /proc, which is not recorded: use "
                      "wait, or kill -0",
                      number));
  }
  return texts;
}

/// `until python -c "connect()"; do sleep 1; done` behind a server: here it would be tried once.
Sentences polls_by_a_program(const Examined& script) {
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    static const RE2 kUntil(R"re(^\s*(?:until|while\s+!)\s+[^\[(])re");
    static const RE2 kBreaks(R"re(&&\s*(?:break|return)\b|^\s*if\s[^\[])re");
    const bool own = part.script.substr(part.script.rfind('/') + 1) == script.out.script;
    if (part.background || !own || part.line == 0) return {};
    const auto text = whole_command(script.lines, part.line);
    const bool loops = !head_of_loop(script.lines, part.line).empty();
    const bool polls = RE2::PartialMatch(text, kUntil) || (loops && RE2::PartialMatch(text, kBreaks));
    const bool beside = std::ranges::any_of(script.out.roles, [&](const ImportedRole& other) {
      if (!other.part) return false;
      const auto& server = script.out.parts[*other.part];
      return server.background && server.commands[0] < part.commands[0] &&
             !had_exited(script.recording, server, part);
    });
    if (!polls || !beside) return {};
    return fmt::format(
        "line {}: the script repeats `{}` until it succeeds, while another program runs: a plan would try "
        "once. "
        "Wait with curl or nc, which import knows",
        role.line, text::printable(text::shell_join(part.argv)));
  });
}

/// `while sleep 600; do python upload.py; done &`, of which the recording shows some rounds.
Sentences repeats_in_the_background(const Examined& script) {
  if (!script.recording.cut) return {};
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    constexpr std::ptrdiff_t kFew = 3;
    const auto times = std::ranges::count_if(script.recording.commands, [&](const auto& command) {
      return command.fate == shell::Fate::recorded && command.line == part.line && command.argv == part.argv;
    });
    if (!part.background || times < kFew) return {};
    return fmt::format("line {}: a loop in the background starts `{}` again and again, which no role does",
                       role.line, text::printable(text::shell_join(part.argv)));
  });
}

/// `while kill -0 $PID; do python eval.py; sleep 60; done`, of which the recording shows some rounds.
Sentences repeats_while_another_runs(const Examined& script) {
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    static const RE2 kUntilEnd(R"(^\s*(while|until)\b.*(kill -0|ps -p|/proc/\$|squeue|scontrol))");
    const auto again = std::ranges::count_if(script.recording.commands, [&](const auto& command) {
      return command.fate == shell::Fate::recorded && command.line == part.line &&
             command.argv == part.argv && command.script == part.script;
    });
    const bool of_script = part.script.substr(part.script.rfind('/') + 1) == script.out.script;
    if (again < 2 || !of_script || !RE2::PartialMatch(head_of_loop(script.lines, part.line), kUntilEnd))
      return {};
    return fmt::format(
        "line {}: the script starts `{}` again and again while another program runs, which no role "
        "does",
        role.line, text::printable(text::shell_join(part.argv)));
  });
}

/// `for f in data/*.jsonl; do python prepare.py $f; done`, where the files are on the cluster.
Sentences loops_over_files(const Examined& script) {
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    for (const auto& word : script.recording.commands[part.commands[0]].argv) {
      const auto star = word.find_first_of("*");
      if (star == std::string::npos) continue;
      const auto slash = word.rfind('/', star);
      const auto piece = word.substr(slash == std::string::npos ? 0 : slash + 1);
      const RE2 loop(fmt::format(R"(\bfor\s+\w+\s+in\s[^;]*{})", RE2::QuoteMeta(piece)));
      for (const auto& line : script.lines)
        if (RE2::PartialMatch(line, loop))
          return fmt::format(
              "line {}: the script starts `{}` once for each file that {} stands for, and which those "
              "are only the cluster knows: name them",
              role.line, text::printable(text::shell_join(part.argv)), text::printable(word));
    }
    return {};
  });
}

/// `export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID` in the batch script: one value for all tasks of a node.
Sentences gives_tasks_one_gpu(const Examined& script) {
  return of_roles(script, [](const ImportedRole& role, const Part& part) -> std::string {
    for (const auto* name : {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}) {
      const auto visible = part.changes.find(name);
      const bool is_set = visible != part.changes.end() && visible->second && !visible->second->empty();
      if (!is_set || part.tasks.size() < 2 || visible->second->contains(',')) continue;
      return fmt::format(
          "line {}: the script sets {}={} for all tasks of {}, and Slurm may set it again for each: leave "
          "it out, or set it in each task",
          role.line, name, text::printable(*visible->second), role.name);
    }
    return {};
  });
}

/// `while [ ! -f PATH ]; do sleep 5; done`, before any program that could make it.
Sentences waits_for_a_file(const Examined& script) {
  return of_each(script.recording.waited_for, [&](const auto& one) -> std::string {
    const bool may_be_made = std::ranges::any_of(script.out.roles, [&](const ImportedRole& role) {
      return role.part && script.out.parts[*role.part].line < one.line;
    });
    if (may_be_made) return {};
    return fmt::format(
        "line {} waits for {}, which nothing in the script makes, and a run waits for no file: submit the "
        "job "
        "when it is there (sbatch --dependency), or let the program wait",
        one.line, text::printable(one.name));
  });
}

/// `parallel -j 2 python train.py --lr {} ::: 1e-4 1e-5`
Sentences starts_in_parallel(const Examined& script) {
  return of_roles(script, [](const ImportedRole& role, const Part& part) -> std::string {
    if (part.argv.empty() || shell::program_name(part.argv[0]) != "parallel") return {};
    return fmt::format(
        "line {}: parallel starts several programs at once, which are not recorded: start them with & in a "
        "loop, and `wait`",
        role.line);
  });
}

/// `--base-gpu-id 4`, `--device cuda:2`: a GPU by its number on the node, of which the role sees a part.
Sentences numbers_gpus_of_the_node(const Examined& script) {
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    static const RE2 kDevice(R"(^(?:--?[\w-]+=)?cuda:(\d+)$)");
    static const RE2 kBase(R"(^--base-gpu-id=(\d+)$)");
    const auto sees = role.rendezvous && role.gpus == 1 ? script.out.gpus : role.gpus;
    for (std::size_t i = 1; i < part.argv.size() && sees > 0; ++i) {
      std::uint32_t gpu = 0;
      const bool named =
          RE2::FullMatch(part.argv[i], kDevice, &gpu) || RE2::FullMatch(part.argv[i], kBase, &gpu) ||
          (part.argv[i - 1] == "--base-gpu-id" && RE2::FullMatch(part.argv[i], R"((\d+))", &gpu));
      if (!named || gpu < sees) continue;
      return fmt::format(
          "line {}: `{}` is a GPU by its number on the node, but {} sees only its own {}, numbered from 0: "
          "choose them with CUDA_VISIBLE_DEVICES in the script, and leave this out",
          part.line, text::printable(part.argv[i]), role.name, text::count(sees, "GPU"));
    }
    return {};
  });
}

/// CUDA_VISIBLE_DEVICES=MIG-...: which GPU that is a part of, only the node knows.
Sentences names_a_slice(const Examined& script) {
  return of_roles(script, [](const ImportedRole& role, const Part& part) -> std::string {
    const auto visible = part.changes.find("CUDA_VISIBLE_DEVICES");
    if (visible == part.changes.end() || !visible->second || !visible->second->contains("-") ||
        *visible->second == "-1")
      return {};
    return fmt::format(
        "line {}: {} sees {} by its UUID (CUDA_VISIBLE_DEVICES), which is of one node: give its number",
        role.line, role.name, text::printable(*visible->second));
  });
}

/// `tmux new-session -d "vllm serve ..."`, `screen -dm`.
Sentences hides_programs(const Examined& script) {
  return of_each(script.recording.commands, [](const auto& command) -> std::string {
    const auto& argv = command.argv;
    const auto name = shell::program_name(argv[0]);
    const auto has = [&](const char* word) { return shell::has(argv, word); };
    const bool in_tmux =
        name == "tmux" &&
        (has("send-keys") || has("send") ||
         (has("-d") && !argv.back().starts_with('-') && argv.back().find(' ') != std::string::npos));
    const bool in_screen = name == "screen" && (has("-dm") || has("-d") || has("-dmS"));
    if (!in_tmux && !in_screen) return {};
    return fmt::format(
        "line {}: `{}` starts a program in a terminal of its own, which is not imported: start it with &",
        command.line, text::printable(text::shell_join(argv)));
  });
}

/// A function that `export -f` hands on: nothing in a plan can.
Sentences calls_a_function(const Examined& script) {
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    for (const auto& entry : script.recording.commands[part.commands[0]].environment) {
      static const RE2 kFunction(R"(^BASH_FUNC_(\w+)%%=)");
      std::string name;
      if (!RE2::PartialMatch(entry, kFunction, &name)) continue;
      const auto uses = [&](const std::string& word) {
        return RE2::PartialMatch(word, fmt::format(R"((^|[^\w./-]){}($|[^\w./-]))", name));
      };
      if (std::ranges::any_of(part.argv, uses))
        return fmt::format(
            "line {}: `{}` calls {}, a function of the script (export -f): put it into a file of its "
            "own",
            role.line, text::printable(text::shell_join(part.argv)), name);
    }
    return {};
  });
}

/// Which of two secrets with the same text a program is given is not known.
Sentences has_equal_secrets(const Examined& script) {
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    for (const auto& one : role.handed_over) {
      std::vector<std::string> names;
      for (const auto& [name, value] : part.changes)
        if (value == one.value && looks_like_secret(name)) names.push_back(name);
      if (names.size() > 1)
        return fmt::format(
            "line {}: {} have the same value, and which of them {} is given is not known: give each "
            "its own",
            role.line, text::join(names, " and "), role.name);
    }
    return {};
  });
}

struct Refusal {
  const char* id;
  Sentences (*found_in)(const Examined& script);
};

constexpr std::array kRefusals{
    Refusal{"import.no-program", starts_nothing},
    Refusal{"import.one-node", is_for_one_node},
    Refusal{"import.tasks", has_other_tasks},
    Refusal{"import.node-as-program", starts_a_node},
    Refusal{"import.substitution", substitutes_a_process},
    Refusal{"import.xargs", uses_parallel_xargs},
    Refusal{"import.parallel", starts_in_parallel},
    Refusal{"import.step", has_a_step_of_several},
    Refusal{"import.empty-host", lacks_a_host},
    Refusal{"import.detaches", starts_a_daemon},
    Refusal{"import.loop", repeats_in_the_background},
    Refusal{"import.loop", repeats_while_another_runs},
    Refusal{"import.files", loops_over_files},
    Refusal{"import.waits", waits_for_a_file},
    Refusal{"import.visible", gives_tasks_one_gpu},
    Refusal{"import.visible", names_a_slice},
    Refusal{"import.visible", numbers_gpus_of_the_node},
    Refusal{"import.wait", waits_for_an_unknown_one},
    Refusal{"import.wait", waits_for_the_first},
    Refusal{"import.poll", polls_by_a_program},
    Refusal{"import.terminal", hides_programs},
    Refusal{"import.function", calls_a_function},
    Refusal{"import.secret", has_equal_secrets},
    Refusal{"import.empty-program", has_no_name},
    Refusal{"import.unknown", has_unknown_markers},
    Refusal{"import.unknown-output", reads_unknown_output},
    Refusal{"import.made-up", depends_on_the_machine},
    Refusal{"import.name", decides_by_a_name},
    Refusal{"import.output-file", passes_output_on},
    Refusal{"import.array", is_an_array},
    Refusal{"import.srun", requests_the_job_by_srun},
    Refusal{"import.not-said", cannot_be_expressed},
    Refusal{"import.failed-task", has_tasks_that_fail},
    Refusal{"import.no-folder", lacks_a_folder},
    Refusal{"import.unknown-contents", reads_unknown_contents},
    Refusal{"import.placeholder", has_a_placeholder},
    Refusal{"import.unknown-file", lacks_a_file},
};

}  // namespace

Diagnostics refusals_of(const Examined& script) {
  Diagnostics problems;
  std::set<std::string> said;
  for (const auto& reason : kRefusals)
    for (auto& text : reason.found_in(script))
      if (said.insert(text).second) problems.error(reason.id, {}, std::move(text));
  return problems;
}

}  // namespace nlaunch::import
