#include "lint/trials.h"

#include <re2/re2.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "lint/programs.h"
#include "lint/script_programs.h"
#include "lint/script_sources.h"
#include "lint/script_text.h"
#include "shell/words.h"

namespace nlaunch::lint {
namespace {

constexpr std::size_t kMost = 12;             // trials of one script
constexpr std::size_t kMostOfAll = 24;        // with what only prepares
constexpr std::chrono::seconds kLongest{12};  // after which none begins

/// A script starts the same program on the same line for other tasks, and in other turns of a loop.
using Place = std::tuple<std::string, std::uint32_t, std::string>;
Place place_of(const shell::RecordedCommand& command) {
  return {command.script, command.line, shell::call_of(command.argv)};
}

/// The first program of each place, by its index.
std::vector<std::size_t> programs_to_try(const shell::Recording& recording, const Script& script,
                                         Tried tried) {
  std::vector<std::size_t> found;
  std::set<Place> seen;
  const auto most = tried == Tried::all ? kMostOfAll : kMost;
  for (std::size_t i = 0; i < script.programs.size() && found.size() < most; ++i) {
    const auto& command = recording.commands.at(script.programs[i].recorded_as);
    const bool counts =
        script.programs[i].works ||
        (tried == Tried::all && command.fate == shell::Fate::recorded && !command.output_is_read);
    // The entry point of an image, whose name is not known, gets `-c TEXT`.
    const bool named = !command.argv[0].empty() && !command.argv[0].starts_with('-');
    if (counts && named && command.line > 0 && seen.insert(place_of(command)).second) found.push_back(i);
  }
  return found;
}

/// How often a program of this place starts, the tasks of a step being one.
std::size_t turns_of(const shell::Recording& recording, const Place& place) {
  std::set<std::size_t> turns;
  for (std::size_t i = 0; i < recording.commands.size(); ++i) {
    const auto& command = recording.commands[i];
    if (place_of(command) == place) turns.insert(command.task && command.launcher ? *command.launcher : i);
  }
  return turns.size();
}

/// The same of all places.
std::map<Place, std::size_t> all_turns(const shell::Recording& recording) {
  std::map<Place, std::set<std::size_t>> turns;
  for (std::size_t i = 0; i < recording.commands.size(); ++i) {
    const auto& command = recording.commands[i];
    turns[place_of(command)].insert(command.task && command.launcher ? *command.launcher : i);
  }
  std::map<Place, std::size_t> counts;
  for (const auto& [place, all] : turns) counts.emplace(place, all.size());
  return counts;
}

/// How often it starts, in any task.
std::size_t starts_of(const shell::Recording& recording, const Place& place) {
  return static_cast<std::size_t>(
      std::ranges::count_if(recording.commands, [&](const auto& one) { return place_of(one) == place; }));
}

bool sleeps(const shell::RecordedCommand& command) {
  return command.fate == shell::Fate::answered && !command.background &&
         shell::program_name(command.argv[0]) == "sleep";
}

/// True if the shells of a script kill or stop something behind the first start of a program.
bool kills_behind(const shell::RecordedCommand& program, const shell::Recording& recording) {
  static const shell::Options kStop{"docker", "podman", "ray", "systemctl", "apptainer", "singularity"};
  const auto start = std::ranges::find_if(recording.traced, [&](const auto& one) {
    return one.script == program.script && one.line == program.line;
  });
  return std::any_of(start == recording.traced.end() ? recording.traced.begin() : start + 1,
                     recording.traced.end(), [](const auto& one) {
                       const auto words = shell::words_of(one.text);
                       if (words.empty()) return false;
                       const auto name = shell::program_name(words[0]);
                       const bool stops =
                           shell::has(words, "stop") || shell::has(words, "down") || shell::has(words, "rm");
                       return shell::kills(words) || name == "scancel" || (kStop.contains(name) && stops);
                     });
}

/// What a script does after a failure instead of what it does otherwise: `sbatch $0`, `scancel`.
bool hands_over(const shell::RecordedCommand& command) {
  const auto name = shell::program_name(command.argv[0]);
  return name == "sbatch" || name == "scancel" || (name == "scontrol" && shell::has(command.argv, "requeue"));
}

/// `sbatch $0`, `scontrol requeue`.
bool submits_itself(const shell::RecordedCommand& command) {
  const auto& argv = command.argv;
  const auto own = shell::program_name(command.script);
  if (shell::program_name(argv[0]) == "scontrol") return shell::has(argv, "requeue");
  return shell::program_name(argv[0]) == "sbatch" &&
         std::any_of(argv.begin() + 1, argv.end(),
                     [&](const auto& word) { return shell::program_name(word) == own; });
}

bool is_timeout(const shell::RecordedCommand& command) {
  return shell::program_name(command.argv[0]) == "timeout";
}

/// The line behind the program, if bash ran it less often when it failed: `set -e` ended the shell before
/// it. 0: none.
std::uint32_t skipped_line(const shell::RecordedCommand& program, const shell::Recording& first,
                           const shell::Recording& again) {
  // The first line behind the program that its shell ran.
  const auto start = std::ranges::find_if(first.traced, [&](const auto& one) {
    return one.script == program.script && one.line == program.line;
  });
  if (start == first.traced.end()) return 0;
  const auto next = std::find_if(start + 1, first.traced.end(), [&](const auto& one) {
    return one.shell == start->shell && one.line != program.line;
  });
  if (next == first.traced.end() || next->script != program.script || next->line < program.line) return 0;
  const auto times = [&](const shell::Recording& recording) {
    return std::ranges::count_if(recording.traced, [&](const auto& one) {
      return one.script == next->script && one.line == next->line;
    });
  };
  return times(again) < times(first) ? next->line : 0;
}

using Commands = std::vector<shell::RecordedCommand>;

/// A failure in a script: the script without and with it.
struct Failure {
  std::size_t program;  ///< an index into Script::programs
  const shell::FailingProgram& failing;
  const shell::Recording& first;
  const shell::Recording& again;
  const Script& script;

