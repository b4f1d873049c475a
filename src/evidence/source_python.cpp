#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "evidence/debugger.h"
#include "sys/command.h"

// The stacks of every Python in the tree, by py-spy.
namespace nlaunch::evidence {
namespace {

constexpr auto kWhat = "Python stacks";

/// The last line that says something of an error that Rust reports over many.
std::string first_line(const std::string& text) {
  return text::printable(text::trim(text.substr(0, text.find('\n'))));
}

/// py-spy's text. It reads memory and stops nobody (--nonblocking); a stack that changes under its eyes is
/// read again.
Result<std::string> dump(const std::string& tool, pid_t pid, const CollectContext& context) {
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
    why = first_line(said->err);
  }
  return failure("evidence.py-spy", "py-spy: {}", why);
}

}  // namespace

Found collect_python_stacks(const CollectContext& context) {
  Found found;
  std::string all;
  std::string tool;
  for (const auto& process : context.tree) {
    if (!process.python || process.state == 'X' || process.state == 'Z') continue;
    if (tool.empty()) tool = find_tool("py-spy", process.pid);
    if (tool.empty()) {
      found.missing.push_back(
          {kWhat, "py-spy is neither on PATH nor in the environment of the process", "pip install py-spy"});
      return found;
    }
    const auto text = dump(tool, process.pid, context);
    if (text) {
      all += *text + "\n";
    } else {
      found.missing.push_back(
          refused(fmt::format("{} of pid {}", kWhat, process.pid), text.error().items().front().message));
    }
  }
  constexpr auto kFile = "python-stacks.txt";
  if (!all.empty() && context.write(kFile, all)) found.got.emplace_back(kFile);
  return found;
}

}  // namespace nlaunch::evidence
