#include "shell/script_end.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "sys/files.h"

namespace nlaunch::shell {
namespace {

constexpr std::uint64_t kLargestFile = 1U << 20U;

/// False for a line that closes a block, is a comment, or only prints or exits: it starts nothing.
bool is_command(std::string_view line) {
  constexpr std::array<std::string_view, 6> kCloses{"fi", "done", "esac", "}", ";;", "else"};
  constexpr std::array<std::string_view, 3> kStartNothing{"echo", "printf", "exit"};
  line = text::trim(line);
  const bool is_simple = line.find_first_of("`|;&") == std::string_view::npos && !line.contains("$(");
  const auto name = line.substr(0, line.find(' '));
  return !line.empty() && !line.starts_with('#') && std::ranges::find(kCloses, line) == kCloses.end() &&
         !(is_simple && std::ranges::find(kStartNothing, name) != kStartNothing.end());
}

/// Empty if the file cannot be read.
std::vector<std::string> lines_of(const std::string& script) {
  const auto content = sys::read_regular_file(script, kLargestFile);
  return content ? text::split(*content, '\n') : std::vector<std::string>();
}

}  // namespace

bool nothing_follows(const std::string& script, std::uint32_t line) {
  const auto lines = lines_of(script);
  if (line == 0 || lines.empty()) return false;
  auto next = std::min<std::size_t>(line, lines.size());  // counted from 0
  while (next < lines.size() && lines[next - 1].ends_with('\\')) ++next;
  return std::none_of(lines.begin() + static_cast<std::ptrdiff_t>(next), lines.end(), is_command);
}

bool something_follows_loop(const std::string& script, std::uint32_t line) {
  const auto lines = lines_of(script);
  if (line == 0 || line > lines.size()) return false;
  static const RE2 kBehind(R"(\bdone\b[^;&|#]*(?:[;&|]+\s*)+[^\s;&|#)}])");
  return RE2::PartialMatch(lines[line - 1], kBehind);
}

}  // namespace nlaunch::shell
