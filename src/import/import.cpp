#include "import/import.h"

#include <fmt/format.h>

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/secrets.h"
#include "base/text.h"
#include "import/environment.h"
#include "import/markers.h"
#include "import/roles.h"
#include "import/secrets.h"
#include "import/slurm.h"
#include "import/step_options.h"
#include "import/texts.h"
#include "import/work.h"
#include "lint/script_input.h"
#include "shell/allocation.h"
#include "shell/answers.h"
#include "shell/srun.h"

namespace nlaunch::import {
namespace {

/// Turns any name into one that an experiment can have.
std::string simple_name(std::string called) {
  // The user of the simulated job, which no other job has.
  static const RE2 kUser(fmt::format("[-_.]?{}", shell::Allocation::kUser));
  RE2::GlobalReplace(&called, kUser, "");
  std::string name;
  for (const char c : called) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.';
    name += plain ? c : '-';
  }
  name.erase(0, std::min(name.find_first_not_of("-."), name.size()));
  constexpr std::size_t kLongest = 80;
  return name.empty() ? "job" : name.substr(0, kLongest);
}

std::string stem(std::string_view path) {
  path = path.substr(path.rfind('/') + 1);
  return std::string(path.substr(0, path.rfind('.')));
}

void import_walltime(const JobDirectives& directives, Imported& out) {
  if (directives.before.empty()) return;
  ImportedWalltime walltime;
  walltime.signal = directives.signal;
  walltime.before = directives.before;
  walltime.line = directives.signal_line;
  out.walltime = std::move(walltime);
  // Between the signal and the time limit, programs can still run.
  for (auto& role : out.roles)
    if (role.part && (role.kind == RoleKind::learner || role.ends_run.value_or(false)) &&
        !(role.ready && role.ready->exited))
      role.grace = directives.before;
}

/// Attaches lint findings about a value to it.
void attach_findings(const std::vector<lint::Finding>& findings, ImportedEnvironment& environment) {
  for (auto& entry : environment.set) {
    for (const auto& finding : findings) {
      if (finding.span.line != entry.line || finding.what.find(entry.name) == std::string::npos) continue;
      if (finding.severity == Severity::error && finding.rule != "export-commas" &&
          finding.rule != "preload-everywhere") {
        if (!entry.remark.empty()) entry.remark += "; ";
        entry.remark += fmt::format("lint: {}{}{}", finding.rule,
                                    finding.instead.empty() ? "" : ", instead: ", finding.instead);
      } else if (finding.severity == Severity::note && finding.rule == "unknown-variable") {
        entry.remark = fmt::format("# nlaunch: allow {}: the script itself uses it", finding.rule);
      }
    }
  }
}

/// Remarks on how a script handles failures, which a recording does not show.
void remarks_of_text(const std::vector<std::string>& lines, Imported& out) {
  static const RE2 kErrexit(R"(^\s*set\s(.*\s)?-[a-z]*e|^\s*set\s.*errexit|^#!.*\s-[a-z]*e)");
  static const RE2 kElse(R"(\|\|\s*(\S+))");
  static const RE2 kRandom(R"(\$\{?RANDOM\b|\bRANDOM\s*[%*+/])");
  bool errexit = false;
  std::uint32_t number = 0;
  for (const auto& line : lines) {
    ++number;
    errexit = errexit || RE2::PartialMatch(line, kErrexit);
    if (text::trim(line).starts_with('#')) continue;
    constexpr std::array<std::string_view, 10> kHarmless{"true",   "true;", ":",        "echo",  "exit",
                                                         "return", "{",     "continue", "break", "die"};
    std::string other;
    const bool tests = line.find("[[") != std::string::npos || line.find("[ ") != std::string::npos;
    if (!tests && RE2::PartialMatch(line, kElse, &other) &&
        std::ranges::find(kHarmless, other) == kHarmless.end())
      out.remarks[Destination::roles].push_back(
          {number, "the command after || runs after a failure, and is not imported"});
    if (RE2::PartialMatch(line, kRandom))
      out.remarks[Destination::roles].push_back({number,
                                                 "$RANDOM differs in each job, but the plan has the number "
                                                 "it was here: to give a process a free "
                                                 "port, use `ports: [name]`"});
  }
  if (!errexit && out.roles.size() > 1)
    out.remarks[Destination::roles].push_back(
        {0, "without `set -e`, the script continues when a program fails: here the run stops"});
}

/// Remarks on builtins that change the shell and its children in other ways than by variables.
void remarks_of_builtins(const shell::Recording& recording, Imported& out) {
  for (const auto& command : recording.traced) {
    if (!command.text.starts_with("ulimit ") && !command.text.starts_with("trap ")) continue;
    const bool own = command.script.substr(command.script.rfind('/') + 1) == out.script;
    const Remark remark{own ? command.line : 0, text::printable(command.text) + ": not imported"};
    auto& remarks = out.remarks[Destination::roles];
    const bool known = std::ranges::any_of(
        remarks, [&](const Remark& one) { return one.line == remark.line && one.text == remark.text; });
    if (!known) remarks.push_back(remark);
  }
}

/// The output in --prints belongs to one allocation: an address, a name, a port.
void remarks_of_printed(const shell::Recording& recording, Imported& out) {
  for (const auto& one : recording.printed) {
    const bool is_word = !one.name.empty() && one.name.find_first_of(" /\n{") == std::string::npos;
    const auto has_it = [&](const std::string& word) { return word.find(one.name) != std::string::npos; };
    const bool is_used = std::ranges::any_of(out.parts, [&](const Part& part) {
      return std::ranges::any_of(part.argv, has_it) ||
             std::ranges::any_of(part.changes,
                                 [&](const auto& change) { return change.second && has_it(*change.second); });
    });
    if (is_word && is_used)
      out.remarks[Destination::roles].push_back(
          {one.line, fmt::format("the plan has {} as given with --prints: if it differs between jobs, use a "
                                 "placeholder (${{role.NAME.0.host}}, ${{self.host}})",
                                 text::printable(one.name))});
  }
}

/// The command on a line, with its continuation lines.
std::string whole_command(const std::vector<std::string>& lines, std::uint32_t line) {
  if (line == 0 || line > lines.size()) return {};
  auto first = line - 1;
  while (first > 0 && lines[first - 1].ends_with('\\')) --first;
  std::string text;
  for (auto i = first; i < lines.size(); ++i) {
    text += lines[i] + "\n";
    if (!lines[i].ends_with('\\')) break;
  }
  return text;
}

bool stands_unquoted(std::string_view text, std::string_view piece) {
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quote == '\0' && text.substr(i).starts_with(piece)) return true;
    const bool opens = quote == '\0' && (text[i] == '"' || text[i] == '\'');
    if (text[i] == '\\' && quote != '\'')
      ++i;
    else if (opens || text[i] == quote)
      quote = opens ? text[i] : '\0';
  }
  return false;
}

