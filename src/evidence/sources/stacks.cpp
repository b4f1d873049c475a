#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/registry.h"
#include "base/text.h"
#include "evidence/source.h"
#include "sys/command.h"
#include "sys/files.h"
#include "sys/native_stacks.h"
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

// The stacks of all threads of every program in the tree.

constexpr auto kNativeStacks = "native stacks";

std::string text_of(const ProcessState& process, const std::vector<sys::ThreadStack>& stacks) {
  auto text = fmt::format("Process {}: {}\n", process.pid, process.command);
  for (const auto& stack : stacks) {
    text += fmt::format("TID {} ({}):\n", stack.thread, text::printable(stack.name));
    std::size_t number = 0;
    for (const auto& call : stack.calls)
      text +=
          fmt::format("#{:<3}{:#018x}{}{}{}{}\n", number++, call.address, call.function.empty() ? "" : " ",
                      call.function, call.file.empty() ? "" : " - ", call.file);
    if (!stack.why_not.empty()) text += fmt::format("({})\n", stack.why_not);
  }
  return text + "\n";
}

Found collect_native_stacks(const CollectContext& context) {
  Found found;
  std::string all;
  for (const auto& process : context.tree) {
    if (!process.program) continue;
    const auto what = fmt::format("{} of pid {}", kNativeStacks, process.pid);
    const auto stacks = sys::native_stacks(process.pid, context.deadline);
    if (stacks)
      all += text_of(process, *stacks);
    else
      found.missing.push_back(refused(what, stacks.error().first_message()));
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
