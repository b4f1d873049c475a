#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "evidence/debugger.h"
#include "sys/command.h"
#include "sys/proc.h"

// The stacks of all threads of every program in the tree, by a debugger. It stops the process meanwhile:
// eu-stack for some 30 ms, gdb for more than a second.
namespace nlaunch::evidence {
namespace {

using namespace std::chrono_literals;

constexpr auto kWhat = "native stacks";
/// A process is not held up for longer, whatever its debugger does. Several of gdb at once on a busy machine
/// need seconds each.
constexpr Duration kLongestStop = 15s;

struct Tool {
  std::string program;
  std::vector<std::string> arguments;
};

Tool find_debugger(pid_t pid) {
  if (auto program = find_tool("eu-stack", pid); !program.empty()) return {program, {"-m", "-p"}};
  if (auto program = find_tool("gdb", pid); !program.empty()) {
    return {program,
            {"-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "thread apply all bt", "-p"}};
  }
  return {};
}

/// Why nobody should attach to it now; empty when one may. A SIGSTOP to a process in uninterruptible sleep
/// would stop it when it wakes, and one that is stopped must stay so.
std::string why_not(pid_t pid) {
  const auto info = sys::process_info(pid);
  if (!info) return "it has ended";
  switch (info->state) {
    case 'T':
      return "it is stopped (state T), and left so";
    case 't':
      return "another debugger holds it (state t)";
    case 'D':
      return "it is in uninterruptible sleep (state D), where no debugger gets at it";
    case 'Z':
      return "it has ended (state Z)";
    default:
      return {};
  }
}

Result<std::string> stacks(const Tool& tool, pid_t pid, const CollectContext& context) {
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
  if (said->timed_out) return failure("evidence.debugger", "{} did not end in time", tool.program);
  // eu-stack ends with 1 when one frame of one thread could not be read.
  if (said->out.find("#0") == std::string::npos) {
    return failure("evidence.debugger", "{}: {}", tool.program, text::printable(text::trim(said->err)));
  }
  return std::move(said->out);
}

}  // namespace

Found collect_native_stacks(const CollectContext& context) {
  Found found;
  std::string all;
  Tool tool;
  for (const auto& process : context.tree) {
    if (!process.program) continue;
    const auto what = fmt::format("{} of pid {}", kWhat, process.pid);
    if (tool.program.empty()) tool = find_debugger(process.pid);
    if (tool.program.empty()) {
      found.missing.push_back(
          {kWhat, "neither eu-stack nor gdb is on PATH", "apt install elfutils (or gdb)"});
      return found;
    }
    if (const auto why = why_not(process.pid); !why.empty()) {
      found.missing.push_back({what, why, ""});
      continue;
    }
    if (context.left().count() == 0) {
      found.missing.push_back({what, "no time was left", ""});
      continue;
    }
    const auto text = stacks(tool, process.pid, context);
    if (text) {
      all += fmt::format("Process {}: {}\n{}\n", process.pid, process.command, *text);
    } else {
      found.missing.push_back(refused(what, text.error().items().front().message));
    }
  }
  constexpr auto kFile = "native-stacks.txt";
  if (!all.empty() && context.write(kFile, all)) found.got.emplace_back(kFile);
  return found;
}

}  // namespace nlaunch::evidence
