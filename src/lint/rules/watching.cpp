#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "lint/shell_options.h"
#include "shell/traps.h"
#include "shell/words.h"

/// Failures that nothing notices: a server that exits while its client waits, a launcher that exits on one
/// node while the others wait for it, a preparation that fails before the programs. And what nothing ends: a
/// server behind a script that is no job.
namespace nlaunch::lint {
namespace {

using shell::program_name;

/// The script looks at a process behind a line: `wait -n`, `kill -0 $pid`. A function, a trap, and a loop in
/// the background may do so at any time.
bool looks_at_processes(const Script& script, std::uint32_t line) {
  static const RE2 kLooks(
      R"re(\bwait\s+-\w*n|\bkill\s+-(0|s\s*0)\b|\bjobs\s+-|\bps\s+-\w*p|\bpgrep\b|/proc/\$|\bCHLD\b|\bsstat\b|\btail\s.*--pid)re");
  static const RE2 kLoop(R"re(^\s*(?:until|while|for)\b)re");
  static const RE2 kDone(R"re((?:^|;)\s*done\b)re");
  static const RE2 kBehind(R"re((?:^|[^&>])&\s*$)re");
  static const RE2 kFunction(R"re(^\s*(?:function\s+[\w-]+|[\w-]+\s*\(\))\s*(?:\(\))?\s*\{?\s*$)re");
  const SourceLines lines(script.file);
  const auto text = text::split(without_comments(lines), '\n');
  std::uint32_t ends = 0;  // the end of a loop that only waits before that line
  bool in_function = false;
  for (std::uint32_t at = 1; at <= text.size(); ++at) {
    const auto& one = text[at - 1];
    in_function = in_function ? !one.starts_with('}') : RE2::PartialMatch(one, kFunction);
    if (at < line && at > ends && !in_function && RE2::PartialMatch(one, kLoop)) {
      int depth = 0;
      for (auto last = at; last < line; ++last) {
        depth += RE2::PartialMatch(text[last - 1], kLoop) ? 1 : 0;
        depth -= RE2::PartialMatch(text[last - 1], kDone) ? 1 : 0;
        if (depth > 0) continue;
        if (!RE2::PartialMatch(text[last - 1], kBehind)) ends = last;
        break;
      }
    }
    if (at > ends && RE2::PartialMatch(one, kLooks)) return true;
  }
  return false;
}

/// The first program behind a server in the background that the server must outlive.
const Program* client_of(const Script& script, std::size_t server) {
  const auto& first = script.programs[server];
  for (std::size_t i = server + 1; i < script.programs.size(); ++i) {
    const auto& program = script.programs[i];
    const bool later = program.span.file == first.span.file && program.span.line > first.span.line;
    const auto name = program_name(program.words[0]);
    const bool moves = name == "mv" || name == "cp" || name == "ln";
    if (program.works && later && !program.background && !is_server(program) && !moves &&
        !shell::had_ended(first.waited, program.waited) && !shell::was_ended(first.waited, program.waited))
      return &program;
  }
  return nullptr;
}

/// The first program behind a server that uses it, if all of them run in the background: nothing waits for
/// its end.
const Program* client_in_background(const Script& script, std::size_t server) {
  const auto& first = script.programs[server];
  const auto behind = std::ranges::subrange(script.programs.begin() + static_cast<std::ptrdiff_t>(server) + 1,
                                            script.programs.end());
  const auto client = std::ranges::find_if(behind, [&](const Program& program) {
    return program.works && !is_server(program) && program.span.file == first.span.file;
  });
  const bool all = std::ranges::all_of(
      behind, [](const Program& program) { return program.background || !program.works; });
  return all && client != behind.end() ? &*client : nullptr;
}

/// True if the script stops nothing if this program fails, and something otherwise.
bool leaves_more(const Script& script, const Program& program) {
  const auto* trial = trial_of(script, program.span);
  return trial != nullptr && trial->exit_code && trial->ends_nothing;
}

/// `trap … EXIT`, `trap … TERM`: not only for Ctrl-C.
bool handles_termination(const Script& script) {
  return has_exit_trap(script) || std::ranges::any_of(script.commands, [](const ScriptCommand& command) {
           return shell::sets_trap(command.words, "TERM");
         });
}

/// True if something behind the start of a server may end it: a kill, unless that names another program, and
/// what is called with its port: `kill_by_port 8000`.
bool may_be_stopped(const Script& script, const Program& server) {
  const auto is_start = [&](const ScriptCommand& one) {
    return one.works && one.span.file == server.span.file && one.span.line == server.span.line;
  };
  const auto start = std::find_if(script.commands.rbegin(), script.commands.rend(), is_start).base();
  const SourceLines lines(script.file);
  const auto port = port_of_server(server).port;
  const auto words = text::join(server.words, " ");
  return std::any_of(start, script.commands.end(), [&](const ScriptCommand& one) {
    const auto name = program_name(one.words[0]);
    if (shell::kills_by_name(one.words))
      return std::any_of(one.words.begin() + 1, one.words.end(), [&](const std::string& word) {
        return word.contains('$') ||
               (!word.starts_with('-') && words.contains(word.substr(0, word.find_first_of(".*[ "))));
      });
    if (name == "trap" || (shell::kills(one.words) && name != "fuser")) return true;
    const bool acts =
        shell::is_any_of(name, {"fuser", "lsof", "ss"}) || !body_of_function(lines, name).empty();
    return acts && std::ranges::any_of(one.words, [&](const auto& word) { return word.contains(port); });
  });
}

/// `ray start`, which returns, and a program behind it: the cluster stays.
void tell_of_ray_left(const Script& script, Report& report) {
  const auto& programs = script.programs;
  const auto own = [&](const Program& one) { return one.works && one.span.file == script.file; };
  const auto ray = std::ranges::find_if(programs, [&](const Program& one) {
    return own(one) && program_name(one.words[0]) == "ray" && shell::has(one.words, "start") &&
           shell::has(one.words, "--head") && !shell::has(one.words, "--block");
  });
  if (ray == programs.end()) return;
  const auto last = std::find_if(programs.rbegin(), programs.rend(), [&](const Program& one) {
    return own(one) && (program_name(one.words[0]) != "ray" || shell::has(one.words, "submit"));
  });
  if (last == programs.rend() || last->span.line <= ray->span.line) return;
  const bool stopped = std::any_of(ray, programs.end(), [](const Program& one) {
    return program_name(one.words[0]) == "ray" && shell::has(one.words, "stop");
  });
  if (stopped || handles_termination(script)) return;
  report.note(ray->span,
              {last->background ? "Ray goes on when the script has ended"
                                : fmt::format("Ray goes on when {} in line {} has ended", shown_name(*last),
                                              last->span.line),
               "it holds its port and what its workers hold against the next start, whose programs "
               "join this cluster",
               "ray stop at the end, by trap 'ray stop' EXIT", ""});
}

/// `python train.py &`, and a `wait` for it without a trap.
void tell_of_interrupted(const Script& script, Report& report) {
  if (handles_termination(script)) return;
  const auto left = std::ranges::find_if(script.programs, [&](const Program& one) {
    return one.works && one.background && !one.step && one.waited.is_awaited &&
           one.called.file == script.file;
  });
  if (left == script.programs.end()) return;
  report.note(left->called,
              {fmt::format("if the script is interrupted while it waits, {} goes on", shown_name(*left)),
               "what a script starts in the background ignores Ctrl-C, and SIGTERM ends only the "
               "script: its programs hold their GPUs against the next start",
               "trap 'trap - TERM; kill 0' INT TERM, above the first of them", ""});
}

constexpr auto kHoldsGpus =
    "it holds its GPUs and its port against the next start: outside of a job nothing else ends it";
constexpr auto kStop = "PID=$!; trap 'kill $PID' EXIT";

bool is_own_server(const Script& script, const Program& one) {
  return one.works && one.background && is_server(one) && one.span.file == script.file;
}

/// A server that is left although the script stops something. Returns whether there is one.
bool tell_of_forgotten(const Script& script, const std::string& text, Report& report) {
  static const RE2 kEnds(
      R"re((?m)(?:^|[;&|({]|\bthen|\bdo|\belse)\s*(?:trap|wait|docker|podman|disown)\b)re");
  if (!ran_to_its_end(script) || has_exit_trap(script) || RE2::PartialMatch(text, kEnds)) return false;
  for (std::size_t i = 0; i < script.programs.size(); ++i) {
    const auto& server = script.programs[i];
    if (!is_own_server(script, server) || client_of(script, i) == nullptr || server.waited.is_awaited ||
        !server.waited.by.empty() || may_be_stopped(script, server))
      continue;
    report.note(server.span,
                {fmt::format("{} goes on when the script has ended: what the script stops is something else",
                             shown_name(server)),
                 kHoldsGpus, kStop, ""});
    return true;
  }
  return false;
}

void check_server_left(const LintInput& input, Report& report) {
  // The end of a job ends what it has started, and a container ends with its first process.
  if (!input.script || input.slurm || !input.batch.empty()) return;
  const auto& script = *input.script;
  tell_of_ray_left(script, report);
  const auto text = without_comments(SourceLines(script.file));
  static const RE2 kEnds(
      R"re((?m)(?:^|[;&|({]|\bthen|\bdo|\belse)\s*(?:trap|wait|fuser|docker|podman|disown)\b|\b(?:ray|compose)\s+(?:stop|down)\b)re");
  static const RE2 kKills(
      R"re((?m)(?:^|[;&|({]|\bthen|\bdo|\belse)\s*(?:pkill|killall|kill\s+(?:-[^0\s]\S*\s+)?[^-\s]))re");
  const bool kills =
      has_exit_trap(script) || RE2::PartialMatch(text, kKills) || RE2::PartialMatch(text, kEnds);
  // `nohup vllm serve … &` is meant to stay, but not longer than the programs that the script starts for it.
  static const RE2 kStays(R"re(\b(?:nohup|setsid)\s)re");
  if (kills && tell_of_forgotten(script, text, report)) return;
  for (std::size_t i = 0; i < script.programs.size(); ++i) {
    const auto& server = script.programs[i];
    if (!is_own_server(script, server)) continue;
    const bool stays = !kills && RE2::PartialMatch(std::string(server.span.source_line()), kStays);
    const auto* client = stays ? client_in_background(script, i) : client_of(script, i);
    if (client == nullptr) continue;
    const auto name = shown_name(server);
    if (kills && !leaves_more(script, *client)) {
      if (stays || client->background || handles_termination(script) || !RE2::PartialMatch(text, kKills))
        continue;
      return report.note(
          server.span,
          {fmt::format("if the script is killed while {} runs, {} goes on", shown_name(*client), name),
           "SIGTERM ends the script before it gets to its kill, and not what it has started", kStop, ""});
    }
    return report.note(
        server.span,
        {kills   ? fmt::format("if {} in line {} fails, the script ends without stopping {}, which goes on",
                               shown_name(*client), client->span.line, name)
         : stays ? fmt::format("{} goes on when {} in line {} has ended", name, shown_name(*client),
                               client->span.line)
                 : fmt::format("{} goes on when the script has ended", name),
         kHoldsGpus, kStop, ""});
  }
  tell_of_interrupted(script, report);
}

const Registered<Rule> server_left_rule{{
    .order = 475,
    .name = "server-left",
    .title = "a server that outlives the script that started it",
    .explain = "A program in the background goes on when its script ends, unless that is the script of a "
               "job. A trap for EXIT stops it however the script ends.",
    .source = "bash(1), trap",
    .check = check_server_left,
}};

/// A launcher that is started for each node by a step of its own, in the background.
bool is_part_of_nodes(const Program& program) {
  const auto launcher = launcher_of(program);
  return program.works && program.background && program.nodes_of_step == 1 && launcher &&
         !launcher->reaches && launcher->nodes.value_or(1) > 1;
}

void check_death_unnoticed(const LintInput& input, Report& report) {
  if (!input.script || input.by_nlaunch) return;
  const auto& programs = input.script->programs;
  constexpr auto kInstead = "`wait -n` returns when the first of them exits: then kill the others";
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const auto& program = programs[i];
    if (!program.works || !program.background || !is_server(program)) continue;
    const auto* client = client_of(*input.script, i);
    // `client & C=$!`, `wait $C`
    if (client == nullptr) client = client_in_background(*input.script, i);
    const bool waits_for_it =
        client != nullptr &&
        (!client->background || (client->waited.is_awaited && !program.waited.is_awaited));
    if (!waits_for_it || looks_at_processes(*input.script, client->span.line)) continue;
    return report.note(
        program.span,
        {fmt::format("nothing notices if {} exits", shown_name(program)),
         fmt::format("{} in line {} then waits for answers until it gives up, or until the job's time limit",
                     shown_name(*client), client->span.line),
         "start both in the background; " + std::string(kInstead), ""});
  }
  std::map<std::uint32_t, std::size_t> nodes;
  if (looks_at_processes(*input.script, 1)) return;
  for (const auto& program : programs) {
    if (!is_part_of_nodes(program)) continue;
    nodes.try_emplace(program.node, nodes.size());
    if (nodes.size() > 1)
      return report.note(
          program.span,
          {fmt::format("nothing notices if {} exits on one node", shown_name(program)),
           "the other nodes wait for it in NCCL until a timeout of 10 minutes or more, and `wait` for them",
           kInstead, ""});
  }
}

const Registered<Rule> death_unnoticed_rule{{
    .order = 470,
    .name = "death-unnoticed",
    .title = "programs that need each other, and nothing that ends one when the other has exited",
    .explain = "A script that waits for its last program, or for all of them, does not see that an earlier "
               "one has failed: the job holds its GPUs until a timeout. `wait -n` returns at the first exit, "
               "and kill -0 tells whether a process still runs.",
    .source = "bash(1), wait -n",
    .check = check_death_unnoticed,
}};

/// A step that ends its other tasks when one has failed.
bool ends_together(const Step& step) {
  return has_option(step.options, {"--kill-on-bad-exit", "-K", "--wait", "-W"}) ||
         step.exported.contains("SLURM_KILL_BAD_EXIT") || step.exported.contains("SLURM_WAIT");
}

void check_kill_on_bad_exit(const LintInput& input, Report& report) {
  if (!input.script || input.by_nlaunch) return;
  // Of several such steps, the last one is what the job is for.
  const Step* found = nullptr;
  const Program* of = nullptr;
  for (const auto& step : input.steps) {
    if (!step.several || ends_together(step)) continue;
    const auto waits_for_others = [&](const Program& program) {
      const auto launcher = launcher_of(program);
      const bool here =
          program.works && program.span.file == step.span.file && program.span.line == step.span.line;
      const bool is_rank = !launcher && program_name(program.words[0]).starts_with("python") &&
                           !variable(program, "MASTER_ADDR").empty();
      return here && (launcher ? program.nodes_of_step > 1 && launcher->nodes.value_or(1) > 1 : is_rank);
    };
    const auto program = std::ranges::find_if(input.script->programs, waits_for_others);
    if (program == input.script->programs.end()) continue;
    found = &step;
    of = &*program;
  }
  if (found == nullptr) return;
  const auto* where = launcher_of(*of) ? "on one node" : "in one task";
  report.note(
      found->span,
      {fmt::format("if {} fails {}, srun does not end the others", shown_name(*of), where),
       "by default srun waits for all tasks: the others may stay in NCCL or the rendezvous until a timeout "
       "of 10 minutes or more",
       "srun --kill-on-bad-exit=1", ""});
}

const Registered<Rule> kill_on_bad_exit_rule{{
    .order = 471,
    .name = "kill-on-bad-exit",
    .title = "a launcher on several nodes whose failure on one does not end the step",
    .explain = "srun goes on until all its tasks have exited, unless --kill-on-bad-exit=1 (or KillOnBadExit "
               "in slurm.conf) ends them at the first failure.",
    .source = "srun(1), --kill-on-bad-exit",
    .check = check_kill_on_bad_exit,
}};

/// A directory that is there whenever the script runs.
bool always_exists(const ScriptCommand& command) {
  static const RE2 kThere(R"re(\bcd\s+("?\$\{?SLURM_SUBMIT_DIR\}?"?\s*$|.*(dirname|BASH_SOURCE|mktemp)))re");
  return command.words[1] == "-" || command.words[1] == ".." || command.words[1] == "../" ||
         command.words[1] == "/tmp" || RE2::PartialMatch(command.span.source_line(), kThere);
}

/// What later programs rely on.
enum class Need { nothing, folder, environment, build, data };
struct Preparation {
  Need need = Need::nothing;
  std::string name{};  ///< "conda activate"
};

/// `cd DIR`, `source FILE`, `conda activate NAME`, `pip install`, `make`, `git clone`.
Preparation preparation(const ScriptCommand& command, bool batch) {
  const auto& words = command.words;
  const auto name = program_name(words[0]);
  const auto second = words.size() > 1 ? std::string_view(words[1]) : std::string_view();
  if (name == "cd" && !second.empty() && !always_exists(command)) return {Need::folder, "cd"};
  static const RE2 kOfMachine(
      R"re(^/etc/|^/usr/share/|bashrc|bash_aliases|profile|/init/(?:ba)?sh$|conda\.sh$)re");
  // Outside of a job, the script's own files are where it is started.
  const bool sources = (name == "source" || name == ".") && (batch || second.ends_with("activate"));
  if (sources && !second.empty() && !RE2::PartialMatch(std::string(second), kOfMachine))
    return {Need::environment, "source"};
  const bool conda = name == "conda" || name == "mamba" || name == "micromamba";
  const bool pip = name == "pip" || name == "pip3";
  if ((conda && second == "activate") || (pip && second == "install"))
    return {Need::environment, fmt::format("{} {}", name, second)};
  const bool other = second.starts_with("--ver") || second.starts_with("--help") || second.contains("clean");
  if ((name == "make" || name == "cmake" || name == "ninja") && !other) return {Need::build, name};
  const bool extracts = name == "unzip" || (name == "tar" && second.contains('x') && !second.contains('/'));
  if (extracts) return {Need::data, name};
  if ((name == "huggingface-cli" || name == "hf") && second == "download")
    return {Need::data, fmt::format("{} download", name)};
  return {};
}

const char* consequence_of(Need need) {
  switch (need) {
    case Need::folder:
      return "its programs run in another directory, or do not find their files there";
    case Need::build:
      return "its programs run with what an earlier run has left there, or are missing";
    case Need::data:
      return "its programs run without these files, or with old ones";
    default:
      return "its programs run in another environment: an older library, or none";
  }
}

/// A failure has a consequence in the line itself or in the next one.
/// With `in_functions`, also a failure within a function of the script: its result is tested.
bool is_checked(const SourceLines& lines, const ScriptCommand& command, bool in_functions) {
  static const RE2 kTests(
      R"re(\|\||&&|^\s*(if|elif|while|until)\b|\bset\s+-\w*e|;\s*then|\b(?:ba|z|da)?sh\s+(?:-\w+\s+)*-\w*e)re");
  static const RE2 kTestsNext(R"re(^\s*(?:if|\[\[?|test)\s.*(?:\$\?|\$\{?PWD)|^\s*\w+=\$\?)re");
  const auto end = lines.end_of_command(command.span.line);
  static const RE2 kInFunction(R"re(^\s|\(\)\s*\{)re");
  static const RE2 kKeeps(R"re(;\s*\w+=\$\?)re");
  return RE2::PartialMatch(lines.command(command.span.line), kTests) ||
         RE2::PartialMatch(lines.line(end + 1), kTestsNext) ||
         RE2::PartialMatch(lines.line(command.span.line), kKeeps) ||
         (in_functions && RE2::PartialMatch(lines.line(command.span.line), kInFunction));
}

void check_setup_unchecked(const LintInput& input, Report& report) {
  if (!input.script || input.by_nlaunch) return;
  const auto& script = *input.script;
  const bool batch = input.slurm || !input.batch.empty();
  OptionByShell errexit(script, kErrexit);
  const SourceLines lines(script.file);
  const bool functions_are_tested = tests_a_function(lines);
  using Prepared = std::map<Need, const ScriptCommand*>;
  std::map<int, Prepared> pending;  // by shell: that of the script, and those of `bash -c TEXT`
  std::map<Need, std::vector<const ScriptCommand*>> all;  // with a program behind them
  const auto commit = [&](int shell) {
    for (const auto& [need, command] : pending[shell]) {
      auto& told = all[need];
      const auto same_line = [&](const ScriptCommand* one) { return one->span.line == command->span.line; };
      if (std::ranges::none_of(told, same_line)) told.push_back(command);
    }
    pending[shell].clear();
  };
  for (const auto& command : script.commands) {
    const bool ends = errexit.after(command);
    if (command.span.file != script.file) continue;
    if (command.works) {
      // The programs of a pipeline have shells of their own.
      commit(script.shell);
      commit(command.shell);
    }
    if (ends || (command.shell != script.shell && script.shells_above.contains(command.shell))) continue;
    // Of several directories in turn, the last.
    if (program_name(command.words[0]) == "cd") pending[command.shell].erase(Need::folder);
    if (const auto what = preparation(command, batch);
        what.need != Need::nothing && !is_checked(lines, command, functions_are_tested))
      pending[command.shell].try_emplace(what.need, &command);
  }
  static const RE2 kErrTrap(R"re((?m)^\s*trap\s.*\bERR\b)re");
  if (RE2::PartialMatch(script.file->text, kErrTrap)) return;
  for (const auto& [need, commands] : all) {
    constexpr std::size_t kShown = 3;
    std::vector<std::string> others;
    for (std::size_t i = 1; i < std::min(commands.size(), kShown + 1); ++i)
      others.push_back(std::to_string(commands[i]->span.line));
    report.note(
        commands[0]->span,
        {fmt::format("if this {} fails, the script goes on{}{}", preparation(*commands[0], batch).name,
                     others.empty() ? "" : "; so it does in line ", text::join(others, ", ")),
         consequence_of(need),
         batch ? "set -e below the #SBATCH lines, or … || exit 1 here" : "set -e above, or … || exit 1 here",
         ""});
  }
}

const Registered<Rule> setup_unchecked_rule{{
    .order = 472,
    .name = "setup-unchecked",
    .title = "a directory or an environment that may be missing, in a script that goes on then",
    .explain =
        "bash goes on behind a command that fails, unless set -e is on: a script without its directory "
        "or environment fails later, in another place, or runs with other packages.",
    .source = "bash(1), set -e; ShellCheck SC2164",
    .check = check_setup_unchecked,
}};

}  // namespace
}  // namespace nlaunch::lint
