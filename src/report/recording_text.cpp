#include "report/recording_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ranges>

#include "base/text.h"
#include "shell/words.h"

namespace nlaunch::report {
namespace {

using shell::Fate;
using shell::RecordedCommand;
using shell::Recording;

/// Commands that differ by their task alone.
struct Group {
  const RecordedCommand* command;
  std::vector<shell::Task> tasks;
};

std::vector<Group> groups_of(const Recording& recording) {
  std::vector<Group> groups;
  for (const auto& command : recording.commands) {
    const auto same = std::ranges::find_if(groups, [&](const Group& group) {
      return command.task && !group.tasks.empty() && group.command->launcher == command.launcher &&
             group.command->line == command.line && group.command->argv == command.argv;
    });
    if (same == groups.end()) {
      groups.push_back({&command, {}});
      if (command.task) groups.back().tasks.push_back(*command.task);
    } else {
      same->tasks.push_back(*command.task);
    }
  }
  return groups;
}

std::string where(const Group& group) {
  if (group.tasks.empty()) return group.command->background ? "in the background" : "";
  constexpr std::size_t kShown = 4;
  std::vector<std::string> ranks;
  for (const auto& task : group.tasks | std::views::take(kShown))
    ranks.push_back(fmt::format("{} ({})", task.rank, task.node));
  return fmt::format("rank (node) {}{}", text::join(ranks, ", "), group.tasks.size() > kShown ? ", …" : "");
}

std::string_view word_of(Fate fate) {
  switch (fate) {
    case Fate::recorded:
      return "starts";
    case Fate::answered:
      return "asks";
    case Fate::launcher:
      break;
  }
  return "launches";
}

class RecordingText {
 public:
  RecordingText(const Recording& recording, std::string script, const Masker& masker, const Paint& paint)
      : recording_(recording), script_(std::move(script)), masker_(masker), paint_(paint) {}

  [[nodiscard]] std::string str(const shell::Allocation& allocation) const {
    const auto groups = groups_of(recording_);
    Table table({"line", "", "where", "command"});
    for (const auto& group : groups)
      table.add({place(*group.command), std::string(word_of(group.command->fate)), where(group),
                 line(group.command->argv)});
    auto out = fmt::format(
        "{}: {} of {} and {} each\n", text::printable(script_), text::count(allocation.nodes, "node"),
        text::count(allocation.gpus_per_node, "GPU"), text::count(allocation.tasks_per_node, "task"));
    out += groups.empty() ? "It starts no program.\n" : "\n" + table.str(paint_) + "\n";
    for (const auto& sentence : sentences()) out += sentence + "\n";
    return out;
  }

 private:
  [[nodiscard]] std::string line(const std::vector<std::string>& argv) const {
    return text::printable(masker_.mask(text::shell_join(argv)));
  }

  [[nodiscard]] std::string place(const RecordedCommand& command) const {
    if (command.line == 0) return "";
    const auto file = shell::program_name(command.script);
    return file == shell::program_name(script_) ? std::to_string(command.line)
                                                : fmt::format("{}:{}", text::printable(file), command.line);
  }

  /// What the table does not say.
  [[nodiscard]] std::vector<std::string> sentences() const {
    std::vector<std::string> all;
    for (const auto& command : recording_.commands) {
      if (!command.output_is_read) continue;
      all.push_back(
          fmt::format("Line {} reads what this prints, which is not known, since it did not run: {}",
                      place(command), line(command.argv)));
    }
    if (!recording_.not_here.empty())
      all.push_back(fmt::format("Not on this machine, and taken as empty: {}",
                                text::printable(text::join(recording_.not_here, ", "))));
    if (!recording_.stopped.empty())
      all.push_back(
          fmt::format("The script was stopped: it has reached the limit of {}. What it starts later is "
                      "not in the table.",
                      recording_.stopped));
    else if (recording_.exit_code != 0)
      all.push_back(
          fmt::format("The script ended with {}: it may start more where nothing is missing. Arguments "
                      "go behind --, variables into --env NAME=VALUE. Its last line: {}",
                      recording_.exit_code, last_line()));
    return all;
  }

  [[nodiscard]] std::string last_line() const {
    const auto trimmed = text::trim(recording_.output);
    const auto last = trimmed.substr(trimmed.rfind('\n') + 1);
    return last.empty() ? "(none)" : text::printable(masker_.mask(std::string(last)));
  }

  const Recording& recording_;
  std::string script_;
  const Masker& masker_;
  const Paint& paint_;
};

}  // namespace

std::string recording_text(const Recording& recording, const std::string& script,
                           const shell::Allocation& allocation, Masker masker, const Paint& paint) {
  for (const auto& command : recording.commands) {
    for (const auto& entry : command.environment) {
      const auto equals = entry.find('=');
      if (equals != std::string::npos && looks_like_secret(entry.substr(0, equals)))
        masker.add(entry.substr(equals + 1));
    }
  }
  return RecordingText(recording, script, masker, paint).str(allocation);
}

}  // namespace nlaunch::report
