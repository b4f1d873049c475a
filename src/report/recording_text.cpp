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

/// Commands that differ by their task alone, or that ask the same at the same line.
struct Group {
  const RecordedCommand* command;
  std::vector<shell::Task> tasks;
  std::size_t times = 1;
};

std::vector<Group> groups_of(const Recording& recording) {
  std::vector<Group> groups;
  for (const auto& command : recording.commands) {
    const auto same = std::ranges::find_if(groups, [&](const Group& group) {
      const bool tasks = command.task && !group.tasks.empty() && group.command->launcher == command.launcher;
      const bool asks =
          !command.task && command.fate == Fate::answered && group.command->fate == command.fate;
      return (tasks || asks) && group.command->line == command.line && group.command->argv == command.argv;
    });
    if (same == groups.end()) {
      groups.push_back({&command, {}});
      if (command.task) groups.back().tasks.push_back(*command.task);
    } else if (command.task) {
      same->tasks.push_back(*command.task);
    } else {
      ++same->times;
    }
  }
  return groups;
}

std::string where(const Group& group) {
  if (group.times > 1) return fmt::format("{} times", group.times);
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

/// What a script printed last mostly says why it ended.
std::string last_lines(const Recording& recording, const Masker& masker) {
  constexpr std::size_t kMost = 5;
  auto lines = text::split(text::trim(recording.output), '\n');
  if (lines.size() > kMost) lines.erase(lines.begin(), lines.end() - kMost);
  std::string out;
  for (const auto& line : lines) out += "  " + text::printable(masker.mask(line)) + "\n";
  if (!out.empty()) out.pop_back();
  return out;
}

/// Its file is empty where that is the script itself.
std::string at_line(const shell::Absent& one) {
  return one.script.empty()
             ? fmt::format("line {}", one.line)
             : fmt::format("{}:{}", text::printable(shell::program_name(one.script)), one.line);
}

class RecordingText {
 public:
  RecordingText(const Recording& recording, std::string script, const Masker& masker, const Paint& paint)
      : recording_(recording), script_(std::move(script)), masker_(masker), paint_(paint) {}

  [[nodiscard]] std::string str(const shell::Allocation& allocation,
                                const std::vector<std::string>& became) const {
    const auto groups = groups_of(recording_);
    std::vector<std::string> columns{"line", "", "where", "command"};
    if (!became.empty()) columns.insert(columns.begin() + 1, "became");
    Table table(columns);
    for (const auto& group : groups) {
      std::vector<std::string> cells{place(*group.command), std::string(word_of(group.command->fate)),
                                     where(group), line(group.command->argv)};
      if (!became.empty()) {
        const auto index = static_cast<std::size_t>(group.command - recording_.commands.data());
        cells.insert(cells.begin() + 1, text::printable(masker_.mask(became[index])));
      }
      table.add(std::move(cells));
    }
    std::vector<std::string> components;
    for (std::uint32_t i = 0; const auto one = allocation.component(i); ++i)
      components.push_back(fmt::format("{} of {} and {} each", text::count(one->nodes, "node"),
                                       text::count(one->gpus_per_node, "GPU"),
                                       text::count(one->tasks_per_node, "task")));
    auto out = fmt::format("{}: {}\n", text::printable(script_), text::join(components, " : "));
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
    std::vector<std::string> unset;
    for (const auto& one : recording_.unset) unset.push_back(fmt::format("${} ({})", one.name, at_line(one)));
    if (!unset.empty())
      all.push_back(fmt::format("Set by nothing, and so empty: {}. --env NAME=VALUE sets them.",
                                text::printable(text::join(unset, ", "))));
    if (auto why = why_not_whole(recording_, masker_); !why.empty()) all.push_back(std::move(why));
    return all;
  }

  const Recording& recording_;
  std::string script_;
  const Masker& masker_;
  const Paint& paint_;
};

/// It was told a host or an address of the made-up job.
bool asks_for_address(const RecordedCommand& command) {
  static const shell::Options kAlways{"ip", "ifconfig", "getent", "host", "dig", "nslookup"};
  const auto name = shell::program_name(command.argv[0]);
  return kAlways.contains(name) ||
         (name == "hostname" && command.argv.size() > 1 && !command.argv[1].starts_with("-s"));
}

/// What the script may have ended for, each with what to type.
class Missing {
 public:
  Missing(const Recording& recording, const Masker& masker) : recording_(recording), masker_(masker) {}

  std::vector<std::string> list() {
    outputs();
    files();
    for (const auto& one : recording_.unset)
      if (!one.script.empty() || one.line <= recording_.last_line)
        add("{}: ${} is set by nothing: --env {}=VALUE sets it", at_line(one), one.name, one.name);
    const auto asks = std::ranges::find_if(recording_.commands, asks_for_address);
    if (asks != recording_.commands.end())
      add("line {}: `{}` was told a name or an address of the made-up job, rec-node-0 or 10.77.0.1: where "
          "the "
          "script looks for others, --env NAME=10.77. gives it their beginning",
          asks->line, text::printable(text::shell_join(asks->argv)));
    return std::move(all_);
  }

 private:
  template <class... T>
  void add(fmt::format_string<T...> format, T&&... arguments) {
    constexpr std::size_t kMost = 8;
    auto text = fmt::format(format, std::forward<T>(arguments)...);
    if (all_.size() < kMost && std::ranges::find(all_, text) == all_.end()) all_.push_back(std::move(text));
  }

  static std::string quoted(const std::string& path) { return text::printable(text::shell_quote(path)); }

  /// Empty for the script itself, which the first command is of.
  [[nodiscard]] std::string own(const std::string& script) const {
    const bool first = recording_.traced.empty() || recording_.traced.front().script == script;
    return first ? "" : script;
  }

  /// Empty for the script itself, which the first command is of.
  [[nodiscard]] std::string of_other(const std::string& script) const {
    const bool own = recording_.traced.empty() || recording_.traced.front().script == script;
    return own ? "" : script;
  }

  void outputs() {
    for (const auto& command : recording_.commands)
      if (command.output_is_read)
        add("{}: `{}` did not run, and the script read nothing of it: --prints 'PART OF THE COMMAND=TEXT' "
            "says what it prints",
            at_line({command.line, "", of_other(command.script)}),
            text::printable(masker_.mask(text::shell_join(command.argv))));
  }

  void files() {
    for (const auto& one : recording_.unread) {
      if (one.found_in.empty() && one.is_sourced)
        add("{}: {} is not on this machine: import where it is, or --exists {} takes it as empty",
            at_line(one), text::printable(one.name), quoted(one.name));
      else if (one.found_in.empty())
        add("{}: {} is not on this machine: import where it is, or --prints 'PART OF THE COMMAND=TEXT' says "
            "what the command prints",
            at_line(one), text::printable(one.name));
      else
        add("{}: {} is not there; seen from the script's own folder it is: call `nlaunch import` in {}",
            at_line(one), text::printable(one.name), text::printable(one.found_in));
    }
    for (const auto& one : recording_.contents)
      add("{}: what is in {} is not known: import where it is, or --prints 'PART OF THE COMMAND=TEXT' says "
          "what "
          "the command prints",
          at_line(one), text::printable(one.name));
    for (const auto& one : recording_.no_folder)
      add("{}: it writes to {}, and that folder is not there: make it, or say --exists {}", at_line(one),
          text::printable(one.name), quoted(one.name.substr(0, one.name.rfind('/') + 1)));
    if (!recording_.asked_for.empty()) {
      const auto& last = recording_.asked_for.back();
      add("{}: it was told that {} is not there; --exists {} says it is (a folder with a / behind it)",
          at_line(last), text::printable(last.name), quoted(last.name));
    }
    for (const auto& path : recording_.not_here)
      add("{} is not on this machine, and was taken as empty: import where it is, or set by --env what it "
          "sets",
          text::printable(path));
  }

  const Recording& recording_;
  const Masker& masker_;
  std::vector<std::string> all_;
};

/// What bash cannot read may be a placeholder.
std::string placeholders_of_errors(const Recording& recording) {
  std::string text;
  for (const auto& one : recording.placeholders)
    if (recording.output.find(fmt::format(": line {}:", one.line)) != std::string::npos)
      text += fmt::format("\nLine {} has a placeholder, {}: write what it stands for.", one.line,
                          text::printable(one.name));
  return text;
}

}  // namespace

