#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "import/kills.h"
#include "import/remarks.h"
#include "import/texts.h"
#include "lint/programs.h"

namespace nlaunch::import {
namespace {

/// "a", "a or b", "a, b or 3 others"
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  if (names.size() == 1) return names[0];
  if (names.size() > kMost)
    return fmt::format("{}, {} or one of {} others", names[0], names[1], names.size() - 2);
  return fmt::format("{} or {}", text::join({names.begin(), names.end() - 1}, ", "), names.back());
}

/// `sleep 3600`, with which the script ends. Not one of a loop, which waits for something.
const shell::RecordedCommand* last_sleep(const Remarked& script, const Imported& out) {
  const auto& commands = script.recording.commands;
  const auto sleeps = [](const auto& command) {
    return shell::program_name(command.argv[0]) == "sleep" && !command.task;
  };
  const auto last = std::find_if(commands.rbegin(), commands.rend(), [&](const auto& command) {
    return command.fate == shell::Fate::recorded || sleeps(command);
  });
  static const RE2 kLoop(R"(\b(?:while|until|for)\b)");
  if (last == commands.rend() || !sleeps(*last) || shell::waits_forever(last->argv) || last->background ||
      !last->script.ends_with("/" + out.script) || !head_of_loop(script.lines, last->line).empty() ||
      RE2::PartialMatch(whole_command(script.lines, last->line), kLoop))
    return nullptr;
  return &*last;
}

/// `wait $LAST`, `wait -n`, `sleep 3600`: the script ends while some of its programs still run.
void remarks_of_its_end(const Remarked& script, Imported& out) {
  const auto& recording = script.recording;
  const auto* const sleep = last_sleep(script, out);
  const auto first_of_all =
      std::ranges::find_if(recording.traced, [](const auto& one) { return one.text.starts_with("wait -n"); });
  for (const auto& role : out.roles) {
    if (!role.part) continue;
    const auto& part = out.parts[*role.part];
    const auto all = part.commands.size();
    const auto awaited = static_cast<std::size_t>(std::ranges::count_if(
        part.commands, [&](auto index) { return recording.commands[index].waited.is_awaited; }));
    if (!part.background) continue;
    auto& remarks = out.remarks[Destination::roles];
    if (first_of_all != recording.traced.end() && all > 1)
      remarks.push_back(
          {first_of_all->line,
           fmt::format("the script goes on when the first of the {} programs of line {} has exited: "
                       "the run waits for all, and stops at the first that fails",
                       all, part.line)});
    else if (awaited > 0 && awaited < all)
      remarks.push_back(
          {part.line, fmt::format("the script ends when {} of its {} programs of this line have "
                                  "exited, and the run when all have",
                                  awaited, all)});
    if (awaited == 0 && sleep != nullptr && role.ends_run.value_or(role.kind == RoleKind::learner))
      remarks.push_back(
          {sleep->line, fmt::format("the script ends after `{}`, whatever {} does: the run ends with {}",
                                    text::printable(text::shell_join(sleep->argv)), role.name, role.name)});
  }
}

/// `nohup python train.py &` at the end: the script exits while its programs run.
void remarks_of_unawaited(const Remarked& script, Imported& out) {
  const auto& commands = script.recording.commands;
  std::vector<std::string> names;
  std::uint32_t line = 0;
  for (const auto& role : out.roles) {
    if (!role.part || !role.ends_run.value_or(role.kind == RoleKind::learner)) continue;
    const auto& part = out.parts[*role.part];
    const bool stays = part.background && std::ranges::none_of(part.commands, [&](auto index) {
                         return commands[index].waited.is_awaited || !commands[index].waited.by.empty();
                       });
    if (!stays) return;
    if (line == 0) line = part.line;
    names.push_back(role.name);
  }
  const bool waits =
      std::ranges::any_of(script.recording.traced,
                          [](const auto& one) {
                            return one.text.starts_with("wait") || one.text.starts_with("builtin wait");
                          }) ||
      std::ranges::any_of(script.recording.commands, [](const auto& one) {
        return one.fate == shell::Fate::answered && !one.background && shell::waits_forever(one.argv);
      });
  if (names.empty() || waits || last_sleep(script, out) != nullptr || script.recording.waits) return;
  out.remarks[Destination::roles].push_back(
      {line,
       fmt::format("the script exits without waiting for {}{}: here the run goes on until it has exited",
                   listed(names), script.input.batch.empty() ? "" : ", which Slurm then ends")});
}

/// Outside of a job, what is left in the background goes on when the script has ended.
void remarks_of_the_left(const Remarked& script, Imported& out) {
  if (!script.input.batch.empty() || script.input.slurm) return;
  const auto& commands = script.recording.commands;
  std::vector<std::string> names;
  std::uint32_t line = 0;
  for (const auto& role : out.roles) {
    if (!role.part || role.ends_run.value_or(role.kind == RoleKind::learner)) continue;
    const auto& part = out.parts[*role.part];
    const bool stays = part.background && !role.ready.value_or(ImportedReady{}).exited &&
                       std::ranges::none_of(part.commands, [&](auto index) {
                         return commands[index].waited.is_awaited || !commands[index].waited.by.empty();
                       });
    if (!stays) continue;
    if (line == 0) line = part.line;
    names.push_back(role.name);
  }
  const bool stops = std::ranges::any_of(script.recording.traced,
                                         [](const auto& one) {
                                           return one.text.starts_with("kill ") ||
                                                  one.text.starts_with("wait") ||
                                                  one.text.starts_with("builtin wait");
                                         }) ||
                     !unknown_kills(script.recording).empty();
  if (names.empty() || stops || script.recording.waits) return;
  out.remarks[Destination::roles].push_back(
      {line, fmt::format("{} goes on when the script has ended: here the run stops it", listed(names))});
}

/// `ray start` without --block, and nothing that uses the cluster.
void remark_of_ray(Imported& out) {
  const bool only_ray = !out.roles.empty() && std::ranges::all_of(out.roles, [&](const auto& role) {
    return role.ray && role.part && !shell::has(out.parts[*role.part].program, "--block");
  });
  if (only_ray)
    out.remarks[Destination::roles].push_back({out.parts[*out.roles[0].part].line,
                                               "the script ends when Ray has started, and leaves it running: "
                                               "here the run goes on until it is stopped"});
}

/// A last `wait` for everything, with a server that never exits: the job ends at its time limit.
void remarks_of_servers(const Remarked& script, Imported& out) {
  const auto& traced = script.recording.traced;
  const auto last = std::find_if(traced.rbegin(), traced.rend(), [](const auto& one) {
    return one.text == "wait" || (one.text.starts_with("wait ") && !one.text.starts_with("wait -n"));
  });
  const bool kills_any = std::ranges::any_of(traced, [](const auto& one) {
    return one.text.starts_with("kill ") || one.text.starts_with("pkill ") ||
           one.text.starts_with("timeout ");
  });
  if (last == traced.rend() || kills_any) return;
  for (const auto& role : out.roles) {
    if (!role.part || role.kind != RoleKind::engine || role.ends_run.value_or(false)) continue;
    const auto& part = out.parts[*role.part];
    const bool awaited = part.background && std::ranges::all_of(part.commands, [&](auto index) {
                           return script.recording.commands[index].waited.is_awaited;
                         });
    const bool others = std::ranges::any_of(
        out.roles, [](const auto& one) { return one.ends_run.value_or(one.kind == RoleKind::learner); });
    if (!awaited || !others) continue;
    out.remarks[Destination::roles].push_back(
        {last->line,
         fmt::format(
             "this `wait` also waits for {}, which never exits by itself: the script goes on, and the "
             "run ends when its learners have exited",
             role.name)});
    return;
  }
}

/// The role of a program that starts while another one runs in the background, and does not serve; nullptr if
/// there is none.
const ImportedRole* beside(const lint::Script& script, const shell::Recording& recording, const Imported& out,
                           std::size_t program) {
  const auto& one = script.programs[program];
  for (std::size_t i = program + 1; i < script.programs.size(); ++i) {
    const auto& other = script.programs[i];
    const bool serves = !other.works || lint::is_server(other) || lint::is_ray_node(other);
    if (serves || (one.step && one.step == other.step) || shell::had_ended(one.waited, other.waited))
      continue;
    const auto index = role_of(out, recording, other.recorded_as);
    const bool ends =
        index && out.roles[*index].ends_run.value_or(out.roles[*index].kind == RoleKind::learner);
    if (index && (ends || !other.background)) return &out.roles[*index];
  }
  return nullptr;
}

/// `apptainer exec IMAGE bash -c TEXT`: the role is that shell, which does with a failure what it does in the
/// script.
bool is_within_its_shell(const lint::Program& program, const Part& part) {
  const auto is_inner = [&](std::size_t command) { return command == program.recorded_as; };
  return std::ranges::any_of(part.inner, is_inner) &&
         std::ranges::any_of(part.argv, [](const auto& word) { return shell::is_shell(word); }) &&
         shell::has(part.argv, "-c");
}

/// What the script does if the program of a role fails, as bash did it: a run stops, and fails.
void remarks_of_failures(const lint::Script& script, const shell::Recording& recording, Imported& out) {
  auto& remarks = out.remarks[Destination::roles];
  struct Roles {
    std::vector<std::string> names{};
    std::uint32_t line = 0;
    bool hidden = true;  ///< the script exits with 0
  };
  Roles passed;
  Roles hidden;
  Roles unsure;  // it depends on what the script then finds
  bool tells_of_rest = false;
  // Of a line that starts several in turn, each, though only the first failed.
  const auto add_all = [&](Roles& roles, const ImportedRole& role, const lint::Trial& trial) {
    const auto& part = out.parts[*role.part];
    if (roles.names.empty()) roles.line = part.line;
    const auto first = roles.names.size();
    for (const auto& one : out.roles)
      if ((&one == &role || (trial.turns > 1 && one.part && out.parts[*one.part].line == part.line)) &&
          std::ranges::find(roles.names, one.name) == roles.names.end())
        roles.names.push_back(one.name);
    if (trial.last_is_told && roles.names.size() > first + 1) roles.names.pop_back();
    roles.hidden = roles.hidden && trial.exit_code == 0;
  };
  const auto line_of = [&](const ImportedRole& role) { return out.parts[*role.part].line; };
  std::set<std::uint32_t> tried;  // lines
  if (script.trials.empty() && out.roles.size() > 1)
    remarks.push_back({0, "what the script does when a program fails was not tried: here the run stops"});
  for (const auto& trial : script.trials) {
    const auto index = role_of(out, recording, script.programs[trial.program].recorded_as);
    if (index) tried.insert(out.parts[*out.roles[*index].part].line);
    if (!index || is_within_its_shell(script.programs[trial.program], out.parts[*out.roles[*index].part]))
      continue;
    const auto* role = &out.roles[*index];
    if (trial.restarts) {
      remarks.push_back(
          {line_of(*role),
           fmt::format("the script starts {} again if it fails: here the run then stops", role->name)});
      continue;
    }
    if (trial.serves && trial.waits)
      remarks.push_back(
          {line_of(*role), fmt::format("the script waits for {} without a limit, whatever becomes of it: "
                                       "here the run fails with it, or when its `ready` takes too long",
                                       role->name)});
    else if (trial.serves && trial.hung && trial.hung->waits)
      remarks.push_back(
          {line_of(*role), fmt::format("the script waits for {} without a limit while it runs: here the run "
                                       "fails when its `ready` takes too long",
                                       role->name)});
    if (!trial.sure || !trial.exit_code) {
      if (trial.sure) continue;
      if (unsure.names.empty()) unsure.line = out.parts[*role->part].line;
      unsure.names.push_back(role->name);
      continue;
    }
    const auto line = out.parts[*role->part].line;
    const bool is_said = std::ranges::any_of(remarks, [&](const Remark& one) {
      return one.line == line && one.text.contains("again if it fails");
    });
    if (is_said) continue;
    if (!trial.replacements.empty() &&
        trial.replacements[0].line == recording.commands[script.programs[trial.program].recorded_as].line &&
        trial.replacements[0].name == shell::call_of(script.programs[trial.program].words))
      remarks.push_back(
          {line, fmt::format("the script starts {} again if it fails: here the run then stops", role->name)});
    else if (!trial.replacements.empty())
      remarks.push_back({line, fmt::format("if {} fails, the script starts {} in line {}, which is not "
                                           "imported: here the run stops",
                                           role->name, text::printable(trial.replacements[0].name),
                                           trial.replacements[0].line)});
    else if (!trial.later.empty() && !(trial.serves && trial.exit_code != 0))
      add_all(passed, *role, trial);
    else if (trial.exit_code == 0)
      add_all(hidden, *role, trial);
    const auto* other = beside(script, recording, out, trial.program);
    const bool lets_run = other != nullptr && script.programs[trial.program].background &&
                          !trial.kills_more && !trial.serves && trial.replacements.empty() &&
                          trial.later.empty();
    if (lets_run && !tells_of_rest) {
      tells_of_rest = true;
      remarks.push_back(
          {line, fmt::format("if {} fails, the script lets {} run to its end: here the run stops it",
                             role->name, other->name)});
    }
    if (*trial.exit_code > 1 && trial.replacements.empty() && trial.later.empty())
      remarks.push_back({line, fmt::format("if {} fails, the script exits with {}: here the run exits with "
                                           "the code of {}",
                                           role->name, *trial.exit_code, role->name)});
  }
  // There was no time for more, or the recordings could not be compared.
  Roles untried;
  for (const auto& role : out.roles) {
    if (!role.part || script.trials.empty() || tried.contains(out.parts[*role.part].line)) continue;
    if (untried.names.empty()) untried.line = out.parts[*role.part].line;
    untried.names.push_back(role.name);
  }
  if (!untried.names.empty())
    remarks.push_back(
        {untried.line, fmt::format("what the script does if {} fails was not tried: here the run stops, "
                                   "and fails",
                                   listed(untried.names))});
  if (!unsure.names.empty())
    remarks.push_back(
        {unsure.line, fmt::format("what the script does if {} fails depends on what it then finds: "
                                  "here the run stops, and fails",
                                  listed(unsure.names))});
  if (!passed.names.empty())
    remarks.push_back(
        {passed.line, fmt::format("if {} fails, the script goes on{}: here the run stops, and fails",
                                  listed(passed.names), passed.hidden ? " and exits with 0" : "")});
  if (!hidden.names.empty())
    remarks.push_back({hidden.line, fmt::format("if {} fails, the script exits with 0: here the run fails",
                                                listed(hidden.names))});
}

/// `[ $code -ne 0 ] && echo failed` as the last line.
void remark_of_its_code(const shell::Recording& recording, const std::vector<std::string>& lines,
                        Imported& out) {
  // `kill $P`, and `wait $P` as the last line: the code is that of the signal.
  if (!recording.traced.empty()) {
    const auto& last = recording.traced.back();
    const auto words = shell::words_of(last.text);
    const bool kills =
        words.size() == 2 && words[0] == "wait" &&
        std::ranges::any_of(recording.traced, [&](const auto& one) {
          static const shell::Options kEnd{"-9", "-15", "-TERM", "-KILL", "-SIGTERM", "-SIGKILL"};
          const auto kill = shell::words_of(one.text);
          return kill.size() > 1 && kill[0] == "kill" && shell::has(kill, words[1]) &&
                 (!kill[1].starts_with('-') || kEnd.contains(kill[1]));
        });
    // What an EXIT trap runs last does not count, and appears to be on the first line.
    const bool is_alone = last.line > 0 && last.line <= lines.size() &&
                          lines[last.line - 1].contains("wait") &&
                          lines[last.line - 1].find_first_of("|&;") == std::string::npos;
    if (kills && is_alone && recording.exit_code == 0)
      out.remarks[Destination::roles].push_back(
          {last.line,
           "the script exits with the code of what it has killed (143 for SIGTERM): the run exits with 0"});
  }
  if (recording.exit_code == 0 || !recording.stopped.empty()) return;
  out.remarks[Destination::roles].push_back(
      {recording.last_line, fmt::format("the script exits with {} although all its programs succeed: the run "
                                        "exits with 0",
                                        recording.exit_code)});
}

/// `nvidia-smi dmon > gpu.log &`: what only asks is not started, and its file not written.
void remarks_of_monitors(const shell::Recording& recording, Imported& out) {
  std::set<std::pair<std::uint32_t, std::string>> told;
  for (const auto& one : recording.commands) {
    const auto file = one.files.find(1);
    if (one.fate != shell::Fate::answered || file == one.files.end() || file->second.starts_with("/dev/"))
      continue;
    const auto name = file->second.substr(file->second.rfind('/') + 1);
    const auto words = text::printable(text::shell_join(one.argv));
    if (!told.emplace(one.line, words).second) continue;
    out.remarks[Destination::roles].push_back(
        {one.line, fmt::format("`{}` is not imported, and {} not written", words, text::printable(name))});
  }
}

}  // namespace

void add_remarks_on_its_end(const Remarked& script, Imported& out) {
  remark_of_its_code(script.recording, script.lines, out);
  remarks_of_monitors(script.recording, out);
  remarks_of_its_end(script, out);
  remarks_of_unawaited(script, out);
  remarks_of_the_left(script, out);
  remark_of_ray(out);
  remarks_of_servers(script, out);
  remarks_of_failures(*script.input.script, script.recording, out);
}

}  // namespace nlaunch::import
