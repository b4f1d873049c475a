#include "import/loop_values.h"

#include <fmt/format.h>

#include <algorithm>

namespace nlaunch::import {
namespace {

void set_variable(const Loop& loop, const std::string& word, Values& values) {
  lint::Assignment assignment;
  assignment.name = loop.variable;
  assignment.value.parts.push_back({lint::Part::Kind::text, word});
  values.assign(assignment, true, loop.first);
}

/// Behind a loop its variable has the last of its words.
void leave(const Loop& loop, Values& values, const NumberIn& number) {
  const auto rounds = rounds_of(loop, number);
  const bool counts = loop.words.find(';') != std::string::npos;
  values.forget(loop.variable);
  if (!rounds.empty() && !counts) return set_variable(loop, rounds.back(), values);
  values.doubt(loop.variable, {loop.last, fmt::format("{} has what the loop of line {} left in it",
                                                      loop.variable, loop.first)});
}

}  // namespace

LoopValues::LoopValues(const std::vector<std::string>& lines, const lint::Script& script)
    : loops_(loops_in(lines)) {
  for (const auto& command : script.commands) {
    if (!command.conditional || command.nested) continue;
    for (const auto& one : command.assignments) changes_.emplace_back(one.span.line, one.name);
  }
  for (std::uint32_t line = 1; line <= lines.size(); ++line) {
    for (auto& name : counted_in(lines[line - 1])) changes_.emplace_back(line, std::move(name));
  }
  std::ranges::sort(changes_);
}

void LoopValues::begin(const Loop& loop, Values& values, const NumberIn& number) const {
  const auto from =
      std::ranges::lower_bound(changes_, loop.first, {}, &std::pair<std::uint32_t, std::string>::first);
  for (auto one = from; loop.last > loop.first && one != changes_.end() && one->first <= loop.last; ++one) {
    if (values.knows(one->second))
      values.doubt(one->second,
                   {one->first, fmt::format("{} gets another value here, and has the first one: {}",
                                            one->second, kThatLine)});
  }
  if (loop.variable.empty()) return;
  const auto rounds = rounds_of(loop, number);
  values.forget(loop.variable);
  if (!rounds.empty()) return set_variable(loop, rounds.front(), values);
  values.doubt(loop.variable,
               {loop.first, fmt::format("{} is the loop's, whose words only the running script knows: {}",
                                        loop.variable, kThatLine)});
}

void LoopValues::enter(std::uint32_t line, std::uint32_t column, Values& values, const NumberIn& number) {
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    const auto& loop = loops_[i];
    const bool here = loop.holds(line, column);
    const bool known = std::ranges::find(around_, i) != around_.end();
    if (here == known) continue;
    if (here) {
      around_.push_back(i);
      begin(loop, values, number);
    } else {
      std::erase(around_, i);
      if (!loop.variable.empty()) leave(loop, values, number);
    }
  }
}

}  // namespace nlaunch::import