/// What bash itself does on lines that start programs, but roles do not.
void remarks_of_lines(const std::vector<std::string>& lines, Imported& out) {
  static const RE2 kIgnored(R"(\|\|\s*(true|:)\s*($|[\n;#)&}]))");
  static const RE2 kShown(R"(^\s*(echo|printf)\b.*\$\()");
  std::set<std::pair<std::uint32_t, std::string>> said;
  const auto remark = [&](std::uint32_t line, std::string text) {
    if (said.insert({line, text}).second) out.remarks[Destination::roles].push_back({line, std::move(text)});
  };
  for (const auto& role : out.roles) {
    if (!role.part) continue;
    const auto& part = out.parts[*role.part];
    if (part.script.substr(part.script.rfind('/') + 1) != out.script) continue;
    const auto text = whole_command(lines, part.line);
    const auto* const ignored = RE2::PartialMatch(text, kIgnored) ? "|| true"
                                : RE2::PartialMatch(text, kShown) ? "echo $(...)"
                                                                  : nullptr;
    if (!part.background && ignored != nullptr)
      remark(part.line,
             fmt::format("{} may fail in the script ({}): here the run then stops", role.name, ignored));
    static const RE2 kAgain(R"(&&\s*break\b|^\s*(?:until|while\s+!)\s+[^\[(])");
    if (!part.background && RE2::PartialMatch(text, kAgain))
      remark(part.line,
             fmt::format("the script starts {} again if it fails: here the run then stops, unless the "
                         "experiment has `restart`",
                         role.name));
  }
  // A number of the simulated job would be the same in each run.
  static const RE2 kReckons(
      R"(\(\([^)]*SLURM_JOB_?ID|\$\{SLURM_JOB_?ID\s*:[^-=?+}]|\b(?:expr|let)\b.*SLURM_JOB_?ID|)"
      R"(SLURM_JOB_?ID\b.*\|\s*(?:tail -c|head -c|cut|bc|md5sum|cksum))");
  for (std::uint32_t line = 1; line <= lines.size(); ++line)
    if (!text::trim(lines[line - 1]).starts_with('#') && RE2::PartialMatch(lines[line - 1], kReckons))
      out.remarks[Destination::experiment].push_back(
          {line,
           "this value is computed from the job's id: here it is a fixed number, the same in each run"});
}

