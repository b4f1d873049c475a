#include "import/remarks.h"

#include <fmt/format.h>

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "import/markers.h"
#include "import/texts.h"
#include "import/work.h"
#include "shell/launchers.h"
#include "shell/srun.h"
#include "shell/traps.h"

namespace nlaunch::import {
namespace {

/// True if a line of the script itself comes after one that starts a role.
bool is_behind_a_program(std::uint32_t line, const Imported& out) {
  return std::ranges::any_of(out.roles, [&](const ImportedRole& role) {
    if (!role.part) return false;
    const auto& part = out.parts[*role.part];
    return part.script.substr(part.script.rfind('/') + 1) == out.script && part.line <= line;
  });
}

/// Remarks on how a script handles failures, which a recording does not show.
void remarks_of_text(const std::vector<std::string>& lines, Imported& out) {
  static const RE2 kRandom(R"(\$\{?RANDOM\b|\bRANDOM\s*[%*+/])");
  static const RE2 kOwnPid(R"((?:^|[^\\$])\$\$(?:[^\w$]|$))");
  static const RE2 kCode(R"(\$\?|\$\{?\?\}?|PIPESTATUS)");
  static const RE2 kEnds(R"(^\s*exit\s+"?\$\{?\?\}?"?\s*$)");
  std::uint32_t number = 0;
  for (const auto& line : lines) {
    ++number;
    if (text::trim(line).starts_with('#')) continue;
    if (RE2::PartialMatch(line, kRandom))
      out.remarks[Destination::roles].push_back(
          {number,
           "$RANDOM differs in each job, but the plan has the number it was here: to give a process a free "
           "port, use `ports: [name]`"});
    static const RE2 kOtherRandom(R"(/dev/u?random\b|\bsrand\()");
    if (RE2::PartialMatch(line, kOtherRandom))
      out.remarks[Destination::roles].push_back(
          {number, "a random number differs in each job, but the plan has the one it was here"});
    static const RE2 kRestart(R"(SLURM_RESTART_COUNT)");
    if (RE2::PartialMatch(line, kRestart))
      out.remarks[Destination::roles].push_back({number,
                                                 "the script asks whether its job was requeued, which it was "
                                                 "not here: what it does then is not imported"});
    if (RE2::PartialMatch(line, kOwnPid))
      out.remarks[Destination::roles].push_back(
          {number, "$$ is a process id, which differs in each job, but the plan has the number it was here"});
    if (RE2::PartialMatch(line, kCode) && !RE2::PartialMatch(line, kEnds) && is_behind_a_program(number, out))
      out.remarks[Destination::roles].push_back({number,
                                                 "the script reads an exit code, which was 0 here: what it "
                                                 "does after a failure is not imported, and the run stops"});
  }
}

/// The role of a program that an EXIT trap starts; nullptr if there is none.
const ImportedRole* started_by_trap(const std::string& command, const Imported& out) {
  const auto trap = shell::trap_of(shell::words_of(command));
  if (!trap || !trap->catches("EXIT")) return nullptr;
  const bool expands = trap->handler->contains('$');
  const auto found = std::find_if(out.roles.rbegin(), out.roles.rend(), [&](const ImportedRole& role) {
    if (!role.part) return false;
    const auto& argv = out.parts[*role.part].argv;
    const auto stands = [&](const auto& word) { return trap->handler->contains(word); };
    return stands(argv[0]) && (argv.size() < 2 || stands(argv[1])) &&
           (expands || std::ranges::all_of(argv, stands));
  });
  return found == out.roles.rend() ? nullptr : &*found;
}

/// The word of a command that is such a program: the first, or one that a launcher starts.
template <typename Is>
shell::Words::const_iterator word_of_program(const shell::Words& words, const Is& is) {
  const auto launchers = shell::names_of_launchers();
  const bool launches =
      !words.empty() && (words[0] == "exec" || std::ranges::find(launchers, words[0]) != launchers.end());
  if (!words.empty() && is(words[0])) return words.begin();
  return launches ? std::ranges::find_if(words, is) : words.end();
}

/// `bash -lc TEXT`, which reads the profile of a login.
void remarks_of_login_shells(const shell::Recording& recording, Imported& out) {
  std::set<std::uint32_t> told;
  for (const auto& one : recording.traced) {
    const auto words = shell::words_of(one.text);
    const auto is_login = [](const std::string& word) {
      return word == "--login" ||
             (word.size() > 1 && word[0] == '-' && word[1] != '-' && word.contains('l') &&
              word.find_first_not_of("lceixu", 1) == std::string::npos);
    };
    const auto shell = word_of_program(words, [](const auto& word) { return shell::is_shell(word); });
    if (shell == words.end() || shell + 1 == words.end() || !is_login(*(shell + 1))) continue;
    const bool own = one.script.substr(one.script.rfind('/') + 1) == out.script;
    if (told.insert(one.line).second)
      out.remarks[Destination::environment].push_back(
          {own ? one.line : 0,
           "`bash -l` reads the profile of a login on the cluster: what it sets is not imported"});
  }
}

/// Remarks on builtins that change the shell and its children in other ways than by variables.
void remarks_of_builtins(const shell::Recording& recording, Imported& out) {
  for (const auto& command : recording.traced) {
    constexpr std::array<std::string_view, 3> kBuiltins{"ulimit ", "trap ", "umask "};
    if (std::ranges::none_of(kBuiltins, [&](auto name) { return command.text.starts_with(name); })) continue;
    const bool own = command.script.substr(command.script.rfind('/') + 1) == out.script;
    const auto* started = started_by_trap(command.text, out);
    const Remark remark{
        own ? command.line : 0,
        text::printable(command.text) +
            (started == nullptr ? ": not imported"
                                : fmt::format(": the script starts {} also after a failure: here it "
                                              "starts only after a success",
                                              started->name))};
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
          {one.line, fmt::format("the plan has {} as given with --prints: if it differs between jobs, put a "
                                 "placeholder in its place there (${{role.NAME.0.host}}, ${{self.host}})",
                                 text::printable(one.name))});
  }
}

/// Remarks on what bash itself does on lines that start programs, but roles do not.
void remarks_of_lines(const std::vector<std::string>& lines, Imported& out) {
  std::set<std::pair<std::uint32_t, std::string>> said;
  const auto remark = [&](std::uint32_t line, std::string text) {
    if (said.insert({line, text}).second) out.remarks[Destination::roles].push_back({line, std::move(text)});
  };
  for (const auto& role : out.roles) {
    if (!role.part) continue;
    const auto& part = out.parts[*role.part];
    if (part.script.substr(part.script.rfind('/') + 1) != out.script) continue;
    const auto text = whole_command(lines, part.line);
    static const RE2 kWaits(R"(\b(?:wait|disown|kill(?:\s+-\w+)*)\s+"?\$!)");
    static const RE2 kLastPid(R"([\s"=]\$!)");
    // PIDS="$PIDS $!", pids[$i]=$!, pids+=($!), echo $! > FILE
    static const RE2 kKeeps(
        R"re((?:^|[\s;&|(])(?:\w+(?:\[[^\]]*\])?\+?=(?:\([^)]*\)|"[^"]*"|[^\s;&|]*)|(?:echo|printf)\b[^;|&\n]*))re");
    auto without = text;
    RE2::GlobalReplace(&without, kWaits, "");
    RE2::GlobalReplace(&without, kKeeps, "");
    if (RE2::PartialMatch(without, kLastPid))
      remark(part.line,
             "$! is a process id, which differs in each job, but the plan has the number it was here");
    static const RE2 kAgain(R"(&&\s*break\b|^\s*(?:until|while\s+!)\s+[^\[(])");
    // retry() { until "$@"; do sleep 5; done; }
    static const RE2 kArguments(
        R"re((?:^|[;&|{!]|\b(?:do|then|until|while|if))\s*"?\$(?:@|\*|\{@\})"?\s*(?:$|&&|\|\||;))re");
    static const RE2 kLoop(R"re((?:^|[\s;{])(?:for|while|until)\s)re");
    const bool loops = RE2::PartialMatch(text, kLoop) || !head_of_loop(lines, part.line).empty();
    const bool again = RE2::PartialMatch(text, kAgain) || (loops && RE2::PartialMatch(text, kArguments));
    if (!part.background && again)
      remark(part.line, fmt::format("the script starts {} again if it fails: here the run then stops, unless "
                                    "the experiment has `restart`",
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

/// Remarks on addresses that the script queries from its node: nlaunch has its own address for each node.
void remarks_of_addresses(const shell::Recording& recording, Imported& out) {
  bool said = false;
  for (const auto& command : recording.commands) {
    const auto name = shell::program_name(command.argv[0]);
    const auto has = [&](const char* word) { return shell::has(command.argv, word); };
    const bool hostname =
        name == "hostname" && (has("-I") || has("-i") || has("--ip-address") || has("--all-ip-addresses"));
    const bool ip = name == "ip" && (has("addr") || has("address") || has("a"));
    const bool hosts = name == "getent" && command.argv.size() > 1 && command.argv[1].contains("hosts");
    const bool asks_names = hosts || name == "dig" || name == "host" || name == "nslookup";
    if (command.fate != shell::Fate::answered || !(hostname || ip || asks_names)) continue;
    const auto show = std::ranges::find(command.argv, "show");
    auto interface = show == command.argv.end() ? show : show + 1;
    if (interface != command.argv.end() && *interface == "dev") ++interface;
    if (ip && interface != command.argv.end() && !interface->starts_with('-') && out.interface.empty())
      out.interface = escaped(*interface);
    if (!std::exchange(said, true))
      out.remarks[Destination::roles].push_back(
          {command.line, fmt::format("the script gets an address from `{}`: the plan uses the address of "
                                     "`node.nics.interface` in the profile, else that of the hostname",
                                     text::printable(text::shell_join(command.argv)))});
  }
}

/// A remark on an address that names another network of the host: `MASTER_ADDR="${host}i"`.
void remark_of_networks(Imported& out) {
  static const RE2 kSuffix(fmt::format("(rec-node-\\d+)({})", kSuffixOfNetwork));
  for (const auto& part : out.parts) {
    const auto address = part.changes.find("MASTER_ADDR");
    std::string suffix;
    if (address == part.changes.end() || !address->second ||
        !RE2::FullMatch(*address->second, kSuffix, static_cast<void*>(nullptr), &suffix))
      continue;
    out.remarks[Destination::roles].push_back(
        {part.line, fmt::format("MASTER_ADDR is the name of a host with {} behind it, a name on another "
                                "network at some sites: the plan has the address of "
                                "`node.nics.interface` in the profile, else that of the hostname",
                                suffix)});
    return;
  }
}

/// Remarks on locks, and on signals that the script sends after a time: `(sleep 3000; kill -USR1 $PID) &`.
void remarks_of_moments(const shell::Recording& recording, Imported& out) {
  auto& remarks = out.remarks[Destination::roles];
  const auto lock = std::ranges::find_if(recording.commands, [](const auto& command) {
    return command.fate == shell::Fate::answered && shell::program_name(command.argv[0]) == "flock";
  });
  if (lock != recording.commands.end())
    remarks.push_back(
        {lock->line,
         "the run takes no lock (flock): jobs that the lock keeps apart may run at the same time"});
  const auto main = recording.traced.empty() ? 0 : recording.traced.front().shell;
  std::map<pid_t, std::string> before;  // by shell
  for (const auto& command : recording.traced) {
    const auto last = std::exchange(before[command.shell], command.text);
    if (command.shell == main || !command.text.starts_with("kill ") || !last.starts_with("sleep ")) continue;
    const bool own = command.script.substr(command.script.rfind('/') + 1) == out.script;
    const auto words = shell::words_of(command.text);
    const auto signal = words.size() > 2 ? words[1] : "";
    if (signal != "-0")
      remarks.push_back(
          {own ? command.line : 0,
           fmt::format("the script sends a signal (kill{}) after a time ({}): the run sends none",
                       signal.empty() ? "" : " " + text::printable(signal), text::printable(last))});
  }
}

/// Remarks on `NAME=${NAME:-VALUE}` behind what may have set NAME on the cluster.
void remarks_of_defaults(const Remarked& script, Imported& out) {
  static const RE2 kDefault(R"re((?:^|[\s;])([A-Z][A-Z0-9_]*)=["']?\$\{(\w+):?[-=])re");
  std::uint32_t loads = 0;
  for (const auto& command : script.recording.commands) {
    const auto name = shell::program_name(command.argv[0]);
    if ((name == "module" || name == "ml") && command.line > 0 && loads == 0) loads = command.line;
  }
  if (loads == 0) return;
  for (const auto* environment : {&out.environment, &out.site_environment}) {
    for (const auto& entry : environment->set) {
      std::string name;
      std::string of;
      const bool is_of_modules = entry.name.ends_with("_HOME") || entry.name.ends_with("_ROOT") ||
                                 entry.name.ends_with("_DIR") || entry.name.ends_with("PATH");
      if (!is_of_modules || entry.line <= loads || entry.line > script.lines.size() ||
          !RE2::PartialMatch(script.lines[entry.line - 1], kDefault, &name, &of) || name != entry.name ||
          of != name)
        continue;
      out.remarks[Destination::site_environment].push_back(
          {entry.line,
           fmt::format("{} has this value only if no module sets it (line {}): here it always has", name,
                       loads)});
    }
  }
}

/// `--mode=mpi`, `-m mpi4py`; and a program that is compiled, behind `module load openmpi`.
bool names_mpi(const Imported& out, const Part& part) {
  static const RE2 kMpi(R"re((?i)(?:^|[=_/-])mpi(?:4py)?(?:$|[=_.-]))re");
  const bool loads = std::ranges::any_of(
      out.modules, [](const auto& one) { return text::lower(one.value).find("mpi") != std::string::npos; });
  const auto name = shell::program_name(part.program[0]);
  const bool is_python = name.starts_with("python") || makes_ranks(part.program);
  return (loads && !is_python) ||
         std::ranges::any_of(part.program, [](const auto& word) { return RE2::PartialMatch(word, kMpi); });
}

/// A remark on programs that are MPI ranks in the script.
void remark_of_mpi(Imported& out) {
  for (const auto& role : out.roles) {
    if (!role.part) continue;
    const auto& part = out.parts[*role.part];
    const auto launcher = part.step.empty() ? std::string() : shell::program_name(part.step[0]);
    const bool by_mpi = launcher.starts_with("mpi") || launcher == "orterun" || launcher == "ibrun";
    const bool sets = std::ranges::any_of(part.changes, [](const auto& change) {
      return change.first.starts_with("MPICH_") || change.first.starts_with("OMPI_MCA_");
    });
    const bool by_srun = launcher == "srun" && (sets || (part.tasks.size() > 1 && names_mpi(out, part)));
    if (!by_mpi && !by_srun) continue;
    out.remarks[Destination::roles].push_back(
        {part.line,
         fmt::format("the processes of {} are not MPI ranks: a program that calls MPI_Init sees only itself",
                     role.name)});
    return;
  }
}

/// A remark on roles that have the script's MASTER_PORT beside one that has nlaunch's.
void remark_of_ports(Imported& out) {
  const auto meets = std::ranges::find_if(out.roles, [&](const ImportedRole& role) {
    return role.part && role.rendezvous && out.parts[*role.part].changes.contains("MASTER_PORT") &&
           !makes_ranks(out.parts[*role.part].program);
  });
  if (meets == out.roles.end()) return;
  for (const auto& role : out.roles) {
    if (!role.part || role.rendezvous || role.ray || role.kind == RoleKind::engine) continue;
    const auto& part = out.parts[*role.part];
    const auto port = part.changes.find("MASTER_PORT");
    if (port == part.changes.end() || !port->second) continue;
    out.remarks[Destination::roles].push_back(
        {part.line,
         fmt::format("MASTER_PORT is {} for {}, but chosen by nlaunch for {}: they do not meet there",
                     text::printable(*port->second), role.name, meets->name)});
  }
}

/// Remarks on steps whose tasks get only some of the variables: `srun --export=NONE`.
void remarks_of_exports(Imported& out) {
  for (const auto& role : out.roles) {
    if (!role.part) continue;
    const auto& part = out.parts[*role.part];
    if (part.step.empty() || shell::program_name(part.step[0]) != "srun") continue;
    const auto options = shell::options_of_srun(part.step);
    const auto exported = shell::value_of(options, "export");
    if (!exported || shell::has(text::split(*exported, ','), "ALL")) continue;
    out.remarks[Destination::roles].push_back(
        {part.line, fmt::format("srun --export gives {} no other variables: here it also gets those of the "
                                "shell that calls nlaunch",
                                role.name)});
  }
}

/// A remark on `srun --wait=N`, which ends the other tasks of a step N seconds after the first has exited.
void remark_of_wait(Imported& out) {
  for (const auto& part : out.parts) {
    if (part.step.empty() || shell::program_name(part.step[0]) != "srun") continue;
    const auto wait = shell::value_of(shell::options_of_srun(part.step), "wait");
    if (!wait || *wait == "0") continue;
    out.remarks[Destination::roles].push_back(
        {part.line, fmt::format("srun --wait={} ends the other tasks {} s after the first has exited: a run "
                                "waits for all, and stops at the first that fails",
                                text::printable(*wait), text::printable(*wait))});
    return;
  }
}

/// A remark on TMPDIR, which the recorder sets as a login does, and a cluster otherwise.
void remark_of_tmpdir(const Remarked& script, Imported& out) {
  const auto& recording = script.recording;
  static const RE2 kReads(R"re(\$(?:TMPDIR\b|\{TMPDIR\b))re");
  const auto set = std::ranges::find(recording.assignments, "TMPDIR", &shell::Assignment::name);
  if (std::ranges::find(recording.given, "TMPDIR") != recording.given.end()) return;
  for (std::uint32_t line = 1; line <= script.lines.size(); ++line) {
    const auto& text = script.lines[line - 1];
    if (set != recording.assignments.end() && set->line < line) return;
    if (text::trim(text).starts_with('#') || !RE2::PartialMatch(text, kReads) || text.contains('\''))
      continue;
    out.remarks[Destination::experiment].push_back(
        {line,
         "the script reads $TMPDIR, which a cluster may set: here it was /tmp. If it is another one there, "
         "pass --env TMPDIR=VALUE"});
    return;
  }
}

/// Remarks on variables of the submitting shell that the script removes: a recording does not have them.
void remarks_of_unset(const shell::Recording& recording, Imported& out) {
  const auto is_unset_in_plan = [&](const std::string& name) {
    return std::ranges::find(out.environment.unset, name, &ImportedEntry::name) !=
           out.environment.unset.end();
  };
  const auto tell = [&](std::uint32_t line, const shell::Words& names) {
    shell::Words open;
    for (const auto& name : names) {
      static const RE2 kName(R"(SLURM_\w*|[A-Za-z_]\w*)");
      const bool here = std::ranges::any_of(recording.environment,
                                            [&](const auto& one) { return one.starts_with(name + "="); });
      const bool own = std::ranges::find(recording.assignments, name, &shell::Assignment::name) !=
                       recording.assignments.end();
      if (!here && !own && !name.starts_with("SLURM_") && RE2::FullMatch(name, kName) &&
          !is_unset_in_plan(name))
        open.push_back(name);
    }
    if (!open.empty())
      out.remarks[Destination::environment].push_back(
          {line, fmt::format("the script removes {}, which was not set here: if the shell that calls nlaunch "
                             "has it, add `unset: [{}]` to `env`",
                             text::join(open, " and "), text::join(open, ", "))});
  };
  // `env -u NAME PROGRAM`, `env -i PROGRAM`, `export -n NAME`
  for (const auto& command : recording.traced) {
    const auto words = shell::words_of(command.text);
    const bool own = command.script.substr(command.script.rfind('/') + 1) == out.script;
    const auto line = own ? command.line : 0;
    const auto at = word_of_program(words, [](const auto& word) { return word == "env"; });
    if (words.size() > 2 && words[0] == "export" && words[1] == "-n") tell(line, shell::rest(words, 2));
    bool all = false;
    for (auto word = at == words.end() ? at : at + 1; word != words.end(); ++word) {
      if (*word == "-i" || *word == "-" || *word == "--ignore-environment") all = true;
      if ((*word == "-u" || *word == "--unset") && word + 1 != words.end()) tell(line, {*++word});
      if (word->starts_with("--unset=")) tell(line, {word->substr(std::string_view("--unset=").size())});
      if (!word->starts_with('-') && !word->contains('=')) break;
    }
    if (all)
      out.remarks[Destination::environment].push_back(
          {line,
           "`env -i` starts the program without the variables of the shell that calls the script: here "
           "it also gets those of the shell that calls nlaunch"});
  }
  for (const auto& command : recording.traced) {
    if (!command.text.starts_with("unset ") || command.text.starts_with("unset -f")) continue;
    auto names = shell::words_of(command.text);
    names.erase(names.begin());
    std::erase_if(names, [](const auto& word) { return word.starts_with('-'); });
    const bool own = command.script.substr(command.script.rfind('/') + 1) == out.script;
    tell(own ? command.line : 0, names);
  }
}

/// Remarks on files of this machine that a role writes anew: the script changes them, or makes them of
/// others.
void remarks_of_files(const Remarked& script, Imported& out) {
  std::set<std::string> said;
  for (const auto& role : out.roles) {
    if (!role.writes) continue;
    for (const auto& file : out.parts[*role.writes].files) {
      std::error_code error;
      const bool here = std::filesystem::is_regular_file(file.path, error);
      const bool copied = std::ranges::any_of(script.recording.commands, [&](const auto& command) {
        const auto name = shell::program_name(command.argv[0]);
        const auto target = (std::filesystem::path(command.folder) / command.argv.back()).lexically_normal();
        return (name == "cp" || name == "install") && target == file.path;
      });
      if ((!here && !copied) || !said.insert(file.path).second) continue;
      out.remarks[Destination::roles].push_back(
          {0, fmt::format("each run writes {} with the text that the script made of it here: later changes "
                          "of what it is made from are lost",
                          text::printable(file.path))});
    }
  }
}

/// A remark on the job's id as an argument for a program of Slurm: `--job $SLURM_JOB_ID`.
void remark_of_job_id(Imported& out, const std::string& job_id) {
  static const RE2 kNamed(R"re((?i)^--?[\w-]*job[\w-]*(=|$))re");
  for (const auto& role : out.roles) {
    if (!role.part) continue;
    const auto& argv = out.parts[*role.part].argv;
    for (std::size_t i = 1; i < argv.size(); ++i) {
      const bool named = (argv[i] == job_id && RE2::PartialMatch(argv[i - 1], kNamed)) ||
                         (argv[i].ends_with("=" + job_id) && RE2::PartialMatch(argv[i], kNamed));
      if (!named) continue;
      out.remarks[Destination::roles].push_back(
          {out.parts[*role.part].line,
           fmt::format("{} is given ${{run.id}} in place of the job's id: Slurm does not know that id",
                       role.name)});
      return;
    }
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

/// The line of a second test of a file that was not there, behind a program that may have made it; 0: none.
std::uint32_t asked_again(const shell::Recording& recording, const shell::Absent& first,
                          const Imported& out) {
  const auto name = shell::program_name(first.name);
  for (const auto& one : recording.traced) {
    const auto words = shell::words_of(one.text);
    if (one.line <= first.line || words.empty() || !shell::is_any_of(words[0], {"[", "[[", "test"})) continue;
    const bool same =
        std::ranges::any_of(words, [&](const auto& word) { return shell::program_name(word) == name; });
    const bool between = std::ranges::any_of(out.parts, [&](const Part& part) {
      return part.script == one.script && part.line >= first.line && part.line < one.line;
    });
    if (same && between) return one.line;
  }
  return 0;
}

/// Remarks on answers that the recorder made up, and on files and variables that are missing here.
void remarks_of_unknowns(const Remarked& script, Imported& out) {
  const auto& recording = script.recording;
  auto& remarks = out.remarks[Destination::experiment];
  for (const auto& one : recording.asked_for)
    remarks.push_back({one.line, fmt::format("{} is not on this machine, and the script checks whether it "
                                             "exists: the answer was no. For yes, pass --exists {}",
                                             one.name, text::shell_quote(one.name))});
  std::set<std::string> told;
  for (const auto& first : recording.asked_for)
    if (const auto again = asked_again(recording, first, out); again > 0 && told.insert(first.name).second)
      remarks.push_back(
          {again, fmt::format("the script asks again whether {} exists, and a program before may have "
                              "made it: what it does then is not imported",
                              text::printable(first.name))});
  for (const auto& one : recording.made_up)
    remarks.push_back(
        {one.line, fmt::format("the output that `{}` gave the script is made up, or true only of this "
                               "machine now. To change it, use --prints 'PART OF THE COMMAND=TEXT'",
                               one.name)});
  std::set<std::string> guessed;
  static const RE2 kIgnored(R"(\|\|\s*(true|:)\s*($|[\n;#)&}]))");
  for (const auto& one : recording.guessed)
    if (guessed.insert(one.name).second &&
        !RE2::PartialMatch(whole_command(script.lines, one.line), kIgnored))
      remarks.push_back(
          {one.line, fmt::format("the exit code of `{}` is made up here: what the script does after another "
                                 "one is not imported",
                                 text::printable(one.name))});
  for (const auto& one : recording.ended_early)
    remarks.push_back({0, fmt::format("{} exited with {} before its end: what follows there is not imported",
                                      text::printable(shell::program_name(one.script)), one.name)});
  for (const auto& one : recording.missing_arguments)
    remarks.push_back(
        {one.line,
         fmt::format("the script reads its argument ${}, which was not given: pass its arguments after --",
                     one.name)});
  for (const auto& one : recording.unset) {
    const auto place = fmt::format("{}:{}: ", text::printable(shell::program_name(one.script)), one.line);
    remarks.push_back({one.script.empty() ? one.line : 0,
                       fmt::format("{}nothing sets ${}, so it was empty: set it with --env {}=VALUE",
                                   one.script.empty() ? "" : place, one.name, one.name)});
  }
  for (const auto& one : recording.sourced)
    remarks.push_back(
        {one.line, fmt::format("{} is treated as empty: what it sets is not imported", one.name)});
  for (const auto& path : recording.not_here)
    remarks.push_back({0, fmt::format("{} is not on this machine, and was treated as empty", path)});
}

/// Remarks on commands that ran only here, or not at all.
void remarks_of_effects(const shell::Recording& recording, Imported& out) {
  for (const auto& path : recording.written)
    out.remarks[Destination::experiment].push_back(
        {0, fmt::format("the script writes {}, which no program is given: it is not written", path)});
  std::uint32_t first = 0;  // the lines of the first and the last program
  std::uint32_t last = 0;
  for (const auto& role : out.roles) {
    if (!role.part || !out.parts[*role.part].script.ends_with("/" + out.script)) continue;
    const auto line = out.parts[*role.part].line;
    first = first == 0 ? line : std::min(first, line);
    last = std::max(last, line);
  }
  for (const auto& one : recording.done_here) {
    if (is_made(out, one.name)) continue;
    out.remarks[Destination::roles].push_back(
        {one.line,
         fmt::format("`{}` is not imported: {}", text::printable(one.name),
                     last > 0 && one.line > last    ? "no program comes after it"
                     : last > 0 && one.line > first ? "if the next program needs it, make it a `task`"
                                                    : "if a program needs it, do it before the run")});
  }
  for (const auto& one : recording.idle)
    out.remarks[Destination::roles].push_back(
        {one.line, fmt::format("xargs read nothing here, so it did not start `{}`. On the cluster it may",
                               text::printable(one.name))});
}

void remarks_of_directives(const Remarked& script, Imported& out) {
  if (script.directives.array_line > 0 && !script.allocation.array.empty())
    out.remarks[Destination::experiment].push_back(
        {script.directives.array_line,
         fmt::format("--array={}: this is one task of the array, {}. To import another, use --env "
                     "SLURM_ARRAY_TASK_ID=N",
                     text::printable(script.directives.array_text),
                     script.allocation.array_task.value_or(script.allocation.array.front()))});
  for (const auto& one : script.recording.placeholders)
    if (script.lines[one.line - 1].starts_with("#SBATCH"))
      out.remarks[Destination::slurm].push_back(
          {one.line,
           fmt::format("{} is a placeholder: replace it with its value", text::printable(one.name))});
}

}  // namespace

void add_remarks(const Remarked& script, Imported& out) {
  remarks_of_unknowns(script, out);
  remarks_of_text(script.lines, out);
  remarks_of_lines(script.lines, out);
  remarks_of_builtins(script.recording, out);
  remarks_of_login_shells(script.recording, out);
  remarks_of_printed(script.recording, out);
  remarks_of_addresses(script.recording, out);
  remark_of_networks(out);
  remark_of_mpi(out);
  remark_of_ports(out);
  remarks_of_exports(out);
  remark_of_wait(out);
  remark_of_tmpdir(script, out);
  remarks_of_unset(script.recording, out);
  remarks_of_files(script, out);
  remark_of_job_id(out, script.allocation.job_id);
  remarks_of_moments(script.recording, out);
  remarks_of_defaults(script, out);
  remark_of_tasks(script.input, script.directives, script.recording, out);
  remarks_of_directives(script, out);
  add_remarks_on_its_end(script, out);
  remarks_of_effects(script.recording, out);
}

}  // namespace nlaunch::import