std::string why_not_whole(const Recording& recording, const Masker& masker) {
  if (recording.whole()) return {};
  if (recording.waits)
    return fmt::format(
        "The script waits at line {} for something that does not come here. What it starts later "
        "is not known.",
        recording.last_line);
  if (!recording.stopped.empty())
    return fmt::format(
        "The script was stopped: it has reached the limit of {}. What it starts later is not "
        "known.",
        recording.stopped);
  constexpr int kSyntax = 2;
  if (recording.exit_code == kSyntax && recording.output.find(": syntax error") != std::string::npos)
    return fmt::format("bash cannot read the script:\n{}{}", last_lines(recording, masker),
                       placeholders_of_errors(recording));
  const auto missing = Missing(recording, masker).list();
  return fmt::format(
      "The script ended with {} at line {}: it may start more where nothing is missing. "
      "Arguments go behind --, variables into --env NAME=VALUE. It printed:\n{}{}{}",
      recording.exit_code, recording.last_line, last_lines(recording, masker),
      missing.empty() ? "" : "\nWhat it did not find here:\n  ", text::join(missing, "\n  "));
}

std::string recording_text(const Recording& recording, const std::string& script,
                           const shell::Allocation& allocation, const std::vector<std::string>& became,
                           Masker masker, const Paint& paint) {
  for (const auto& command : recording.commands) {
    for (const auto& entry : command.environment) {
      const auto equals = entry.find('=');
      if (equals != std::string::npos && looks_like_secret(entry.substr(0, equals)))
        masker.add(entry.substr(equals + 1));
    }
  }
  return RecordingText(recording, script, masker, paint).str(allocation, became);
}

}  // namespace nlaunch::report