/// Words that bash would expand to files on the cluster, for which a role has no shell.
void give_globs_a_shell(const shell::Recording& recording, const std::vector<std::string>& lines,
                        Imported& out) {
  for (auto& role : out.roles) {
    if (!role.part) continue;
    const auto& part = out.parts[*role.part];
    if (part.script.substr(part.script.rfind('/') + 1) != out.script) continue;
    const auto text = whole_command(lines, part.line);
    const auto& argv = recording.commands[part.commands[0]].argv;
    for (const auto& word : argv) {
      const auto star = word.find('*');
      if (star == std::string::npos) continue;
      const auto piece = word.substr(star, word.find('/', star) - star);
      if (stands_unquoted(text, piece)) role.globs.push_back(word);
    }
    if (role.globs.empty()) continue;
    const bool plain = role.command == argv && role.handed_over.empty() && part.tasks.size() == 1;
    if (plain)
      role.command = {"bash", "-c", line_with_globs(argv, role.globs)};
    else
      for (const auto& word : std::exchange(role.globs, {}))
        out.remarks[Destination::roles].push_back(
            {part.line,
             fmt::format("bash expands {} to the files on the cluster. {} has no shell and gets the pattern "
                         "itself: name the files, or start it with bash -c",
                         text::printable(word), role.name)});
  }
}

/// Remarks on addresses that the script queries from its node: nlaunch has its own address for each node.
void remarks_of_addresses(const shell::Recording& recording, Imported& out) {
  bool said = false;
  for (const auto& command : recording.commands) {
    const auto name = shell::program_name(command.argv[0]);
    const auto has = [&](const char* word) { return shell::has(command.argv, word); };
    const bool hostname =
        name == "hostname" && (has("-I") || has("-i") || has("--ip-address") || has("--all-ip-addresses"));
    const bool ip = name == "ip" && (has("addr") || has("address") || has("a"));
    if (command.fate != shell::Fate::answered || !(hostname || ip)) continue;
    const auto show = std::ranges::find(command.argv, "show");
    auto interface = show == command.argv.end() ? show : show + 1;
    if (interface != command.argv.end() && *interface == "dev") ++interface;
    if (ip && interface != command.argv.end() && !interface->starts_with('-') && out.interface.empty())
      out.interface = escaped(*interface);
    if (!std::exchange(said, true))
      out.remarks[Destination::roles].push_back(
          {command.line,
           fmt::format("the script gets an address from `{}`: the plan uses the "
                       "address of `node.nics.interface` in the profile, else that of the hostname",
                       text::printable(text::shell_join(command.argv)))});
  }
}

