#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/registry.h"
#include "base/text.h"
#include "evidence/source.h"
#include "sys/command.h"
#include "sys/files.h"
#include "sys/proc.h"
#include "sys/spawn.h"

namespace nlaunch::evidence {
namespace {

/// Whether only ancestors can attach: 1 and above (Documentation/admin-guide/LSM/Yama.rst).
bool yama_restricts() {
  constexpr std::uint64_t kSmall = 64;
  const auto scope = sys::read_regular_file("/proc/sys/kernel/yama/ptrace_scope", kSmall);
  return scope && text::trim(*scope) != "0";
}

/// Searches for a program where the process itself would find it, in its virtual environment and then on its
/// PATH, and last on this process's own. Empty: not found.
std::string find_tool(const std::string& name, pid_t pid) {
  const auto its = sys::initial_environment(pid);
  const auto venv = sys::env_value(its, "VIRTUAL_ENV");
  const auto own = sys::own_environment();
  const auto path = fmt::format("{}{}{}:{}", venv, venv.empty() ? "" : "/bin:", sys::env_value(its, "PATH"),
                                sys::env_value(own, "PATH"));
  return sys::find_program(name, path, "").value_or("");
}

/// Why the kernel does not let this process inspect `pid`, and what would allow it; for a tool that failed
/// with `complaint`.
Missing refused(const std::string& what, const std::string& complaint) {
  const auto lower = text::lower(complaint);
  const bool permission = lower.find("permission denied") != std::string::npos ||
                          lower.find("not permitted") != std::string::npos;
  if (permission && yama_restricts()) {
    return {what, complaint,
            "sudo sysctl kernel.yama.ptrace_scope=0 allows it; so does collecting the evidence from within "
            "the run"};
  }
  return {what, complaint, permission ? "only the user of the process, or root, can inspect it" : ""};
}

// The stacks of every Python in the tree, by py-spy.

constexpr auto kPythonStacks = "Python stacks";

/// The last line with content, of an error that Rust prints over several lines.
std::string first_line_of(const std::string& text) {
  return text::printable(text::trim(text.substr(0, text.find('\n'))));
}

/// py-spy's text. It reads memory and stops nothing (--nonblocking); a stack that changes while it is read is
/// read again.
Result<std::string> dump_python(const std::string& tool, pid_t pid, const CollectContext& context) {
  constexpr int kTries = 5;
  std::string why;
  for (int i = 0; i < kTries && context.left().count() > 0; ++i) {
    sys::SpawnRequest request;
    request.argv = {tool, "dump", "--nonblocking", "--pid", std::to_string(pid)};
    request.env = sys::own_environment();
    const auto said = sys::run_command(std::move(request), context.left());
    if (!said) return std::unexpected(said.error());
    if (said->timed_out) return failure("evidence.py-spy", "py-spy did not answer in time");
    if (said->status.ok()) return said->out;
    why = first_line_of(said->err);
  }
  return failure("evidence.py-spy", "py-spy: {}", why);
}

Found collect_python_stacks(const CollectContext& context) {
  Found found;
  std::string all;
  std::string tool;
  for (const auto& process : context.tree) {
    if (!process.python || process.state == 'X' || process.state == 'Z') continue;
    if (tool.empty()) tool = find_tool("py-spy", process.pid);
    if (tool.empty()) {
      found.missing.push_back({kPythonStacks,
                               "py-spy is neither on PATH nor in the environment of the process",
                               "pip install py-spy"});
      return found;
    }
    const auto text = dump_python(tool, process.pid, context);
    if (text) {
      all += *text + "\n";
    } else {
      found.missing.push_back(
          refused(fmt::format("{} of pid {}", kPythonStacks, process.pid), text.error().first_message()));
    }
  }
  constexpr auto kFile = "python-stacks.txt";
  if (!all.empty() && context.write(kFile, all)) found.got.emplace_back(kFile);
  return found;
}

const Registered<Source> python_stacks_source{{
    .order = 20,
    .name = "Python stacks",
    .of = Source::Of::process,
    .bound = std::chrono::seconds(10),
    .lane = 0,
    .collect = collect_python_stacks,
}};

// The stacks of all threads of every program in the tree, by a debugger. It stops the process meanwhile:
// eu-stack for some 30 ms, gdb for more than a second.

using namespace std::chrono_literals;

constexpr auto kNativeStacks = "native stacks";
/// A process is not stopped for longer, whatever its debugger does. Several instances of gdb at the same time
/// on a busy machine need seconds each.
constexpr Duration kLongestStop = 15s;

struct DebuggerTool {
  std::string program;
  std::vector<std::string> arguments;
};

DebuggerTool find_debugger(pid_t pid) {
  if (auto program = find_tool("eu-stack", pid); !program.empty()) return {program, {"-m", "-p"}};
  if (auto program = find_tool("gdb", pid); !program.empty()) {
    return {program,
            {"-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "thread apply all bt", "-p"}};
  }
  return {};
}

/// Why no debugger should attach to it now; empty if one can. A SIGSTOP to a process in uninterruptible sleep
/// would stop it when it wakes, and one that is stopped must stay so.
std::string why_not_attach(pid_t pid) {
  const auto info = sys::process_info(pid);
  if (!info) return "it has exited";
  switch (info->state) {
    case 'T':
      return "it is stopped (state T), and was left stopped";
    case 't':
      return "another debugger holds it (state t)";
    case 'D':
      return "it is in uninterruptible sleep (state D), where no debugger can attach";
    case 'Z':
      return "it has exited (state Z)";
    default:
      return {};
  }
}

Result<std::string> native_stacks_of(const DebuggerTool& tool, pid_t pid, const CollectContext& context) {
  sys::SpawnRequest request;
  request.argv = {tool.program};
  request.argv.insert(request.argv.end(), tool.arguments.begin(), tool.arguments.end());
  request.argv.push_back(std::to_string(pid));
  request.env = sys::own_environment();
  context.thaw.freezes(pid);
  auto said = sys::run_command(std::move(request), std::min(context.left(), kLongestStop));
  if (said && !said->timed_out && said->status.ok()) {
    context.thaw.let_go(pid);
  } else {
    context.thaw.thaw(pid);
  }
  if (!said) return std::unexpected(said.error());
  if (said->timed_out) return failure("evidence.debugger", "{} did not finish in time", tool.program);
  // eu-stack exits with 1 if one frame of one thread could not be read.
  if (said->out.find("#0") == std::string::npos) {
    return failure("evidence.debugger", "{}: {}", tool.program, text::printable(text::trim(said->err)));
  }
  return std::move(said->out);
}

Found collect_native_stacks(const CollectContext& context) {
  Found found;
  std::string all;
  DebuggerTool tool;
  for (const auto& process : context.tree) {
    if (!process.program) continue;
    const auto what = fmt::format("{} of pid {}", kNativeStacks, process.pid);
    if (tool.program.empty()) tool = find_debugger(process.pid);
    if (tool.program.empty()) {
      found.missing.push_back(
          {kNativeStacks, "neither eu-stack nor gdb is on PATH", "apt install elfutils (or gdb)"});
      return found;
    }
    if (const auto why = why_not_attach(process.pid); !why.empty()) {
      found.missing.push_back({what, why, ""});
      continue;
    }
    if (context.left().count() == 0) {
      found.missing.push_back({what, "no time left", ""});
      continue;
    }
    const auto text = native_stacks_of(tool, process.pid, context);
    if (text) {
      all += fmt::format("Process {}: {}\n{}\n", process.pid, process.command, *text);
    } else {
      found.missing.push_back(refused(what, text.error().first_message()));
    }
  }
  constexpr auto kFile = "native-stacks.txt";
  if (!all.empty() && context.write(kFile, all)) found.got.emplace_back(kFile);
  return found;
}

const Registered<Source> native_stacks_source{{
    .order = 30,
    .name = "native stacks",
    .of = Source::Of::process,
    .bound = std::chrono::seconds(20),
    .lane = 0,
    .collect = collect_native_stacks,
}};

}  // namespace
}  // namespace nlaunch::evidence
