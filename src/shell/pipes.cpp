#include "shell/pipes.h"

#include <re2/re2.h>
#include <unistd.h>

#include <cstddef>
#include <string_view>

namespace nlaunch::shell {
namespace {

/// "a  b" of "a $(x (y) z) b".
std::string without_substitutions(std::string_view line) {
  std::string out;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool begins = line.substr(i).starts_with("$(");
    if (begins || (depth > 0 && line[i] == '(')) ++depth;
    if (begins) ++i;
    if (depth == 0) out += line[i];
    if (depth > 0 && line[i] == ')') --depth;
  }
  return out;
}

}  // namespace

void Pipes::note(const ProgramStart& start) {
  const auto in = start.files.find(STDIN_FILENO);
  const auto out = start.files.find(STDOUT_FILENO);
  if (in == start.files.end() || !in->second.starts_with("pipe:")) return;
  passed_on_[in->second] = out == start.files.end() ? "" : out->second;
}

bool Pipes::is_read_by_shell(std::string pipe) const {
  constexpr int kLongest = 20;
  for (int i = 0; i < kLongest && pipe.starts_with("pipe:"); ++i) {
    const auto next = passed_on_.find(pipe);
    if (next == passed_on_.end()) return true;
    pipe = next->second;
  }
  return false;
}

bool only_shows(std::string line) {
  static const RE2 kHarmless(R"(\s(2>&1|&?2?>\s*/dev/null))");
  RE2::GlobalReplace(&line, kHarmless, "");
  static const RE2 kShows(R"(^\s*(echo|printf\s+["'%])[^|>;&]*$)");
  return RE2::PartialMatch(without_substitutions(line), kShows);
}

}  // namespace nlaunch::shell
