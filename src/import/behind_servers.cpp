#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "base/text.h"
#include "import/job.h"

namespace nlaunch::import {
namespace {

class BehindServers {
 public:
  explicit BehindServers(Job& job) : job_(job) {}

  /// Removes the tasks of a part that reach it only after a server before it has exited.
  bool keep_tasks(std::size_t index) {
    auto& part = job_.out.parts[index];
    for (std::size_t i = 0; i < job_.out.parts.size() && !part.tasks.empty(); ++i) {
      const auto& server = job_.out.parts[i];
      if (i == index || server.tasks.empty() || !never_ends(server)) continue;
      if (i > index && !job_.in_one_step(part, server)) continue;
      const auto is_behind = [&](const shell::Task& task) {
        return !job_.in_one_step(part, server) ||
               (std::ranges::find(server.tasks, task.rank, &shell::Task::rank) != server.tasks.end() &&
                command_of(server, task.rank) < command_of(part, task.rank));
      };
      if (std::ranges::none_of(part.tasks, is_behind)) continue;
      const bool all = std::ranges::all_of(part.tasks, is_behind);
      job_.remark(
          part.line,
          fmt::format("`{}` is not imported{}: it comes after `{}` (line {}), which does not exit before the "
                      "job ends",
                      text::printable(text::shell_join(part.argv)), all ? "" : " on all nodes",
                      text::printable(text::shell_join(server.argv)), server.line));
      part = without_tasks(part, is_behind);
    }
    return !part.tasks.empty();
  }

 private:
  /// A server in the foreground: what follows runs only after it exits, which is when the job ends.
  [[nodiscard]] bool never_ends(const Part& part) const {
    const bool others =
        part.inner.size() > 1 || (!part.inner.empty() && job_.recording.commands[part.inner[0]].background);
    const bool limited = std::ranges::any_of(
        part.wrapper, [](const auto& word) { return shell::program_name(word) == "timeout"; });
    // Under job control, background programs cannot be recognized.
    static const RE2 kJobControl(R"(^set (-o monitor|-[a-zA-Z]*m))");
    const bool jobs = std::ranges::any_of(
        job_.recording.traced, [](const auto& one) { return RE2::PartialMatch(one.text, kJobControl); });
    if (part.background || others || limited || jobs) return false;
    const auto work = work_of(part.program).work;
    if (work == Work::ray_head || work == Work::ray_worker) return shell::has(part.program, "--block");
    const auto name = shell::program_name(part.program[0]);
    const bool own_script =
        std::ranges::any_of(part.program, [](const auto& word) { return word.ends_with(".py"); });
    const bool other_verb = (name == "lmdeploy" || name == "sglang") && !shell::has(part.program, "serve");
    return work == Work::engine && !own_script && !other_verb;
  }

  /// The command of a part that a task, or the task that represents it, runs.
  static std::size_t command_of(const Part& part, std::uint32_t rank) {
    for (std::size_t i = 0; i < part.commands.size(); ++i)
      if (part.tasks[part.recorded[i]].rank == rank) return part.commands[i];
    return part.commands.back();
  }

  template <class IsLeftOut>
  Part without_tasks(const Part& part, const IsLeftOut& is_left_out) {
    Part rest = part;
    rest.commands.clear();
    rest.recorded.clear();
    rest.lines.clear();
    rest.tasks.clear();
    std::vector<std::size_t> places;
    for (const auto& task : part.tasks) {
      places.push_back(rest.tasks.size());
      if (!is_left_out(task)) rest.tasks.push_back(task);
    }
    for (std::size_t i = 0; i < part.commands.size(); ++i) {
      const auto task = part.recorded[i];
      if (is_left_out(part.tasks[task])) {
        job_.out.became[part.commands[i]] = "left out: it comes after a server";
        continue;
      }
      rest.commands.push_back(part.commands[i]);
      rest.recorded.push_back(places[task]);
      rest.lines.push_back(part.lines[i]);
    }
    if (!rest.commands.empty()) return rest;
    for (const auto command : all_commands_of(part))
      job_.out.became[command] = "left out: it comes after a server";
    rest = part;
    rest.tasks.clear();
    return rest;
  }

  Job& job_;
};

}  // namespace

bool keep_tasks_before_servers(Job& job, std::size_t part) {
  return BehindServers(job).keep_tasks(part);
}

}  // namespace nlaunch::import
