#include "lint/questions.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "lint/programs.h"
#include "shell/failing.h"
#include "shell/words.h"

namespace nlaunch::lint {
namespace {

/// True for a query over the network to a host of the job.
bool is_question(const shell::RecordedCommand& command) {
  if (command.fate != shell::Fate::answered) return false;
  return command.argv[0].starts_with(shell::kConnection) ||
         (shell::program_name(command.argv[0]) != "ray" && shell::asks_host(command.argv));
}

/// True if the program may listen on the port of a query: it names it, or it is an engine with that default.
bool may_answer(const shell::RecordedCommand& command, const shell::Words& query) {
  const Program program{.words = command.argv};
  return shell::has_port_of(command.argv, query) ||
         (command.background && shell::has_port_of(command.environment, query)) ||
         (is_engine(program) && shell::names_port(query, port_of_server(program).port));
}

using Place = std::tuple<std::string, std::uint32_t, std::string>;
std::vector<Place> places_of(const shell::Recording& recording) {
  std::vector<Place> places;
  for (const auto& one : recording.commands)
    if (one.fate == shell::Fate::recorded)
      places.emplace_back(one.script, one.line, shell::call_of(one.argv));
  return places;
}

/// The places of `all` that `known` lacks, each once.
std::vector<Substitute> only_in(const std::vector<Place>& all, const std::vector<Place>& known) {
  std::vector<Substitute> found;
  std::set<Place> told;
  for (const auto& one : all)
    if (std::ranges::find(known, one) == known.end() && told.insert(one).second)
      found.push_back({std::get<2>(one), std::get<1>(one)});
  return found;
}

}  // namespace

std::set<std::uint32_t> questions_for_nobody(const shell::Recording& recording) {
  std::set<std::uint32_t> lines;
  const auto& all = recording.commands;
  for (const auto& query : all) {
    const bool given = std::ranges::any_of(recording.printed,
                                           [&](const shell::Absent& one) { return one.line == query.line; });
    if (!is_question(query) || given || query.line == 0) continue;
    const bool answered = std::ranges::any_of(all, [&](const shell::RecordedCommand& one) {
      const bool may_serve = one.fate == shell::Fate::recorded && !one.output_is_read;
      return may_serve && (&one < &query || one.task) && may_answer(one, query.argv);
    });
    if (!answered) lines.insert(query.line);
  }
  return lines;
}

std::vector<Unanswered> leave_unanswered(const shell::RecordRequest& request,
                                         const shell::Recording& recording) {
  constexpr std::size_t kMost = 6;
  std::vector<Unanswered> all;
  const auto before = places_of(recording);
  for (const auto line : questions_for_nobody(recording)) {
    if (all.size() == kMost) break;
    auto again = request;
    again.unanswered = {line};
    const auto result = shell::record(again);
    if (!result) continue;
    Unanswered one{.line = line};
    std::map<shell::Words, std::size_t> asked;
    for (const auto& command : result->commands)
      if (command.line == line && is_question(command))
        one.times = std::max(one.times, ++asked[command.argv]);
    one.waits = result->waits;
    if (result->stopped.empty()) one.exit_code = result->exit_code;
    const auto then = places_of(*result);
    one.others = only_in(then, before);
    one.missing = only_in(before, then);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace nlaunch::lint
