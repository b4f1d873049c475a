#include "report/recording_text.h"

#include <fmt/format.h>
#include <re2/re2.h>

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

/// Commands that differ only in their task, or equal queries on the same line.
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
      return "queries";
    case Fate::launcher:
      break;
  }
  return "launches";
}

/// The last output of a script mostly shows why it exited.
std::string last_lines(const Recording& recording, const Masker& masker) {
  constexpr std::size_t kMost = 5;
  auto lines = text::split(text::trim(recording.output), '\n');
  if (lines.size() > kMost) lines.erase(lines.begin(), lines.end() - kMost);
  std::string out;
  for (const auto& line : lines) out += "  " + text::printable(masker.mask(line)) + "\n";
  if (!out.empty()) out.pop_back();
  return out;
}

/// The file is empty if it is the script itself.
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
      components.push_back(fmt::format("{} with {} and {} each", text::count(one->nodes, "node"),
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

  /// What the table does not show.
  [[nodiscard]] std::vector<std::string> sentences() const {
    std::vector<std::string> all;
    for (const auto& command : recording_.commands) {
      if (!command.output_is_read) continue;
      all.push_back(
          fmt::format("Line {} reads the output of this command, which is unknown because it did not run: {}",
                      place(command), line(command.argv)));
    }
    if (!recording_.not_here.empty())
      all.push_back(fmt::format("Not on this machine, and assumed to be empty: {}",
                                text::printable(text::join(recording_.not_here, ", "))));
    std::vector<std::string> unset;
    for (const auto& one : recording_.unset) unset.push_back(fmt::format("${} ({})", one.name, at_line(one)));
    if (!unset.empty())
      all.push_back(fmt::format("Unset, and so empty: {}. Set them with --env NAME=VALUE.",
                                text::printable(text::join(unset, ", "))));
    if (auto why = why_not_whole(recording_, masker_); !why.empty()) all.push_back(std::move(why));
    return all;
  }

  const Recording& recording_;
  std::string script_;
  const Masker& masker_;
  const Paint& paint_;
};

/// It got a host or an address of the simulated job.
bool asks_for_address(const RecordedCommand& command) {
  static const shell::Options kAlways{"ip", "ifconfig", "getent", "host", "dig", "nslookup"};
  const auto name = shell::program_name(command.argv[0]);
  return kAlways.contains(name) ||
         (name == "hostname" && command.argv.size() > 1 && !command.argv[1].starts_with("-s"));
}

/// Possible reasons why the script exited, each with what to type.
class Missing {
 public:
  Missing(const Recording& recording, const Masker& masker) : recording_(recording), masker_(masker) {}

  std::vector<std::string> list() {
    outputs();
    files();
    for (const auto& one : recording_.unset)
      if (!one.script.empty() || one.line <= recording_.last_line)
        add("{}: ${} is unset: set it with --env {}=VALUE", at_line(one), one.name, one.name);
    for (const auto& one : recording_.missing_arguments)
      if (one.line <= recording_.last_line)
        add("line {}: the script reads its argument ${}: pass its arguments after --", one.line, one.name);
    programs();
    const auto asks = std::ranges::find_if(recording_.commands, asks_for_address);
    if (asks != recording_.commands.end())
      add("line {}: `{}` got a name or an address of the simulated job, rec-node-0 or 10.77.0.1: if the "
          "script looks for other addresses, set their prefix with --env NAME=10.77.",
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

  /// Empty for the script itself, to which the first command belongs.
  [[nodiscard]] std::string own(const std::string& script) const {
    const bool first = recording_.traced.empty() || recording_.traced.front().script == script;
    return first ? "" : script;
  }

  /// Empty for the script itself, to which the first command belongs.
  [[nodiscard]] std::string of_other(const std::string& script) const {
    const bool own = recording_.traced.empty() || recording_.traced.front().script == script;
    return own ? "" : script;
  }

  /// `command -v NAME` shortly before the end: the script may have asked in vain.
  void programs() {
    static const RE2 kLooksUp(R"(^(?:command -v|hash|type(?: -\w+)?) '?([\w.][\w.+-]*)'?$)");
    constexpr std::size_t kLast = 6;
    const auto count = recording_.traced.size();
    std::string name;
    for (auto i = count - std::min(count, kLast); i < count; ++i)
      if (RE2::FullMatch(recording_.traced[i].text, kLooksUp, &name))
        add("line {}: the script looks for the program {}; if the cluster has it, use --exists /usr/bin/{}",
            recording_.traced[i].line, name, name);
  }

  void outputs() {
    for (const auto& command : recording_.commands)
      if (command.output_is_read)
        add("{}: `{}` did not run, so the script read no output: set the output with --prints 'PART OF THE "
            "COMMAND=TEXT'",
            at_line({command.line, "", of_other(command.script)}),
            text::printable(masker_.mask(text::shell_join(command.argv))));
  }

  void files() {
    for (const auto& one : recording_.unread) {
      if (one.found_in.empty() && one.is_sourced)
        add("{}: {} is not on this machine: import where it exists, or treat it as empty with --exists {}",
            at_line(one), text::printable(one.name), quoted(one.name));
      else if (one.found_in.empty())
        add("{}: {} is not on this machine: import where it exists, or set the output of the command with "
            "--prints 'PART OF THE COMMAND=TEXT'",
            at_line(one), text::printable(one.name));
      else
        add("{}: {} does not exist here, but does in the script's own directory: run `nlaunch import` in {}",
            at_line(one), text::printable(one.name), text::printable(one.found_in));
    }
    for (const auto& one : recording_.contents)
      add("{}: the content of {} is unknown: import where it exists, or set the output of the command with "
          "--prints 'PART OF THE COMMAND=TEXT'",
          at_line(one), text::printable(one.name));
    for (const auto& one : recording_.no_folder)
      add("{}: it writes to {}, but that directory does not exist: create it, or use --exists {}",
          at_line(one), text::printable(one.name), quoted(one.name.substr(0, one.name.rfind('/') + 1)));
    if (!recording_.asked_for.empty()) {
      const auto& last = recording_.asked_for.back();
      add("{}: {} was reported as missing; if it exists on the cluster, use --exists {} (a directory with a "
          "trailing /)",
          at_line(last), text::printable(last.name), quoted(last.name));
    }
    for (const auto& path : recording_.not_here)
      add("{} is not on this machine, and was assumed to be empty: import where it exists, or set with --env "
          "what it sets",
          text::printable(path));
  }

  const Recording& recording_;
  const Masker& masker_;
  std::vector<std::string> all_;
};

/// What bash cannot parse may be a placeholder.
std::string placeholders_of_errors(const Recording& recording) {
  std::string text;
  for (const auto& one : recording.placeholders)
    if (recording.output.find(fmt::format(": line {}:", one.line)) != std::string::npos)
      text += fmt::format("\nLine {} has a placeholder, {}: replace it with its value.", one.line,
                          text::printable(one.name));
  return text;
}

/// Of a script that did not come to its end.
std::string last_command(const Recording& recording, const Masker& masker) {
  if (recording.traced.empty()) return "";
  const auto& last = recording.traced.back();
  constexpr std::size_t kLongest = 120;
  auto text = masker.mask(last.text);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "…";
  return fmt::format(", at line {}: `{}`", last.line, text::printable(text));
}

}  // namespace

std::string why_not_whole(const Recording& recording, const Masker& masker) {
  if (recording.whole()) return {};
  if (recording.waits)
    return fmt::format(
        "The script waits at line {} for something that does not happen here. What it starts later is "
        "unknown.",
        recording.last_line);
  if (!recording.stopped.empty())
    return fmt::format("The script was stopped at the limit of {}{}. What it starts later is unknown.",
                       recording.stopped, last_command(recording, masker));
  constexpr int kSyntax = 2;
  if (recording.exit_code == kSyntax && recording.output.find(": syntax error") != std::string::npos)
    return fmt::format("bash cannot parse the script:\n{}{}", last_lines(recording, masker),
                       placeholders_of_errors(recording));
  const auto missing = Missing(recording, masker).list();
  return fmt::format(
      "The script exited with {} at line {}: it may start more if nothing is missing. Pass arguments after "
      "--, variables with --env NAME=VALUE. It printed:\n{}{}{}",
      recording.exit_code, recording.last_line, last_lines(recording, masker),
      missing.empty() ? "" : "\nNot found here:\n  ", text::join(missing, "\n  "));
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
