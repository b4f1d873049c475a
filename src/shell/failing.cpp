#include "shell/failing.h"

#include "base/text.h"
#include "shell/allocation.h"

namespace nlaunch::shell {

bool FailingProgram::is(const RecordedCommand& command) const {
  return command.line == line && command.script == script && call_of(command.argv) == call;
}

bool Failing::is_now(const std::vector<RecordedCommand>& commands) {
  const auto& command = commands.back();
  if (!any() || !request_.failing->is(command)) return false;
  const auto number = command.launcher.value_or(commands.size());
  if (turns_.empty() || turns_.back() != number) turns_.push_back(number);
  const bool is_its_turn = each_time() || turns_.size() == request_.failing->turn + 1;
  if (!first_ && is_its_turn) first_ = number;
  const auto rank = command.task ? command.task->rank : 0U;
  const bool fails = each_time() || (first_ == number && ranks_.insert(rank).second);
  if (fails)
    for (const auto& [descriptor, path] : command.files)
      if (descriptor != 0) outputs_.insert(path);
  return fails;
}

bool Failing::concerns(const Words& query) const {
  static const Options kProcesses{"ps", "pgrep"};
  if (!silent()) return false;
  return kProcesses.contains(program_name(query[0])) ? !server_hangs() : asks_host(query);
}

bool asks_host(const Words& query) {
  static const Options kNetwork{"curl", "wget", "nc", "ncat"};
  const auto name = program_name(query[0]);
  return name == "ray" || (kNetwork.contains(name) && Allocation::names_host(text::join(query, " ")));
}

bool asks_by_http(const Words& query) {
  const auto name = program_name(query[0]);
  return name == "curl" || name == "wget";
}

}  // namespace nlaunch::shell
