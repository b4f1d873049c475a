#include "import/loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <regex>

#include "base/text.h"

namespace nlaunch::import {
namespace {

constexpr std::size_t kLongestSearched = 256;  // of what is searched
constexpr std::uint32_t kNear = 8;             // lines
constexpr std::size_t kMostLoops = 256;        // more is no script that a person wrote

std::string lines_around(const std::vector<std::string>& lines, std::uint32_t line, std::uint32_t before,
                         std::uint32_t after) {
  std::string text;
  for (std::size_t i = line > before ? line - before : 1; i <= std::size_t{line} + after && i <= lines.size();
       ++i)
    text += fmt::format("{}\n", lines[i - 1].substr(0, kLongestSearched));
  return text;
}

std::uint32_t largest_bound(const std::string& text, const NumberIn& number_in) {
  static const std::regex kBound(R"re((?:-lt|-le|-ge|-gt|[<>]=?)\s*("?\$?\{?\w+\}?"?))re");
  std::uint32_t most = 0;
  for (std::sregex_iterator one(text.begin(), text.end(), kBound), end; one != end; ++one)
    most = std::max(most, number_in((*one)[1]));
  return most;
}

/// What stands behind `for` on its line.
Loop loop_head(const std::string& line, std::uint32_t number) {
  static const std::regex kWords(R"re(\bfor\s+(\w+)\s+in\s+([^;#]*))re");
  static const std::regex kCounted(R"re(\bfor\s*\(\(\s*(\w+)\s*=([^)#]*)\)\))re");
  const auto text = line.substr(0, kLongestSearched);
  std::smatch found;
  if (std::regex_search(text, found, kWords) || std::regex_search(text, found, kCounted))
    return {number, 0, 0, found[1], std::string(text::trim(found[2].str()))};
  return {number, 0, 0, "", ""};
}

std::vector<std::string> counted(std::uint32_t from, std::uint32_t end) {
  constexpr std::uint32_t kMost = 1024;
  std::vector<std::string> rounds;
  for (auto i = from; i < end && rounds.size() < kMost; ++i) rounds.push_back(std::to_string(i));
  return rounds;
}

}  // namespace

std::vector<FirstWord> first_words(std::string_view line) {
  constexpr std::string_view kEnds = " \t\r;&|()";
  constexpr std::array<std::string_view, 5> kBefore{"do", "then", "else", "{", "function"};
  std::vector<FirstWord> found;
  bool begins = true;
  for (std::size_t i = 0; i < line.size() && line[i] != '#';) {
    const auto end = std::min(line.find_first_of(kEnds, i), line.size());
    const auto word = line.substr(i, end - i);
    if (!word.empty() && begins) {
      const bool function = !found.empty() && found.back().text == "function";
      found.push_back({word, static_cast<std::uint32_t>(i + 1)});
      begins = function || std::ranges::find(kBefore, word) != kBefore.end();
    }
    if (end < line.size() && line[end] != ' ' && line[end] != '\t') begins = true;
    i = end + 1;
  }
  return found;
}

std::vector<Loop> loops_in(const std::vector<std::string>& lines) {
  std::vector<Loop> loops;
  std::vector<std::size_t> open;  // of all kinds; those that are no `for` have no variable
  for (std::uint32_t number = 1; number <= lines.size(); ++number) {
    const auto& line = lines[number - 1];
    for (const auto& [word, column] : first_words(line)) {
      if (word == "for" || word == "while" || word == "until" || word == "select") {
        open.push_back(loops.size());
        loops.push_back(word == "for" ? loop_head(line, number) : Loop{number, 0, 0, "", ""});
      } else if (word == "done" && !open.empty()) {
        loops[open.back()].last = number;
        loops[open.back()].last_column = column;
        open.pop_back();
      }
    }
  }
  std::erase_if(loops, [](const Loop& loop) { return loop.last == 0; });
  if (loops.size() > kMostLoops) loops.resize(kMostLoops);
  return loops;
}

std::vector<std::string> rounds_of(const Loop& loop, const NumberIn& number_in) {
  static const std::regex kRange(R"re(\{(\d{1,6})\.\.(\d{1,6})\})re");
  static const std::regex kSequence(R"re(\$\(\s*seq\s+(?:(\d{1,6})\s+)?("?\$?\{?\w+\}?"?)\s*\))re");
  static const std::regex kCount(R"re((\d{1,6})\s*;\s*\w+\s*<(=?)\s*(\$?\{?\w+\}?)\s*;.*)re");
  std::smatch found;
  if (std::regex_match(loop.words, found, kRange))
    return counted(number_at_start(found[1].str()), number_at_start(found[2].str()) + 1);
  if (std::regex_match(loop.words, found, kSequence))
    return counted(found[1].matched ? number_at_start(found[1].str()) : 1, number_in(found[2]) + 1);
  if (std::regex_match(loop.words, found, kCount))
    return counted(number_at_start(found[1].str()), number_in(found[3]) + (found[2].length() > 0 ? 1 : 0));
  std::vector<std::string> rounds;
  for (auto& word : text::split(loop.words, ' ')) {
    std::erase(word, '"');
    if (word.find_first_of("$`*?{}[]()'<>|&\\") != std::string::npos) return {};
    if (!word.empty()) rounds.push_back(std::move(word));
  }
  return rounds;
}

std::string loop_remark(const Loop& loop, const NumberIn& number_in, bool together) {
  if (loop.variable.empty())
    return "in a loop, of which only the script knows the rounds: here it is started once";
  const auto rounds = rounds_of(loop, number_in).size();
  if (rounds == 1) return {};
  if (rounds == 0)
    return fmt::format(
        "in a loop over {}, of which only the script knows the rounds: `count: N` or `per: node` "
        "starts as many",
        loop.variable);
  const auto first =
      fmt::format("in a loop over {}, of which this is the first of {} rounds: ", loop.variable, rounds);
  return together ? fmt::format(
                        "{0}`count: {1}` starts {1} of it, and `ports: [http]` gives each a port, "
                        "${{self.ports.http}}",
                        first, rounds)
                  : first + "`vars` and --set make a run of each";
}

std::vector<std::string> counted_in(const std::string& line) {
  static const std::regex kCounted(
      R"re((?:\(\(|\blet)\s*"?(?:\+\+|--)?(\w+)\s*(?:\+\+|--|[-+*/]?=[^=]|\)\)))re");
  std::vector<std::string> names;
  const auto text = line.substr(0, kLongestSearched);
  if (text.find("((") == std::string::npos && text.find("let") == std::string::npos) return names;
  for (std::sregex_iterator one(text.begin(), text.end(), kCounted), end; one != end; ++one)
    names.push_back((*one)[1]);
  return names;
}

