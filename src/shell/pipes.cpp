#include "shell/pipes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <re2/re2.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/text.h"
#include "shell/words.h"
#include "sys/files.h"

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
  if (out != start.files.end() && out->second.starts_with("pipe:")) {
    const auto name = program_name(start.path);
    if (name == "yes")
      repeated_[out->second] = start.argv.size() > 1 ? text::join(rest(start.argv, 1), " ") : "y";
    else if (name != "cat" || in == start.files.end() || in->second.starts_with("pipe:"))
      of_programs_.insert(out->second);
  }
  if (in == start.files.end() || !in->second.starts_with("pipe:")) return;
  passed_on_[in->second] = out == start.files.end() ? "" : out->second;
}

std::optional<ProgramInput> Pipes::input_of(const ProgramStart& start) const {
  const auto in = start.files.find(STDIN_FILENO);
  if (in == start.files.end() || of_programs_.contains(in->second)) return std::nullopt;
  if (in->second.starts_with('/')) return ProgramInput{.text = in->second, .is_file = true};
  if (const auto line = repeated_.find(in->second); line != repeated_.end())
    return ProgramInput{.text = line->second, .repeats = true};
  auto text = here_document(start);
  return text ? std::optional(ProgramInput{.text = std::move(*text)}) : std::nullopt;
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

bool has_own_input(const ProgramStart& start, std::optional<pid_t> shell) {
  const auto in = start.files.find(STDIN_FILENO);
  if (in == start.files.end() || in->second == "/dev/null") return false;
  std::error_code error;
  return !shell || std::filesystem::read_symlink(fmt::format("/proc/{}/fd/0", *shell), error) != in->second;
}

std::optional<std::string> here_document(const ProgramStart& start) {
  if (!start.files.at(STDIN_FILENO).starts_with("pipe:")) return std::nullopt;
  const sys::UniqueFd pipe(
      ::open(fmt::format("/proc/{}/fd/0", start.pid).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (pipe.get() < 0) return std::nullopt;
  constexpr std::size_t kLargest = 256U << 10U;  // who writes more still does so
  std::string text;
  std::array<char, 65536> room{};
  while (text.size() <= kLargest) {
    const auto got = ::read(pipe.get(), room.data(), room.size());
    if (got < 0) return std::nullopt;  // somebody still has its other end
    if (got == 0) return text;
    text.append(room.data(), static_cast<std::size_t>(got));
  }
  return std::nullopt;
}

bool only_shows(std::string line) {
  static const RE2 kHarmless(R"(\s(2>&1|&?2?>\s*/dev/null))");
  RE2::GlobalReplace(&line, kHarmless, "");
  static const RE2 kShows(R"(^\s*(echo|printf\s+["'%])[^|>;&]*$)");
  return RE2::PartialMatch(without_substitutions(line), kShows);
}

}  // namespace nlaunch::shell
