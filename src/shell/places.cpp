#include "shell/places.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "base/text.h"

namespace nlaunch::shell {
namespace {

/// The last command of a shell.
const TracedCommand* last_of(const std::vector<TracedCommand>& commands, pid_t shell) {
  const auto found = std::find_if(commands.rbegin(), commands.rend(),
                                  [&](const TracedCommand& one) { return one.shell == shell; });
  return found == commands.rend() ? nullptr : &*found;
}

}  // namespace

void Places::read() {
  if (!trace_file_) {
    auto opened = sys::open_regular_file(own_.trace());
    if (!opened) return;
    trace_file_ = std::move(*opened);
  }
  std::array<char, 65536> room{};
  for (;;) {
    const auto got = sys::read_up_to(trace_file_.get(), room);
    trace_.read({room.data(), got}, own_.folder);
    if (got < room.size()) break;
  }
  note_traced();
}

void Places::forked(pid_t parent, pid_t child, bool in_front) {
  if (script_shell_ == 0) script_shell_ = parent;
  processes_.forked(parent, child, in_front);
}

const Place* Places::of(pid_t pid, pid_t top) const {
  constexpr int kDeepest = 50;
  for (int i = 0; i < kDeepest; ++i) {
    const auto* place = trace_.place_of(pid);
    if (place != nullptr && !place->script.empty()) return place;  // of bash -c: the line that starts it
    const auto parent = processes_.parent_of(pid);
    if (!parent || pid == top) break;
    pid = *parent;
  }
  return nullptr;
}

std::uint32_t Places::line_of(pid_t pid) const {
  const auto* place = of(pid);
  return place == nullptr ? 0 : place->line;
}

bool Places::is_the_script(const std::string& path) const {
  std::error_code error;
  return layer_.unmapped(path).native() == std::filesystem::absolute(script_, error).native();
}

std::optional<Place> Places::last_of_the_script() const {
  const auto& commands = trace_.commands();
  // The first command may be one in the background, which the forked process traces.
  const bool traces = trace_.place_of(script_shell_) != nullptr;
  const auto shell = commands.empty() || traces ? script_shell_ : commands.front().shell;
  const auto* place = trace_.place_of(shell);
  if (place == nullptr) return std::nullopt;
  auto end = *place;
  const auto* last = last_of_script(commands, shell);
  const bool traps = last != nullptr && last != last_of(commands, shell);
  if (traps) end = {last->script, last->line, last->text};
  if (const auto sourcing = line_that_sources(last); sourcing > 0) end.line = sourcing;
  return end;
}

/// The line of the script that sources the file of this command; 0 if the script itself has the command.
std::uint32_t Places::line_that_sources(const TracedCommand* last) const {
  if (last == nullptr || last->script.empty() || is_the_script(last->script)) return 0;
  std::uint32_t line = 0;
  for (const auto& one : trace_.commands()) {
    if (&one > last) break;
    const bool sources = one.text.starts_with("source ") || one.text.starts_with(". ");
    if (one.shell == last->shell && sources && is_the_script(one.script)) line = one.line;
  }
  return line;
}

/// A shell itself traces a command in the foreground before it forks; in the background, or in a pipeline,
/// the forked process does.
bool Places::is_in_foreground(pid_t pid) const {
  const auto parent = processes_.parent_of(pid);
  return parent && trace_.place_of(pid) == nullptr && trace_.place_of(*parent) != nullptr;
}

/// `while kill -0 PID`: a loop until the process has exited.
bool Places::polls(const TracedCommand& command) const {
  static const RE2 kLoop(R"(^\s*(?:while|until)\b)");
  static const RE2 kAsks(R"(kill -0 |ps -p )");
  return RE2::PartialMatch(command.text, kAsks) &&
         RE2::PartialMatch(text_of_line(command.script, command.line), kLoop);
}

std::string Places::text_of_line(const std::string& script, std::uint32_t line) const {
  constexpr std::uint64_t kLargest = 1U << 20U;
  auto& lines = lines_[script];
  if (lines.empty())
    lines = text::split(sys::read_regular_file(layer_.map_to_read(script), kLargest).value_or(""), '\n');
  return line == 0 || line > lines.size() ? "" : lines[line - 1];
}

/// Keeps new trace entries; those of a text get the position of the shell that received it.
void Places::note_traced() {
  const auto& commands = trace_.commands();
  // The last line may continue: a multi-line value.
  if (traced_.size() > 0 && traced_.size() <= commands.size())
    traced_.back().text = commands[traced_.size() - 1].text;
  for (auto i = traced_.size(); i < commands.size(); ++i) {
    auto& one = traced_.emplace_back(commands[i]);
    processes_.traced(one.shell, polls(one) ? "wait" + one.text.substr(one.text.find(' ')) : one.text);
    if (!one.script.empty()) continue;
    one.line_of_text = std::exchange(one.line, 0);
    const auto* place = of(one.shell);
    // Where the first command of the text was traced: the shell may reach other files later.
    const auto text = place == nullptr ? texts_.find(one.shell) : texts_.try_emplace(one.shell, *place).first;
    if (text == texts_.end()) continue;
    one.script = text->second.script;
    one.line = text->second.line;
  }
}

}  // namespace nlaunch::shell
