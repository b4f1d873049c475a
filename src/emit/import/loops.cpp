#include "emit/import/loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <regex>

namespace nlaunch::emit {
namespace {

constexpr std::size_t kLongestLine = 256;  // of what is searched
constexpr std::uint32_t kNear = 8;         // lines

std::string lines_around(const std::vector<std::string>& lines, std::uint32_t line, std::uint32_t before,
                         std::uint32_t after) {
  std::string text;
  for (std::size_t i = line > before ? line - before : 1; i <= std::size_t{line} + after && i <= lines.size();
       ++i)
    text += fmt::format("{}\n", lines[i - 1].substr(0, kLongestLine));
  return text;
}

std::uint32_t largest_bound(const std::string& text, const NumberIn& number_in) {
  static const std::regex kBound(R"re((?:-lt|-le|-ge|-gt|[<>]=?)\s*("?\$?\{?\w+\}?"?))re");
  std::uint32_t most = 0;
  for (std::sregex_iterator one(text.begin(), text.end(), kBound), end; one != end; ++one)
    most = std::max(most, number_in((*one)[1]));
  return most;
}

}  // namespace

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
  return rounds == 0 || rounds > kMost ? "10m" : fmt::format("{}s", std::min(rounds * pause, kMost));
}

}  // namespace nlaunch::emit