  [[nodiscard]] Place place(const Program& one) const { return place_of(first.commands.at(one.recorded_as)); }
  /// The commands with and behind it.
  [[nodiscard]] Commands::const_iterator begin() const {
    return std::ranges::find_if(again.commands, [&](const auto& one) { return failing.is(one); });
  }
};

/// How long the script waits for what has failed, into `trial`.
void measure_wait(const Failure& failure, Trial& trial) {
  // The programs of the script behind it: the wait is over when the first of them starts.
  std::set<Place> behind;
  const auto& programs = failure.script.programs;
  for (auto i = failure.program + 1; i < programs.size(); ++i)
    if (programs[i].works && !programs[i].background && !is_server(programs[i]))
      behind.insert(failure.place(programs[i]));
  std::map<shell::Words, std::size_t> asked;
  const auto& commands = failure.again.commands;
  std::uint64_t slept = 0;
  std::uint64_t waited_at_first = 0;
  bool goes_on = false;
  for (auto one = failure.begin(); one != commands.end(); ++one) {
    goes_on = goes_on || (one != failure.begin() && behind.contains(place_of(*one)));
    if (sleeps(*one)) slept += shell::seconds_of_sleep(one->argv);
    const bool until_timeout = one->launcher && is_timeout(commands[*one->launcher]);
    if (asks(*one) || (sleeps(*one) && until_timeout)) {
      trial.waited = slept;
      if (!goes_on) waited_at_first = slept;
    }
    if (asks(*one)) trial.questions = std::max(trial.questions, ++asked[one->argv]);
  }
  if (waited_at_first > 0) trial.waited = waited_at_first;
  if (trial.questions == 0) trial.waited = slept;
}

/// What the script starts only because of the failure.
std::vector<Substitute> replacements_of(const Failure& failure, const Trial& trial) {
  std::vector<Substitute> found;
  const auto own = failure.place(failure.script.programs[failure.program]);
  std::set<Place> known;
  for (const auto& one : failure.first.commands) known.insert(place_of(one));
  // Also within one step.
  const bool again_and_again =
      !failure.failing.serves && (turns_of(failure.again, own) > trial.turns ||
                                  starts_of(failure.again, own) > starts_of(failure.first, own));
  if (again_and_again) found.push_back({std::get<2>(own), std::get<1>(own)});
  for (auto one = failure.begin(); one != failure.again.commands.end(); ++one) {
    // A process id differs in each recording.
    const bool starts =
        one->fate == shell::Fate::recorded && !one->output_is_read && !shell::kills(one->argv);
    if ((starts || hands_over(*one)) && known.insert(place_of(*one)).second)
      found.push_back({shell::call_of(one->argv), one->line});
  }
  return found;
}

/// The programs that the script starts although one before them has failed, by their indices.
std::vector<std::size_t> later_programs(const Failure& failure, std::size_t turns) {
  std::vector<std::size_t> later;
  const auto& programs = failure.script.programs;
  const auto& failed = programs[failure.program];
  std::set<Place> started;
  if (const auto begin = failure.begin(); begin != failure.again.commands.end())
    for (auto one = begin + 1; one != failure.again.commands.end(); ++one) started.insert(place_of(*one));
  std::set<Place> told;
  if (turns == 1) told.insert(failure.place(failed));
  const auto without = failure.failing.serves ? all_turns(failure.first) : std::map<Place, std::size_t>();
  const auto then = failure.failing.serves ? all_turns(failure.again) : std::map<Place, std::size_t>();
  const auto count = [](const auto& counts, const Place& place) {
    const auto found = counts.find(place);
    return found == counts.end() ? std::size_t{0} : found->second;
  };
  for (auto i = failure.program + 1; i < programs.size(); ++i) {
    const auto& one = programs[i];
    const auto place = failure.place(one);
    // What runs beside it was started before the failure; an EXIT trap appears to be on the first line.
    const bool beside = failure.failing.serves
                            ? is_server(one) || is_ray_node(one)
                            : (failed.background && !shell::had_ended(failed.waited, one.waited)) ||
                                  (one.step && one.step == failed.step);
    const bool of_trap = one.span.file == failed.span.file && one.span.line < failed.span.line;
    // Without its server, a part of the programs may be skipped.
    const bool fewer = failure.failing.serves && count(then, place) < count(without, place);
    if (one.works && !beside && !of_trap && !fewer && started.contains(place) && told.insert(place).second)
      later.push_back(i);
  }
  return later;
}

/// What the script did behind the first failure.
Trial result_of(const Failure& failure) {
  const auto& [program, failing, first, again, script] = failure;
  const auto& command = first.commands.at(script.programs[program].recorded_as);
  Trial trial{.program = program, .serves = failing.serves};
  trial.turns = turns_of(first, place_of(command));
  trial.sure = again.guessed.empty();
  trial.restarts =
      failing.serves && starts_of(again, place_of(command)) > starts_of(first, place_of(command));
  trial.skipped_line = skipped_line(command, first, again);
  if (again.stopped.empty()) trial.exit_code = again.exit_code;
  // What `timeout` starts ends after a time that has not passed here.
  trial.waits = again.waits && std::ranges::none_of(again.commands, is_timeout);
  const bool kills = kills_behind(command, again);
  const bool kills_otherwise = kills_behind(command, first);
  trial.kills_more = kills && !kills_otherwise;
  trial.ends_nothing = kills_otherwise && !kills;
  for (auto one = failure.begin(); one != again.commands.end(); ++one)
    if (submits_itself(*one)) trial.submits_itself = one->line;
  measure_wait(failure, trial);
  trial.replacements = replacements_of(failure, trial);
  trial.later = later_programs(failure, trial.turns);
  return trial;
}

/// True if the script does the same whatever it finds in the output of what has failed: `grep -q loss: log`.
/// `request` is that of the failure.
bool is_sure(const Failure& failure, const Trial& trial, const shell::RecordRequest& request) {
  if (!trial.exit_code) return false;
  struct Branch {
    std::set<std::uint32_t> otherwise, decided;  // lines
  };
  constexpr int kMostBranches = 4;
  std::vector<Branch> open{{}};
  for (int i = 0; !open.empty(); ++i) {
    auto [otherwise, decided] = open.back();
    open.pop_back();
    if (i == kMostBranches) return false;
    auto again = request;
    again.failing->otherwise = otherwise;
    const auto result = i == 0 ? Result<shell::Recording>(failure.again) : shell::record(again);
    if (!result) return false;
    const auto other = result_of({failure.program, failure.failing, failure.first, *result, failure.script});
    if (other.exit_code != trial.exit_code || other.later != trial.later ||
        other.replacements.size() != trial.replacements.size())
      return false;
    for (const auto& one : result->guessed) {
      if (!result->searches.contains(one.line)) return false;
      if (!decided.insert(one.line).second) continue;
      auto next = otherwise;
      next.insert(one.line);
      open.push_back({std::move(next), decided});
    }
  }
  return true;
}

/// What the script does with a program that it starts again if it fails, and that fails each time, into
/// `trial`. `request` is that of one failure.
void fail_each_time(const Failure& failure, const shell::RecordRequest& request, Trial& trial) {
  constexpr std::size_t kStarts = 200;
  constexpr std::size_t kMany = 25;
  const auto place = failure.place(failure.script.programs[failure.program]);
  if (failure.failing.serves || starts_of(failure.again, place) <= starts_of(failure.first, place)) return;
  auto always = request;
  always.failing->always = true;
  always.limits.starts = kStarts;
  const auto result = shell::record(always);
  if (!result) return;
  trial.without_end = !result->stopped.empty() && starts_of(*result, place) > kMany;
  trial.tries_unseen = result->stopped.empty() && result->exit_code == 0 && result->guessed.empty();
}

/// A program of the user's own in `$(...)`, and no query.
bool gives_a_value(const shell::RecordedCommand& command) {
  if (command.fate != shell::Fate::recorded || !command.output_is_read || command.line == 0) return false;
  return !is_helper(command.argv) ||
         (shell::program_name(command.argv[0]) == "wandb" && shell::has(command.argv, "sweep"));
}

/// True if the last assignment to a variable above a line was an empty text.
bool is_empty(const shell::Recording& recording, const std::string& variable, std::uint32_t line) {
  const auto& all = recording.assignments;
  const auto last = std::find_if(all.rbegin(), all.rend(), [&](const shell::Assignment& one) {
    return one.name == variable && one.line < line;
  });
  return last != all.rend() && text::trim(last->value).empty();
}

}  // namespace

std::vector<Trial> try_failures(const shell::RecordRequest& request, const shell::Recording& recording,
                                const LintInput& input, Tried tried) {
  // A loop at the end of a script that watches what it started would not end in a trial either.
  const bool never_ends = std::ranges::any_of(recording.commands, [](const auto& one) {
    return one.fate == shell::Fate::answered && !one.background && shell::waits_forever(one.argv);
  });
  if (!recording.whole() || recording.exit_code != 0 || recording.waits || never_ends ||
      !recording.failed.empty())
    return {};
  // The first that exits decides about `wait -n`, and here that is any.
  const bool by_first =
      std::ranges::any_of(recording.traced, [](const auto& one) { return one.text.starts_with("wait -n"); });
  const auto end = std::chrono::steady_clock::now() + kLongest;
  std::vector<Trial> trials;
  auto programs = programs_to_try(recording, *input.script, tried);
  // A script waits long for a server that fails: the others come first.
  std::ranges::stable_partition(programs, [&](auto i) { return !input.script->programs[i].background; });
  for (const auto program : programs) {
    const auto& one = input.script->programs[program];
    const auto& command = recording.commands.at(one.recorded_as);
    if (std::chrono::steady_clock::now() > end) break;
    if (one.background && by_first) continue;
    auto again = request;
    again.failing = shell::FailingProgram{.script = command.script,
                                          .line = command.line,
                                          .call = shell::call_of(command.argv),
                                          .serves = one.background && (is_server(one) || is_ray_node(one)),
                                          .joins = is_ray_node(one) && !shell::has(one.words, "--head")};
    // The script may wait for a server many times.
    again.limits.time = std::chrono::seconds(again.failing->serves ? 15 : 5);
    const auto result = shell::record(again);
    if (!result) continue;
    const Failure failure{program, *again.failing, recording, *result, *input.script};
    trials.push_back(result_of(failure));
    if (!trials.back().sure && !again.failing->serves &&
        (tried == Tried::all || trials.back().exit_code == 0))
      trials.back().sure = is_sure(failure, trials.back(), again);
    if (tried == Tried::all && trials.back().turns > 1 && trials.back().exit_code == 0 &&
        !again.failing->serves) {
      auto last = again;
      last.failing->turn = trials.back().turns - 1;
      const auto ended = shell::record(last);
      trials.back().last_is_told = ended && ended->stopped.empty() && ended->exit_code != 0;
    }
    fail_each_time(failure, again, trials.back());
    if (!again.failing->serves || std::chrono::steady_clock::now() > end) continue;
    again.failing->hangs = true;
    if (const auto hung = shell::record(again))
      trials.back().hung =
          std::make_shared<Trial>(result_of({program, *again.failing, recording, *hung, *input.script}));
  }
  std::ranges::sort(trials, {}, &Trial::program);
  return trials;
}

std::vector<FailedValue> try_values(const shell::RecordRequest& request, const shell::Recording& recording,
                                    const std::shared_ptr<const SourceFile>& file, const Script& script) {
  constexpr int kMostValues = 6;
  if (!recording.whole() || recording.exit_code != 0 || recording.waits) return {};
  static const RE2 kKeeps(
      R"re((?:^|[;&|]\s*|\b(?:export|local|readonly|declare|then|do|else)\s+)(\w+)=["']?(?:\$\(|`))re");
  ScriptSources sources(file, request.script, script.folder);
  const auto& lines = sources.main();
  const auto end = std::chrono::steady_clock::now() + kLongest;
  std::vector<FailedValue> found;
  std::set<Place> seen;
  for (const auto& command : recording.commands) {
    if (seen.size() == kMostValues || std::chrono::steady_clock::now() > end) break;
    std::string variable;
    const auto line = sources.begin_of_command(command.script, command.line);
    if (command.script != sources.path() || !gives_a_value(command) ||
        !RE2::PartialMatch(text::trim(lines.command(line)), kKeeps, &variable) ||
        !seen.insert(place_of(command)).second)
      continue;
    auto again = request;
    again.failing = shell::FailingProgram{
        .script = command.script, .line = command.line, .call = shell::call_of(command.argv)};
    again.limits.time = std::chrono::seconds(5);
    const auto result = shell::record(again);
    if (!result || !result->stopped.empty() || !result->guessed.empty()) continue;
    std::set<Place> started;
    for (const auto& one : result->commands) started.insert(place_of(one));
    const auto user = std::ranges::find_if(script.programs, [&](const Program& one) {
      const auto& as_recorded = recording.commands.at(one.recorded_as);
      return one.works && one.span.file == file && one.span.line > line &&
             started.contains(place_of(as_recorded)) && is_empty(*result, variable, one.span.line) &&
             std::ranges::any_of(expansions_in(lines.command(one.span.line)), [&](const Expansion& expanded) {
               return expanded.name == variable && expanded.rest.empty();
             });
    });
    if (user == script.programs.end()) continue;
    found.push_back({.program = shown_name({.words = command.argv}),
                     .variable = variable,
                     .used_by = static_cast<std::size_t>(user - script.programs.begin()),
                     .span = lines.whole(line)});
  }
  return found;
}

std::optional<FailedSubmission> try_submission(const shell::RecordRequest& request,
                                               const shell::Recording& recording,
                                               const std::shared_ptr<const SourceFile>& file) {
  const auto id = std::to_string(shell::Allocation::kSubmitted);
  const auto is_submission = [](const auto& one) {
    return one.fate == shell::Fate::answered && shell::program_name(one.argv[0]) == "sbatch";
  };
  const auto dependency_of = [](const shell::Words& argv) -> std::string {
    for (std::size_t i = 1; i < argv.size(); ++i) {
      if (argv[i].starts_with("--dependency=")) return argv[i];
      if ((argv[i] == "-d" || argv[i] == "--dependency") && i + 1 < argv.size())
        return "--dependency=" + argv[i + 1];
    }
    return "";
  };
  const auto& all = recording.commands;
  const auto first = std::ranges::find_if(all, is_submission);
  if (first == all.end() || !recording.whole() || recording.exit_code != 0 ||
      !first->script.ends_with("/" + shell::program_name(request.script)))
    return std::nullopt;
  auto again = request;
  again.failing = shell::FailingProgram{
      .script = first->script, .line = first->line, .call = shell::call_of(first->argv)};
  const auto result = shell::record(again);
  if (!result) return std::nullopt;
  FailedSubmission failed{.span = SourceLines(file).whole(first->line)};
  if (result->stopped.empty() && result->guessed.empty()) failed.exit_code = result->exit_code;
  const auto waits = std::find_if(first + 1, all.end(), [&](const auto& one) {
    return is_submission(one) && dependency_of(one.argv).contains(id);
  });
  if (waits == all.end()) return failed;
  const auto submitted = std::ranges::find_if(
      result->commands, [&](const auto& one) { return is_submission(one) && one.line == waits->line; });
  if (submitted == result->commands.end()) return failed;
  const auto dependency = dependency_of(submitted->argv);
  if (dependency.contains(id)) return failed;  // of another one
  failed.next = submitted->line;
  failed.dependency = dependency;
  return failed;
}

}  // namespace nlaunch::lint
