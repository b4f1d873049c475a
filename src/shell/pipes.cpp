#include "shell/pipes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <re2/re2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/text.h"
#include "shell/words.h"
#include "sys/files.h"

namespace nlaunch::shell {
namespace {

/// "a  b" for "a $(x (y) z) b".
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

/// True if nothing has been read from its standard input, a file.
bool is_at_its_begin(pid_t pid) {
  constexpr std::uint64_t kLargest = 4096;
  const auto info = sys::read_regular_file(fmt::format("/proc/{}/fdinfo/0", pid), kLargest);
  return info && info->starts_with("pos:\t0\n");
}

/// True if its standard input, a pipe, contains only this line, repeated.
bool holds_only(pid_t pid, std::string_view line) {
  const sys::UniqueFd pipe(
      ::open(fmt::format("/proc/{}/fd/0", pid).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::array<char, 65536> room{};
  const auto got = pipe.get() < 0 ? -1 : ::read(pipe.get(), room.data(), room.size());
  for (std::size_t at = 0; at < static_cast<std::size_t>(std::max<ssize_t>(got, 0)); ++at)
    if (room[at] != line[at % line.size()]) return false;
  return pipe.get() >= 0;
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
    writers_[out->second] = start.argv;
  }
  if (in == start.files.end() || !in->second.starts_with("pipe:")) return;
  // `cat server.log | grep -q ready` watches a log.
  static const Options kShowsFiles{"cat", "tail", "head"};
  const auto writer = writers_.find(in->second);
  const auto name = writer == writers_.end() ? std::string() : program_name(writer->second[0]);
  const bool watches = kShowsFiles.contains(name) || tells_of_machine(name);
  if (only_asks(start) && !watches) return;
  passed_on_[in->second] = out == start.files.end() ? "" : out->second;
}

Words Pipes::writer_to(const ProgramStart& start) const {
  const auto in = start.files.find(STDIN_FILENO);
  const auto writer = in == start.files.end() ? writers_.end() : writers_.find(in->second);
  return writer == writers_.end() ? Words() : writer->second;
}

std::optional<ProgramInput> Pipes::input_of(const ProgramStart& start) const {
  const auto in = start.files.find(STDIN_FILENO);
  if (in == start.files.end() || of_programs_.contains(in->second)) return std::nullopt;
  if (in->second.starts_with('/'))
    return is_at_its_begin(start.pid) ? std::optional(ProgramInput{.text = in->second, .is_file = true})
                                      : std::nullopt;
  if (const auto line = repeated_.find(in->second); line != repeated_.end())
    return holds_only(start.pid, line->second + "\n")
               ? std::optional(ProgramInput{.text = line->second, .repeats = true})
               : std::nullopt;
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

bool Pipes::ends_in_file(std::string pipe, std::string_view own) const {
  constexpr int kLongest = 20;
  for (int i = 0; i < kLongest && pipe.starts_with("pipe:"); ++i) {
    const auto next = passed_on_.find(pipe);
    if (next == passed_on_.end()) return false;
    pipe = next->second;
  }
  return pipe.starts_with('/') && pipe != "/dev/null" && !pipe.starts_with(own);
}

bool tells_of_machine(const std::string& program) {
  static const Options kNames{"hostname",    "module", "ml",    "scontrol",        "nvidia-smi", "rocm-smi",
                              "pip",         "pip3",   "conda", "mamba",           "nvcc",       "docker",
                              "podman",      "mount",  "lspci", "ibstat",          "ip",         "ray",
                              "ibv_devinfo", "hf",     "uv",    "huggingface-cli", "git"};
  return kNames.contains(program);
}

namespace {

/// `jq -e '.data[0].id'`
bool tells_by_its_code(const Words& jq) {
  return std::ranges::any_of(jq, [](const auto& word) {
    return word == "--exit-status" ||
           (word.size() > 1 && word[0] == '-' && word[1] != '-' && word.contains('e'));
  });
}

}  // namespace

bool only_asks(const ProgramStart& start) {
  const auto name = program_name(start.path);
  if (name == "jq") return tells_by_its_code(start.argv) && !start.file(STDOUT_FILENO).starts_with("pipe:");
  if (start.argv.empty() || !name.ends_with("grep")) return false;
  const auto out = start.files.find(STDOUT_FILENO);
  return (out != start.files.end() && out->second == "/dev/null") ||
         std::ranges::any_of(start.argv, [](const auto& word) {
           return word == "--quiet" || word == "--silent" ||
                  (word.size() > 1 && word[0] == '-' && word[1] != '-' && word.contains('q'));
         });
}

bool has_own_input(const ProgramStart& start, std::optional<pid_t> shell) {
  const auto in = start.files.find(STDIN_FILENO);
  if (in == start.files.end() || in->second == "/dev/null") return false;
  struct stat own {};
  struct stat of_shell {};
  const auto look = [](pid_t pid, struct stat& info) {
    return ::stat(fmt::format("/proc/{}/fd/0", pid).c_str(), &info) == 0;
  };
  return !shell || !look(start.pid, own) || !look(*shell, of_shell) || own.st_dev != of_shell.st_dev ||
         own.st_ino != of_shell.st_ino;
}

std::optional<std::string> here_document(const ProgramStart& start) {
  if (!start.files.at(STDIN_FILENO).starts_with("pipe:")) return std::nullopt;
  const sys::UniqueFd pipe(
      ::open(fmt::format("/proc/{}/fd/0", start.pid).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (pipe.get() < 0) return std::nullopt;
  constexpr std::size_t kLargest = 256U << 10U;  // the writer still writes more
  std::string text;
  std::array<char, 65536> room{};
  while (text.size() <= kLargest) {
    const auto got = ::read(pipe.get(), room.data(), room.size());
    if (got < 0) return std::nullopt;  // the other end is still open
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

bool prints_into_own_pipe(const ProgramStart& start, std::optional<pid_t> shell) {
  const auto out = start.files.find(STDOUT_FILENO);
  if (out == start.files.end() || !out->second.starts_with("pipe:") || !shell) return false;
  std::error_code error;
  const auto above = std::filesystem::read_symlink(fmt::format("/proc/{}/fd/1", *shell), error);
  return !error && above.native() != out->second;
}

}  // namespace nlaunch::shell
