#include "lint/trials.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "lint/programs.h"
#include "shell/words.h"

namespace nlaunch::lint {
namespace {

constexpr std::size_t kMost = 12;  // trials of one script

/// A script starts the same program on the same line for other tasks, and in other turns of a loop.
using Place = std::tuple<std::string, std::uint32_t, std::string>;
Place place_of(const shell::RecordedCommand& command) {
  return {command.script, command.line, shell::call_of(command.argv)};
}

/// The first program of each place, by its index.
std::vector<std::size_t> programs_to_try(const shell::Recording& recording, const Script& script) {
  std::vector<std::size_t> found;
  std::set<Place> seen;
  for (std::size_t i = 0; i < script.programs.size() && found.size() < kMost; ++i) {
    const auto& command = recording.commands.at(script.programs[i].recorded_as);
    // The entry point of an image, whose name is not known, gets `-c TEXT`.
    const bool named = !command.argv[0].starts_with('-');
    if (script.programs[i].works && named && command.line > 0 && seen.insert(place_of(command)).second)
      found.push_back(i);
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

bool sleeps(const shell::RecordedCommand& command) {
  return command.fate == shell::Fate::answered && !command.background &&
         shell::program_name(command.argv[0]) == "sleep";
}

/// It asks whether something answers.
bool asks(const shell::RecordedCommand& command) {
  static const shell::Options kAsks{"curl", "wget", "nc", "ncat", "ray", "ps", "pgrep", "grep", "egrep"};
  return command.fate == shell::Fate::answered && (kAsks.contains(shell::program_name(command.argv[0])) ||
                                                   command.argv[0].starts_with(shell::kConnection));
}

/// How often the shells of a script kill or stop something.
std::size_t count_of_kills(const shell::Recording& recording) {
  return static_cast<std::size_t>(std::ranges::count_if(recording.traced, [](const auto& one) {
    const auto words = shell::words_of(one.text);
    if (words.empty()) return false;
    const auto name = shell::program_name(words[0]);
    const bool asks = shell::has(words, "-0") || shell::has(words, "-l");
    return (name == "kill" && !asks) || name == "pkill" || name == "killall" || name == "fuser" ||
           name == "scancel" || (words.size() > 1 && (words[1] == "stop" || words[1] == "down"));
  }));
}

/// What the script did behind the first failure.
Trial result_of(std::size_t program, const shell::FailingProgram& failing, const shell::Recording& first,
                const shell::Recording& again, const Script& script) {
  const auto own = place_of(first.commands.at(script.programs[program].recorded_as));
  Trial trial{.program = program, .serves = failing.serves};
  if (failing.only_first) trial.turns = turns_of(first, own);
  if (again.stopped.empty()) trial.exit_code = again.exit_code;
  trial.waits = again.waits;
  trial.ends_less = count_of_kills(again) < count_of_kills(first);
  const auto begin = std::ranges::find_if(again.commands, [&](const auto& one) { return failing.is(one); });
  std::set<Place> started;
  std::uint64_t slept = 0;
  for (auto one = begin; one != again.commands.end(); ++one) {
    if (sleeps(*one)) slept += shell::seconds_of_sleep(one->argv);
    if (asks(*one)) trial.waited = slept;
    trial.asked = trial.asked || asks(*one);
    if (one != begin) started.insert(place_of(*one));
  }
  if (!trial.asked) trial.waited = slept;
  std::set<Place> known;
  for (const auto& one : first.commands) known.insert(place_of(one));
  for (auto one = begin; one != again.commands.end(); ++one)
    if (one->fate == shell::Fate::recorded && !one->output_is_read && known.insert(place_of(*one)).second)
      trial.replacements.push_back({shell::call_of(one->argv), one->line});
  std::set<Place> told;
  if (!failing.only_first) told.insert(own);
  for (auto i = program + 1; i < script.programs.size(); ++i) {
    const auto place = place_of(first.commands.at(script.programs[i].recorded_as));
    if (script.programs[i].works && started.contains(place) && told.insert(place).second)
      trial.later.push_back(i);
  }
  return trial;
}

}  // namespace

std::vector<Trial> try_failures(const shell::RecordRequest& request, const shell::Recording& recording,
                                const LintInput& input) {
  // A loop at the end of a script that watches what it started would not end in a trial either.
  if (!recording.whole() || recording.exit_code != 0 || recording.waits || !recording.failed.empty())
    return {};
  std::vector<Trial> trials;
  for (const auto program : programs_to_try(recording, *input.script)) {
    const auto& one = input.script->programs[program];
    const auto& [script, line, call] = place_of(recording.commands.at(one.recorded_as));
    auto again = request;
    again.failing = shell::FailingProgram{
        .script = script, .line = line, .call = call, .serves = one.background && is_server(one)};
    again.failing->only_first = !again.failing->serves && turns_of(recording, {script, line, call}) > 1;
    again.limits.time = std::chrono::seconds(5);
    if (const auto result = shell::record(again))
      trials.push_back(result_of(program, *again.failing, recording, *result, *input.script));
  }
  return trials;
}

}  // namespace nlaunch::lint
