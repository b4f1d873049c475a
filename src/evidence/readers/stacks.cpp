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

/// "#1  0x00007fb42df4e5d8 c10d::Work::wait(...) - /lib/x.so", "#2  0x00007fb42df4e5d8 - /lib/x.so"
Frame native_frame(std::string_view line) {
  line = text::trim(line.substr(std::min(line.find(' '), line.size())));
  if (line.starts_with("0x")) line = line.substr(std::min(line.find(' '), line.size()));
  constexpr std::string_view kFile = " - /";
  const auto file = line.rfind(kFile);
  if (file == std::string_view::npos) return {std::string(text::trim(line)), "", 0};
  return {std::string(text::trim(line.substr(0, file))), std::string(line.substr(file + kFile.size() - 1)),
          0};
}

/// Threads of the process that is being read; the one that counts goes to `stacks` at its end.
struct Reader {
  std::map<pid_t, Stack> stacks;
  pid_t pid = 0;
  Stack current;
  bool current_is_main = false;
  bool have_main = false;
  bool only_main = false;  ///< no other thread stands for it

  void end_thread() {
    if (pid != 0 && !current.empty() && (current_is_main || (!have_main && !only_main))) {
      if (current_is_main || !stacks.contains(pid)) stacks[pid] = current;
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
  reader.only_main = true;
  for (const auto& line : text::split(text, '\n')) {
    if (const auto pid = process_of(line)) {
      reader.begin_process(*pid);
    } else if (line.starts_with("TID ")) {
      reader.end_thread();
      reader.current_is_main = number<pid_t>(std::string_view(line).substr(4)) == reader.pid;
    } else if (line.starts_with("#") && reader.pid != 0) {
      reader.current.push_back(native_frame(line));
    }
  }
  reader.end_thread();
  return std::move(reader.stacks);
}

}  // namespace nlaunch::evidence