/// A remark on tasks that the directives request but that no step of the script has.
void remark_of_tasks(const lint::LintInput& input, const JobDirectives& directives,
                     const shell::Recording& recording, Imported& out) {
  const bool used = std::ranges::any_of(
      recording.commands, [](const auto& command) { return command.task && command.task->local_rank > 0; });
  const auto option = std::ranges::find_if(input.batch, [](const auto& one) {
    return one.text.starts_with("--ntasks-per-node=") || one.text.starts_with("--tasks-per-node=");
  });
  if (used || directives.size.tasks < 2 || option == input.batch.end()) return;
  out.remarks[Destination::slurm].push_back(
      {option->span.line,
       fmt::format("{}: no step of the script has that many tasks, and nlaunch's job has one per node. A "
                   "program that calls srun itself, or reads SLURM_NTASKS, sees a different job",
                   text::printable(option->text))});
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

std::string why_no_program(const shell::Recording& recording) {
  for (const auto& command : recording.commands)
    if (shell::program_name(command.argv[0]) == "sbatch")
      return fmt::format(
          "the script does not start a program itself: it submits a job at line {}. Import what it submits",
          command.line);
  return "the script does not start a program that could be a role; --commands shows what it would start";
}

/// True for a script for one node of many that must be started on each of them.
bool runs_on_each_node(const shell::Recording& recording, const Imported& out) {
  const bool places = std::ranges::any_of(recording.commands, [](const auto& command) {
    return command.fate == shell::Fate::launcher && command.task;
  });
  if (std::ranges::none_of(out.roles, [](const auto& role) { return role.part.has_value(); })) return false;
  return out.nodes > 1 && out.pools.empty() && out.directives.empty() && out.slurm.empty() && !places &&
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

/// True for `mkdir -p a b` if a role creates the directories.
bool is_made(const Imported& out, const std::string& command) {
  const auto words = text::split(command, ' ');
  const auto has = [&](const std::string& folder) {
    return std::ranges::any_of(out.parts, [&](const Part& part) {
      return std::ranges::any_of(part.files, [&](const PartFile& file) {
        return file.path == folder + "/" || file.path.ends_with("/" + folder + "/");
      });
    });
  };
  return words[0] == "mkdir" && std::all_of(words.begin() + 1, words.end(), [&](const auto& word) {
           return word.starts_with('-') || has(word);
         });
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
  return (name == "nginx" &&
          std::ranges::none_of(argv, [](const auto& word) { return word.contains("daemon off"); })) ||
         (name == "redis-server" && shell::has(argv, "--daemonize")) || name == "slapd";
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
    if (one.line != part.line || one.script != part.script || !one.text.starts_with("xargs ")) return false;
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

/// Why no experiment can be the same job.
void refuse(const shell::Recording& recording, const shell::Allocation& allocation,
            const JobDirectives& directives, const std::vector<std::string>& unknown, const Imported& out,
            Diagnostics& problems) {
  std::set<std::string> said;
  const auto say = [&](const char* id, std::string what) {
    if (said.insert(what).second) problems.error(id, {}, std::move(what));
  };
  if (std::ranges::none_of(out.roles, [](const auto& role) { return role.part.has_value(); }))
    say("import.no-program", why_no_program(recording));
  if (runs_on_each_node(recording, out))
    say("import.one-node",
        fmt::format(
            "the script has no #SBATCH lines and starts programs on only one node, but --nodes requests "
            "{}. If it is started on each node, pass --per-node, and use --env for the node's number and "
            "the "
            "first host: --per-node --env RANK={{node}} --env MASTER_ADDR={{first}}",
            out.nodes));
  for (const auto& role : out.roles) {
    if (!role.part) continue;
    const auto& part = out.parts[*role.part];
    // If the script reads its output, that is the first unknown.
    const bool is_read = std::ranges::any_of(
        part.commands, [&](auto index) { return recording.commands[index].output_is_read; });
    if (!part.problem.empty() && !is_read)
      say("import.tasks", fmt::format("{}: {}", role.name, part.problem));
    if (shell::node_of(part.argv[0]))
      say("import.node-as-program",
          fmt::format(
              "line {}: srun starts '{}', the name of a node: it gets several nodes as several words. "
              "Join them with commas",
              part.line, text::printable(part.argv[0])));
    if (const auto path = substituted(part.argv))
      say("import.substitution",
          fmt::format(
              "line {}: `{}` reads or writes {}, a process substitution, which exists only while bash "
              "runs the script: use a file instead",
              part.line, text::printable(text::shell_join(part.argv)), *path));
    if (is_of_parallel_xargs(recording, part))
      say("import.xargs",
          fmt::format(
              "line {}: xargs starts several programs at once (-P), and which of them run at the same "
              "time is not known: start them with & in a loop, and `wait`",
              part.line));
    if (is_not_taken_apart(part))
      say("import.step",
          fmt::format(
              "line {}: this step cannot be imported. It starts several programs (`a : b`, --multi-prog), or "
              "its "
              "nodes are not nodes of the job: give each program its own step, on nodes of the "
              "job",
              role.line));
    const auto& first = recording.commands[part.commands[0]];
    if (const auto word = empty_host(first.argv))
      say("import.empty-host",
          fmt::format("line {}: `{}` has no host: the script gets it from the output of a program, which is "
                      "not known here. Give the output with --prints 'PART OF THE COMMAND=TEXT'",
                      role.line, text::printable(*word)));
    if (detaches(part.program) && role.ends_run.value_or(role.kind == RoleKind::learner))
      say("import.detaches",
          fmt::format("line {}: `{}` moves itself to the background, and the run would end with it: start it "
                      "in the foreground (nginx: -g 'daemon off;')",
                      role.line, text::printable(text::shell_join(first.argv))));
    if (role.command.empty() || role.command[0].empty())
      say("import.empty-program", fmt::format("line {}: the program name is empty", role.line));
  }
  for (const auto& what : unknown)
    say("import.unknown", fmt::format("a command of the script contains {}", what));
  for (const auto& command : recording.commands) {
    if (command.output_is_read)
      say("import.unknown-output",
          fmt::format("line {} reads the output of `{}`, which is not known because it did not run. "
                      "Give the output with --prints 'PART OF THE COMMAND=TEXT'",
                      command.line, text::printable(text::shell_join(command.argv))));
  }
  for (const auto& one : recording.by_machine)
    say("import.made-up",
        fmt::format("line {}: '{}' depends on what {} about the machine, which is made up. Give its "
                    "output from the cluster with --prints 'PART OF THE COMMAND=TEXT'{}",
                    one.line, text::printable(one.name), who_says(recording),
                    allocation.gpus_per_node == 0 ? ", and the number of GPUs per node with --gpus" : ""));
  for (const auto& one : recording.passed_on)
    say("import.output-file",
        fmt::format(
            "line {}: a program uses {}, which contains the redirected output of another program; the "
            "output of a role goes to its log: let the program write the file itself",
            one.line, text::printable(one.name)));
  const bool has_task = std::ranges::any_of(out.parts, [](const Part& part) {
    const auto id = part.changes.find("SLURM_ARRAY_TASK_ID");
    return id != part.changes.end() && id->second;
  });
  if (allocation.array.size() > 1 && !allocation.array_task && has_task)
    say("import.array",
        fmt::format("line {}: the job is an array of {} tasks, but an experiment is only one of "
                    "them: select it with --env SLURM_ARRAY_TASK_ID={}",
                    directives.array_line, allocation.array.size(), allocation.array.front()));
  for (const auto& command : recording.commands) {
    const auto asked = out.directives.empty() && out.slurm.empty() ? what_it_asks_of_slurm(command.argv) : "";
    if (!asked.empty())
      say("import.srun",
          fmt::format("line {}: the script has no #SBATCH lines, and this srun requests the job itself "
                      "({}): move these options to #SBATCH lines and import the script again",
                      command.line, asked));
  }
  for (const auto& one : out.not_said) say("import.not-said", fmt::format("line {}: {}", one.line, one.text));
  for (const auto& one : recording.failed)
    say("import.failed-task",
        fmt::format("the tasks of the step at line {} exit with {}, and may start more if "
                    "nothing is missing: --commands shows how far they get{}",
                    one.line, one.name, syntax_error(recording.output)));
  for (const auto& one : recording.no_folder) {
    const auto folder = one.name.substr(0, one.name.rfind('/') + 1);
    say("import.no-folder",
        fmt::format(
            "line {} writes to {}, but {} does not exist: bash does not start the program, here or on "
            "the cluster. Create the directory or, if the cluster has it, pass --exists {}",
            one.line, text::printable(one.name), text::printable(folder), text::shell_quote(folder)));
  }
  std::set<std::string> files;
  // A secret is read when the process starts.
  const auto is_secret = [&](const shell::Absent& one) {
    return std::ranges::any_of(recording.assignments, [&](const auto& set) {
      return set.line == one.line && looks_like_secret(set.name);
    });
  };
  for (const auto& one : recording.contents)
    if (!is_secret(one))
      say("import.unknown-contents",
          fmt::format("line {} reads {}, which is known to exist, but not its contents. Import on a machine "
                      "that has it, or give the output of the command (--prints 'PART OF THE COMMAND=TEXT')",
                      one.line, text::printable(one.name)));
  for (const auto& one : recording.unread) {
    if (is_secret(one) || !files.insert(one.name).second) continue;
    const auto placeholder = std::ranges::find_if(recording.placeholders, [&](const auto& other) {
      return other.line == one.line && other.name == "<" + one.name + ">";
    });
    if (placeholder != recording.placeholders.end())
      say("import.placeholder",
          fmt::format(
              "line {} has a placeholder, {}, which bash treats as a redirection: replace it with its "
              "value, then import the script",
              one.line, text::printable(placeholder->name)));
    else if (!one.found_in.empty())
      say("import.unknown-file",
          fmt::format("line {} reads {}, which does not exist here but does in the script's directory: call "
                      "`nlaunch import` in {}",
                      one.line, text::printable(one.name), text::printable(one.found_in)));
    else
      say("import.unknown-file",
          fmt::format(
              "line {} reads {}, which is not on this machine. Import on a machine that has it, or {}",
              one.line, text::printable(one.name),
              one.is_sourced ? fmt::format("treat it as empty (--exists {})", text::shell_quote(one.name))
                             : "give the output of the command (--prints 'PART OF THE COMMAND=TEXT')"));
  }
}

}  // namespace

namespace {

/// Consecutive nodes that run the same programs become a component and a pool.
shell::Allocation parted_by_programs(const shell::Recording& recording, const shell::Allocation& allocation,
                                     Imported& out) {
  std::vector<std::set<std::size_t>> on_node(allocation.nodes);
  const auto parts = parts_of(recording, allocation);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto work = work_of(parts[i].program).work;
    if (work == Work::nothing || work == Work::submission) continue;
    for (const auto& task : parts[i].tasks) on_node.at(task.node).insert(i);
  }
  auto parted = allocation;
  for (std::uint32_t node = 0; node < allocation.nodes; ++node) {
    if (node == 0 || on_node[node] != on_node[node - 1])
      parted.components.push_back({node, 0, allocation.tasks_per_node, allocation.gpus_per_node});
    ++parted.components.back().nodes;
  }
  for (const auto& one : parted.components) {
    const auto last = one.first + one.nodes - 1;
    out.pools.push_back(
        {one.nodes == 1 ? fmt::format("nodes-{}", one.first) : fmt::format("nodes-{}-{}", one.first, last),
         one.nodes,
         std::nullopt,
         {}});
  }
  return parted;
}

}  // namespace

Result<Imported> import_script(const lint::LintInput& input, const std::vector<lint::Finding>& findings,
                               const shell::Recording& recording, const shell::Allocation& allocation,
                               const std::string& name, const std::string& folder, Nodes nodes) {
  Imported out;
  const auto& file = *input.script->file;
  out.folder = folder;
  out.script = file.name.substr(file.name.rfind('/') + 1);
  const auto directives = import_directives(input, out);
  out.name = simple_name(!name.empty()                  ? name
                         : !directives.job_name.empty() ? directives.job_name
                                                        : stem(file.name));
  out.site = text::lower(out.name);
  out.nodes = allocation.nodes;
  out.scheduler = input.slurm || !input.batch.empty() || out.nodes > 1;
  out.nics = input.nics;
  out.gpu = input.gpu;
  const auto lines = text::split(file.text, '\n');
  import_roles(recording, allocation,
               nodes == Nodes::alike ? allocation : parted_by_programs(recording, allocation, out), out);
  import_steps(recording, out);
  import_environment(recording, lines, out);
  hand_over_secrets(out);
  import_walltime(directives, out);
  for (const auto& one : recording.asked_for)
    out.remarks[Destination::experiment].push_back(
        {one.line,
         fmt::format("{} is not on this machine, and the script checks whether it exists: the answer "
                     "was no. For yes, pass --exists {}",
                     one.name, text::shell_quote(one.name))});
  for (const auto& one : recording.made_up)
    out.remarks[Destination::experiment].push_back(
        {one.line,
         fmt::format("the output that `{}` gave the script is made up, or true only of this machine now. To "
                     "change it, use --prints 'PART OF THE COMMAND=TEXT'",
                     one.name)});
  remarks_of_text(lines, out);
  give_globs_a_shell(recording, lines, out);
  remarks_of_lines(lines, out);
  remarks_of_builtins(recording, out);
  remarks_of_printed(recording, out);
  remarks_of_addresses(recording, out);
  remark_of_tasks(input, directives, recording, out);
  if (directives.array_line > 0 && !allocation.array.empty())
    out.remarks[Destination::experiment].push_back(
        {directives.array_line, fmt::format("--array={}: this is one task of the array, {}. To import "
                                            "another, use --env SLURM_ARRAY_TASK_ID=N",
                                            text::printable(directives.array_text),
                                            allocation.array_task.value_or(allocation.array.front()))});
  for (const auto& one : recording.placeholders)
    if (lines[one.line - 1].starts_with("#SBATCH"))
      out.remarks[Destination::slurm].push_back(
          {one.line,
           fmt::format("{} is a placeholder: replace it with its value", text::printable(one.name))});
  for (const auto& path : recording.written)
    out.remarks[Destination::experiment].push_back(
        {0, fmt::format("the script writes {}, which no program is given: it is not written", path)});
  for (const auto& one : recording.missing_arguments)
    out.remarks[Destination::experiment].push_back(
        {one.line, fmt::format("the script reads its argument ${}, which was not given: pass its arguments "
                               "after --",
                               one.name)});
  for (const auto& one : recording.unset) {
    const auto place = fmt::format("{}:{}: ", text::printable(shell::program_name(one.script)), one.line);
    out.remarks[Destination::experiment].push_back(
        {one.script.empty() ? one.line : 0,
         fmt::format("{}nothing sets ${}, so it was empty: set it with --env {}=VALUE",
                     one.script.empty() ? "" : place, one.name, one.name)});
  }
  for (const auto& one : recording.sourced)
    out.remarks[Destination::experiment].push_back(
        {one.line, fmt::format("{} is treated as empty: what it sets is not imported", one.name)});
  for (const auto& one : recording.done_here) {
    if (is_made(out, one.name)) continue;
    out.remarks[Destination::roles].push_back(
        {one.line, fmt::format("`{}` is not imported: if a program needs it, do it before the run",
                               text::printable(one.name))});
  }
  for (const auto& one : recording.idle)
    out.remarks[Destination::roles].push_back(
        {one.line, fmt::format("xargs read nothing here, so it did not start `{}`. On the cluster it may",
                               text::printable(one.name))});
  for (const auto& path : recording.not_here)
    out.remarks[Destination::experiment].push_back(
        {0, fmt::format("{} is not on this machine, and was treated as empty", path)});
  attach_findings(findings, out.environment);
  attach_findings(findings, out.site_environment);
  for (auto& role : out.roles) attach_findings(findings, role.environment);
  std::vector<std::string> unknown;
  refer_to_the_job(allocation, file.text, out, unknown);
  Diagnostics problems;
  refuse(recording, allocation, directives, unknown, out, problems);
  finish(lines, out);
  if (problems.has_errors()) return std::unexpected(std::move(problems));
  return out;
}

}  // namespace nlaunch::import
