#include "evidence/readers/stacks.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/text.h"

namespace nlaunch::evidence {
namespace {

template <class Number = int>
Number number(std::string_view text) {
  Number value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// "Process 4711: python train.py" belongs to 4711.
std::optional<pid_t> process_of(std::string_view line) {
  constexpr std::string_view kProcess = "Process ";
  if (!line.starts_with(kProcess) || line.find(':') == std::string_view::npos) return std::nullopt;
  const auto pid = number<pid_t>(line.substr(kProcess.size()));
  return pid > 0 ? std::optional(pid) : std::nullopt;
}

/// "    all_reduce (torch/distributed/distributed_c10d.py:1541)"
Frame python_frame(std::string_view line) {
  line = text::trim(line);
  const auto open = line.rfind(" (");
  const auto colon = line.rfind(':');
  if (open == std::string_view::npos || !line.ends_with(')')) return {std::string(line), "", 0};
  if (colon == std::string_view::npos || colon < open)
    return {std::string(line.substr(0, open)), std::string(line.substr(open + 2, line.size() - open - 3)), 0};
  return {std::string(line.substr(0, open)), std::string(line.substr(open + 2, colon - open - 2)),
          number(line.substr(colon + 1))};
}

/// eu-stack's " - /lib/x.so" and gdb's " from /lib/x.so" after a function.
Frame without_module(std::string_view line) {
  for (const std::string_view mark : {" - /", " from /"}) {
    const auto at = line.rfind(mark);
    if (at == std::string_view::npos) continue;
    return {std::string(text::trim(line.substr(0, at))), std::string(line.substr(at + mark.size() - 1)), 0};
  }
  if (line.starts_with("- /")) return {"", std::string(line.substr(2)), 0};
  return {std::string(line), "", 0};
}

/// "#2  0x00007fb4 in c10d::Work::wait(...) () from /lib/x.so", "#0  pthread_cond_wait (cond=0x1) at x.c:3",
/// "#1  0x00007fb42df4e5d8 pthread_cond_wait@@GLIBC_2.3.2"
Frame native_frame(std::string_view line) {
  line = text::trim(line.substr(std::min(line.find(' '), line.size())));
  if (line.starts_with("0x")) {
    const auto blank = line.find(' ');
    line = blank == std::string_view::npos ? std::string_view() : text::trim(line.substr(blank));
    if (line.starts_with("in ")) line = text::trim(line.substr(3));
  }
  return without_module(line);
}

/// Threads of the process that is being read; the one that counts goes to `stacks` at its end.
struct Reader {
  enum class Of { python, eu_stack, gdb };

  std::map<pid_t, Stack> stacks;
  pid_t pid = 0;
  Stack current;
  bool current_is_main = false;
  bool have_main = false;
  Of of = Of::python;

  void end_thread() {
    if (pid != 0 && !current.empty() && (current_is_main || !have_main)) {
      // gdb prints the main thread last.
      if (current_is_main || of == Of::gdb || !stacks.contains(pid)) stacks[pid] = current;
      have_main = have_main || current_is_main;
    }
    current.clear();
    current_is_main = false;
  }
  void begin_process(pid_t of_pid) {
    end_thread();
    pid = of_pid;
    have_main = false;
  }
};

}  // namespace

std::string Frame::str() const {
  if (file.empty()) return function;
  return line > 0 ? fmt::format("{} ({}:{})", function, file, line) : fmt::format("{} ({})", function, file);
}

std::map<pid_t, Stack> python_stacks(std::string_view text) {
  Reader reader;
  for (const auto& line : text::split(text, '\n')) {
    if (const auto pid = process_of(line)) {
      reader.begin_process(*pid);
    } else if (line.starts_with("Thread ")) {
      reader.end_thread();
      reader.current_is_main = line.find("\"MainThread\"") != std::string::npos;
    } else if (line.starts_with("    ") && reader.pid != 0) {
      reader.current.push_back(python_frame(line));
    }
  }
  reader.end_thread();
  return std::move(reader.stacks);
}

std::map<pid_t, Stack> native_stacks(std::string_view text) {
  Reader reader;
  for (const auto& line : text::split(text, '\n')) {
    if (const auto pid = process_of(line)) {
      reader.begin_process(*pid);
    } else if (line.starts_with("TID ")) {
      reader.end_thread();
      reader.of = Reader::Of::eu_stack;
      reader.current_is_main = number<pid_t>(std::string_view(line).substr(4)) == reader.pid;
    } else if (line.starts_with("Thread ") && line.find("LWP ") != std::string::npos) {
      reader.end_thread();
      reader.of = Reader::Of::gdb;
      reader.current_is_main =
          number<pid_t>(std::string_view(line).substr(line.find("LWP ") + 4)) == reader.pid;
    } else if (line.starts_with("#") && reader.pid != 0) {
      reader.current.push_back(native_frame(line));
    }
  }
  reader.end_thread();
  return std::move(reader.stacks);
}

}  // namespace nlaunch::evidence