std::uint32_t number_at_start(std::string_view text) {
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::uint32_t bound_before(const std::vector<std::string>& lines, std::uint32_t line,
                           const NumberIn& number_in) {
  return largest_bound(lines_around(lines, line, kNear - 2, 0), number_in);
}

std::string patience_near(const std::vector<std::string>& lines, std::uint32_t line,
                          const NumberIn& number_in) {
  constexpr std::uint32_t kMost = 86400;
  static const std::regex kRounds(R"re(seq\s+(?:1\s+)?("?\$?\{?\w+\}?"?)\s*\)|\{1\.\.(\d+)\})re");
  static const std::regex kSleep(R"re(sleep\s+(\d{1,4}))re");
  const auto text = lines_around(lines, line, kNear, kNear);
  std::smatch found;
  const std::uint32_t pause = std::regex_search(text, found, kSleep) ? std::max(1U, number_in(found[1])) : 1;
  std::uint32_t rounds = 0;
  if (std::regex_search(text, found, kRounds)) rounds = number_in(found[1].matched ? found[1] : found[2]);
  if (rounds == 0) {
    rounds = largest_bound(text, number_in);
    const bool counts_seconds = text.find(fmt::format("+ {})", pause)) != std::string::npos;
    if (counts_seconds) rounds /= pause;
  }
  return rounds == 0 || rounds > kMost ? "" : fmt::format("{}s", std::min(rounds * pause, kMost));
}

}  // namespace nlaunch::import
