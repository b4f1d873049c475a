#include "import/parts.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <tuple>

#include "base/text.h"
#include "import/work.h"
#include "shell/answers.h"
#include "shell/launchers.h"

namespace nlaunch::import {
namespace {

using shell::Fate;
using shell::RecordedCommand;
using shell::Recording;
using shell::Task;
using shell::Words;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Splits a text into numbers, host addresses and the text between them.
std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  std::size_t i = 0;
  while (i < text.size()) {
    auto end = i;
    if (is_digit(text[i])) {
      while (end < text.size() && is_digit(text[end])) ++end;
    } else {
      while (end < text.size() && !is_digit(text[end])) ++end;
    }
    tokens.emplace_back(text.substr(i, end - i));
    i = end;
  }
  return tokens;
}

/// "rec-node-3" is one piece for a task on node 3, like its address.
std::string with_host_marked(std::string text, const Task& task) {
  constexpr std::string_view kMark = "\x02";
  for (const auto& host : {shell::Allocation::host(task.node), shell::Allocation::address(task.node)}) {
    for (auto at = text.find(host); at != std::string::npos; at = text.find(host, at + kMark.size())) {
      const auto end = at + host.size();
      const bool longer = end < text.size() && is_digit(text[end]);
      if (!longer) text.replace(at, host.size(), kMark);
    }
  }
  return text;
}

/// What a number in a task can represent.
struct NumberOfTask {
  const char* reference;
  std::uint32_t (*of)(const Task& task, std::size_t index);
};
constexpr std::array<NumberOfTask, 3> kNumbers{
    {{"${self.index}", [](const Task&, std::size_t index) { return static_cast<std::uint32_t>(index); }},
     {"${self.node}", [](const Task& task, std::size_t) { return task.node; }},
     {"${self.local_rank}", [](const Task& task, std::size_t) { return task.local_rank; }}}};

/// Merges the texts of tasks into one; nullopt if they differ by more than task numbers.
class Unifier {
 public:
  Unifier(const std::vector<Task>& tasks, const std::vector<std::size_t>& recorded)
      : tasks_(tasks), recorded_(recorded) {}

  [[nodiscard]] std::optional<std::string> one(const std::vector<std::string>& texts) const {
    if (std::ranges::all_of(texts, [&](const auto& text) { return text == texts[0]; }))
      return escaped(texts[0]);
    std::vector<std::vector<std::string>> all;
    for (std::size_t i = 0; i < texts.size(); ++i)
      all.push_back(tokens_of(with_host_marked(texts[i], tasks_[recorded_[i]])));
    std::string out;
    for (std::size_t at = 0; at < all[0].size(); ++at) {
      std::vector<std::string> column;
      for (const auto& tokens : all) {
        if (tokens.size() != all[0].size()) return std::nullopt;
        column.push_back(tokens[at]);
      }
      const auto text = token(column);
      if (!text) return std::nullopt;
      out += *text;
    }
    return out;
  }

 private:
  [[nodiscard]] std::optional<std::string> token(const std::vector<std::string>& column) const {
    if (std::ranges::all_of(column, [&](const auto& text) { return text == column[0]; })) {
      auto text = escaped(column[0]);
      for (auto at = text.find('\x02'); at != std::string::npos; at = text.find('\x02', at))
        text.replace(at, 1, "${self.host}");
      return text;
    }
    for (const auto& number : kNumbers) {
      bool fits = true;
      for (std::size_t i = 0; fits && i < column.size(); ++i)
        fits = column[i] == std::to_string(number.of(tasks_[recorded_[i]], recorded_[i]));
      if (fits) return number.reference;
    }
    return std::nullopt;
  }

  const std::vector<Task>& tasks_;
  const std::vector<std::size_t>& recorded_;
};

/// Programs that change nothing in what they start beyond what nlaunch does itself.
bool is_needless(const std::string& program) {
  constexpr std::array<std::string_view, 3> kNames{"nohup", "setsid", "catchsegv"};
  return std::ranges::find(kNames, program) != kNames.end();
}

/// The commands that can belong to parts, and their launchers.
struct Start {
  std::size_t command = 0;
  std::vector<std::size_t> inner;   ///< of a container: what it starts
  std::optional<std::size_t> step;  ///< the nearest launcher that places tasks
  Words wrapper;
  bool background = false;
  std::size_t occurrence = 0;  ///< of this line within the task
};

class PartMaker {
 public:
  PartMaker(const Recording& recording, const shell::Allocation& allocation)
      : recording_(recording), allocation_(allocation) {}

  std::vector<Part> make() {
    collect();
    for (auto& group : groups()) add(group);
    merge_steps_of_a_loop();
    std::ranges::stable_sort(parts_, {}, [](const Part& part) { return part.commands[0]; });
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].first_of_step = is_first_of_step(i);
    return std::move(parts_);
  }

 private:
  void collect() {
    std::map<std::tuple<std::size_t, std::uint32_t, std::string, std::uint32_t, std::size_t>, std::size_t>
        seen;
    for (std::size_t i = 0; i < recording_.commands.size(); ++i) {
      const auto& command = recording_.commands[i];
      if (command.fate != Fate::recorded) continue;
      const auto container = container_of(i);
      if (container) {
        const auto known = std::ranges::find(starts_, *container, &Start::command);
        if (known != starts_.end()) {
          known->inner.push_back(i);
          continue;
        }
      }
      auto start = start_of(container.value_or(i));
      if (container) start.inner = {i};
      const auto none = recording_.commands.size();
      start.occurrence = seen[{start.step.value_or(none), command.task ? command.task->rank : 0,
                               command.script, command.line, start.step ? 0 : i}]++;
      starts_.push_back(std::move(start));
    }
  }

  /// The outermost container around a command. Directories and variables inside it are not those of the
  /// machine.
  [[nodiscard]] std::optional<std::size_t> container_of(std::size_t index) const {
    std::optional<std::size_t> container;
    for (auto above = recording_.commands[index].launcher; above;
         above = recording_.commands[*above].launcher) {
      if (shell::is_container(shell::program_name(recording_.commands[*above].argv[0]))) container = above;
    }
    return container;
  }

  /// The number of words in a container's command line before the program that it starts.
  [[nodiscard]] std::size_t words_of_container(const RecordedCommand& command) const {
    if (command.fate != Fate::launcher) return 0;
    const auto started = shell::started_by(command.argv, allocation_);
    return started ? command.argv.size() - std::min(started->argv.size(), command.argv.size()) : 0;
  }

  [[nodiscard]] Start start_of(std::size_t index) const {
    Start start;
    start.command = index;
    start.background = recording_.commands[index].background;
    const auto* inner = &recording_.commands[index];
    for (auto above = inner->launcher; above;) {
      const auto& launcher = recording_.commands[*above];
      start.background = start.background || launcher.background;
      const auto started = shell::started_by(launcher.argv, allocation_);
      if (started && !started->tasks.empty()) {
        if (!start.step) start.step = *above;
      } else if (started && !is_needless(shell::program_name(launcher.argv[0]))) {
        const auto kept = launcher.argv.size() - std::min(started->argv.size(), launcher.argv.size());
        start.wrapper.insert(start.wrapper.begin(), launcher.argv.begin(),
                             launcher.argv.begin() + static_cast<std::ptrdiff_t>(kept));
      }
      above = launcher.launcher;
    }
    return start;
  }

  /// Groups the commands that the tasks of a step start at the same place; each other command is its own
  /// group.
  [[nodiscard]] std::vector<std::vector<const Start*>> groups() const {
    std::vector<std::vector<const Start*>> groups;
    for (const auto& start : starts_) {
      const auto& command = recording_.commands[start.command];
      const auto same = std::ranges::find_if(groups, [&](const auto& group) {
        const auto& first = *group[0];
        const auto& other = recording_.commands[first.command];
        return start.step && first.step == start.step && other.line == command.line &&
               other.script == command.script && first.occurrence == start.occurrence &&
               other.argv.size() == command.argv.size() && first.wrapper.size() == start.wrapper.size();
      });
      if (same == groups.end())
        groups.push_back({&start});
      else
        same->push_back(&start);
    }
    return groups;
  }

  /// All tasks that run the same as these recorded ones.
  [[nodiscard]] std::vector<Task> tasks_of(const std::vector<const Start*>& group) const {
    if (!group[0]->step) return {Task{}};
    const auto all = shell::started_by(recording_.commands[*group[0]->step].argv, allocation_)->tasks;
    std::set<std::uint32_t> here;
    for (const auto* start : group) here.insert(recording_.commands[start->command].task->rank);
    const auto recorded = shell::recorded_for(all, recording_.all_tasks);
    std::vector<Task> tasks;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (here.contains(all[recorded[i]].rank)) tasks.push_back(all[i]);
    return tasks;
  }

  void add(const std::vector<const Start*>& group) {
    Part part;
    part.tasks = tasks_of(group);
    std::vector<const RecordedCommand*> commands;
    for (const auto* start : group) {
      const auto& command = recording_.commands[start->command];
      commands.push_back(&command);
      part.commands.push_back(start->command);
      const auto task = command.task && start->step ? *command.task : Task{};
      const auto found = std::ranges::find(part.tasks, task.rank, &Task::rank);
      part.recorded.push_back(static_cast<std::size_t>(found - part.tasks.begin()));
    }
    const Unifier unifier(part.tasks, part.recorded);
    if (!fill(part, unifier, commands, group)) return add_kinds(group);
    parts_.push_back(std::move(part));
  }

  /// If tasks run different programs, those of one kind become a part.
  void add_kinds(const std::vector<const Start*>& group) {
    std::vector<std::vector<const Start*>> kinds;
    for (const auto* start : group) {
      const auto kind =
          std::ranges::find_if(kinds, [&](const auto& other) { return is_of_kind(*other[0], *start); });
      if (kind == kinds.end())
        kinds.push_back({start});
      else
        kind->push_back(start);
    }
    const bool whole = group.size() == tasks_of(group).size();
    if (kinds.size() == 1 || !whole) return add_each(group);
    for (const auto& kind : kinds) add(kind);
  }

  /// True if the words are the same except for numbers.
  [[nodiscard]] bool is_of_kind(const Start& a, const Start& b) const {
    const auto& words = recording_.commands[a.command].argv;
    const auto& others = recording_.commands[b.command].argv;
    const auto without_numbers = [](const std::string& word) {
      auto tokens = tokens_of(word);
      std::erase_if(tokens, [](const auto& token) { return is_digit(token[0]); });
      return tokens;
    };
    return std::ranges::equal(words, others, [&](const auto& word, const auto& other) {
      return without_numbers(word) == without_numbers(other);
    });
  }

  /// If tasks run different programs, each becomes a separate part.
  void add_each(const std::vector<const Start*>& group) {
    const auto all = tasks_of(group);
    for (const auto* start : group) {
      const auto& command = recording_.commands[start->command];
      Part part;
      part.commands = {start->command};
      part.tasks = {command.task.value_or(Task{})};
      part.recorded = {0};
      (void)fill(part, Unifier(part.tasks, part.recorded), {&command}, {start});
      if (group.size() < all.size())
        part.problem = fmt::format(
            "its tasks differ, and of {} tasks only the first, second and last of each node, and of many "
            "nodes, were recorded",
            all.size());
      parts_.push_back(std::move(part));
    }
  }

  bool fill(Part& part, const Unifier& unifier, const std::vector<const RecordedCommand*>& commands,
            const std::vector<const Start*>& starts) const {
    const auto& first = *commands[0];
    part.in_step = starts[0]->step.has_value();
    if (part.in_step) {
      part.step = recording_.commands[*starts[0]->step].argv;
      part.tasks_of_step = shell::started_by(part.step, allocation_)->tasks.size();
    }
    part.script = first.script;
    part.line = first.line;
    part.background = starts[0]->background;
    part.folder = first.folder;
    if (std::ranges::any_of(part.commands, [&](auto index) { return reads_input(index); }) &&
        !takes_input(part, unifier, commands, starts))
      part.problem =
          "its standard input is not known here, and a role has none: write the input to a file and pass the "
          "file name to the program";
    part.may_fail = std::ranges::any_of(commands, &RecordedCommand::fails);
    const auto words = [&](Words& out, const std::function<const Words&(std::size_t)>& of) {
      for (std::size_t word = 0; word < of(0).size(); ++word) {
        std::vector<std::string> texts;
        for (std::size_t i = 0; i < commands.size(); ++i) texts.push_back(of(i)[word]);
        const auto text = unifier.one(texts);
        if (!text) return false;
        out.push_back(*text);
      }
      return true;
    };
    for (std::size_t i = 0; i < commands.size(); ++i) {
      part.lines.push_back(starts[i]->wrapper);
      part.lines.back().insert(part.lines.back().end(), commands[i]->argv.begin(), commands[i]->argv.end());
      part.inner.insert(part.inner.end(), starts[i]->inner.begin(), starts[i]->inner.end());
    }
    if (!files(part, unifier, commands)) return false;
    const bool same =
        words(part.argv, [&](std::size_t i) -> const Words& { return commands[i]->argv; }) &&
        words(part.wrapper, [&](std::size_t i) -> const Words& { return starts[i]->wrapper; }) &&
        changes(part, unifier, commands);
    const auto end = part.argv.begin() +
                     static_cast<std::ptrdiff_t>(std::min(words_of_container(first), part.argv.size()));
    part.wrapper.insert(part.wrapper.end(), part.argv.begin(), end);
    part.argv.erase(part.argv.begin(), end);
    part.program = starts[0]->inner.empty() ? part.argv : recording_.commands[main_of(starts[0]->inner)].argv;
    return same;
  }

  static bool files(Part& part, const Unifier& unifier, const std::vector<const RecordedCommand*>& commands) {
    part.files.clear();
    for (std::size_t file = 0; file < commands[0]->given.size(); ++file) {
      std::vector<std::string> paths;
      std::vector<std::string> texts;
      for (const auto* command : commands) {
        if (command->given.size() != commands[0]->given.size()) return false;
        const auto& one = command->given[file];
        paths.push_back(one.path);
        texts.push_back(one.text.value_or(""));
        if (!one.text)
          part.problem = fmt::format(
              "it uses {}, which the script writes itself, but which is not text or is larger than 64 KiB",
              text::printable(one.path));
      }
      const auto path = unifier.one(paths);
      const auto text = unifier.one(texts);
      if (!path || !text) return false;
      part.files.push_back(
          {*path, *text, commands[0]->given[file].executable, commands[0]->given[file].in_task});
    }
    return true;
  }

  /// The main program of a container: one that trains or serves, or else the last one.
  [[nodiscard]] std::size_t main_of(const std::vector<std::size_t>& inner) const {
    for (const auto index : inner) {
      const auto work = work_of(recording_.commands[index].argv).work;
      if (work != Work::other && work != Work::nothing) return index;
    }
    return inner.back();
  }

  /// True if all have a known input and no wrapper: bash then provides the input.
  static bool takes_input(Part& part, const Unifier& unifier,
                          const std::vector<const RecordedCommand*>& commands,
                          const std::vector<const Start*>& starts) {
    constexpr std::size_t kLargest = 100'000;  // bytes of an argument: MAX_ARG_STRLEN is 131,072
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < commands.size(); ++i) {
      const auto& input = commands[i]->input;
      const auto& first = commands[0]->input;
      if (!input || !first || input->repeats != first->repeats || input->is_file != first->is_file ||
          input->text.size() > kLargest || !starts[i]->wrapper.empty())
        return false;
      texts.push_back(input->text);
    }
    const auto text = unifier.one(texts);
    if (!text) return false;
    part.input = commands[0]->input;
    part.input->text = *text;
    return true;
  }

  /// True if it has its own standard input, or that of its launcher.
  [[nodiscard]] bool reads_input(std::size_t index) const {
    const auto& command = recording_.commands[index];
    if (command.has_input) return true;
    for (auto at = command.launcher; at; at = recording_.commands[*at].launcher) {
      const auto& launcher = recording_.commands[*at];
      if (launcher.has_input && launcher.input_from == command.input_from) return true;
    }
    return false;
  }

  using Environment = std::map<std::string, std::string>;
  static Environment to_map(const std::vector<std::string>& entries) {
    Environment map;
    for (const auto& entry : entries) {
      const auto equals = entry.find('=');
      if (equals != std::string::npos && equals > 0)
        map.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    }
    return map;
  }

  bool changes(Part& part, const Unifier& unifier,
               const std::vector<const RecordedCommand*>& commands) const {
    auto before = to_map(recording_.environment);
    for (const auto& name : recording_.given) before.erase(name);  // as if the script had set it
    std::vector<Environment> after;
    std::set<std::string> names;
    for (const auto* command : commands) {
      after.push_back(to_map(command->environment));
      for (const auto& [name, value] : after.back()) names.insert(name);
    }
    for (const auto& [name, value] : before) names.insert(name);
    for (const auto& name : names) {
      if (is_set_by_slurm(name) && !is_assigned(name)) continue;
      std::vector<std::string> values;
      for (const auto& environment : after) {
        const auto found = environment.find(name);
        if (found != environment.end()) values.push_back(found->second);
      }
      if (values.empty()) {
        if (before.contains(name)) part.changes[name] = std::nullopt;
        continue;
      }
      if (values.size() < commands.size()) return false;  // some have it
      const auto old = before.find(name);
      const bool same = old != before.end() &&
                        std::ranges::all_of(values, [&](const auto& value) { return value == old->second; });
      if (same) continue;
      const auto text = unifier.one(values);
      if (!text) return false;
      part.changes[name] = *text;
    }
    return true;
  }

  [[nodiscard]] bool is_assigned(const std::string& name) const {
    return std::ranges::any_of(recording_.assignments, [&](const auto& one) { return one.name == name; });
  }

  /// For a background step, it is unknown which of its programs are in the background of its shell. Programs
  /// that change files are not.
  [[nodiscard]] bool is_first_of_step(std::size_t index) const {
    const auto& command = recording_.commands[parts_[index].commands[0]];
    const auto name = shell::program_name(command.argv[0]);
    const bool on_files = shell::changes_files(name) || name == "cp" || name == "mv" || name == "ln";
    return on_files && command.task &&
           std::any_of(parts_.begin() + static_cast<std::ptrdiff_t>(index) + 1, parts_.end(),
                       [&](const Part& other) {
                         const auto& next = recording_.commands[other.commands[0]];
                         return next.launcher == command.launcher && next.task == command.task;
                       });
  }

  /// `for node in ...; do srun -w $node PROGRAM & done` starts one part.
  void merge_steps_of_a_loop() {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      while (i + 1 < parts_.size() && can_follow(parts_[i], parts_[i + 1])) {
        auto merged = merged_of(parts_[i], parts_[i + 1]);
        if (!merged) break;
        parts_[i] = std::move(*merged);
        parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }

  [[nodiscard]] bool can_follow(const Part& a, const Part& b) const {
    const bool same_place = a.in_step && b.in_step && a.line == b.line && a.script == b.script &&
                            a.argv.size() == b.argv.size() && a.wrapper.size() == b.wrapper.size() &&
                            a.background && b.background;
    if (!same_place || !a.problem.empty() || !b.problem.empty()) return false;
    if (had_ended(recording_, a, b)) return false;
    // True if it has the same size on each node and no node twice.
    return std::ranges::none_of(b.tasks, [&](const Task& task) {
      return std::ranges::find(a.tasks, task.node, &Task::node) != a.tasks.end();
    });
  }

  [[nodiscard]] std::optional<Part> merged_of(const Part& a, const Part& b) const {
    Part part;
    part.tasks = a.tasks;
    part.tasks.insert(part.tasks.end(), b.tasks.begin(), b.tasks.end());
    part.commands = a.commands;
    part.commands.insert(part.commands.end(), b.commands.begin(), b.commands.end());
    part.recorded = a.recorded;
    for (const auto index : b.recorded) part.recorded.push_back(a.tasks.size() + index);
    std::vector<const RecordedCommand*> commands;
    std::vector<const Start*> starts;
    for (const auto index : part.commands) {
      commands.push_back(&recording_.commands[index]);
      starts.push_back(&*std::ranges::find(starts_, index, &Start::command));
    }
    if (!fill(part, Unifier(part.tasks, part.recorded), commands, starts)) return std::nullopt;
    return part;
  }

  const Recording& recording_;
  const shell::Allocation& allocation_;
  std::vector<Start> starts_;
  std::vector<Part> parts_;
};

}  // namespace

std::vector<Part> parts_of(const shell::Recording& recording, const shell::Allocation& allocation) {
  return PartMaker(recording, allocation).make();
}

namespace {

/// `pkill -f "vllm serve"`, `killall python`.
bool names_program(const RecordedCommand& killer, const RecordedCommand& victim) {
  static const shell::Options kValued{"-u", "-U", "-t",       "-g",     "-G",
                                      "-P", "-s", "--signal", "--euid", "--parent"};
  const auto at = shell::program_at(killer.argv, 1, kValued);
  const bool same_node = killer.task.has_value() == victim.task.has_value() &&
                         (!killer.task || killer.task->node == victim.task->node);
  if (!shell::kills_by_name(killer.argv) || at >= killer.argv.size() || !same_node) return false;
  const auto& pattern = killer.argv[at];
  const bool whole_line = std::ranges::any_of(killer.argv, [](const auto& word) {
    return word == "--full" || (word.size() > 1 && word[0] == '-' && word[1] != '-' && word.contains('f'));
  });
  const auto program = shell::program_name(victim.argv[0]);
  if (shell::program_name(killer.argv[0]) == "killall") return program == pattern;
  return RE2::PartialMatch(whole_line ? text::join(victim.argv, " ") : program, RE2(pattern, RE2::Quiet));
}

/// True if the script kills programs with the name of the first before it starts the next.
bool ended_by_name(const shell::Recording& recording, std::size_t first, std::size_t next) {
  for (auto killer = first + 1; killer < next; ++killer)
    if (names_program(recording.commands[killer], recording.commands[first])) return true;
  return false;
}

}  // namespace

bool had_exited(const shell::Recording& recording, const Part& a, const Part& b) {
  // Each task has its own shell.
  return std::ranges::all_of(a.commands, [&](auto first) {
    return std::ranges::any_of(b.commands, [&](auto next) {
      return shell::had_ended(recording.commands[first].waited, recording.commands[next].waited) ||
             ended_by_name(recording, first, next);
    });
  });
}

bool had_ended(const shell::Recording& recording, const Part& a, const Part& b) {
  return a.background && had_exited(recording, a, b);
}

bool holds_at_its_end(const shell::Recording& recording) {
  constexpr std::uint64_t kLong = 3600;
  if (recording.waits) return true;
  const auto& commands = recording.commands;
  const auto sleeps = [](const auto& command) {
    return shell::program_name(command.argv[0]) == "sleep" || shell::waits_forever(command.argv);
  };
  const auto last = std::ranges::find_if(commands.rbegin(), commands.rend(), [&](const auto& command) {
    return command.fate == shell::Fate::recorded || sleeps(command);
  });
  if (last == commands.rend() || !sleeps(*last) || last->task) return false;
  return shell::waits_forever(last->argv) || shell::seconds_of_sleep(last->argv) >= kLong;
}

bool is_awaited(const shell::Recording& recording, const Part& part) {
  return std::ranges::all_of(part.commands,
                             [&](auto index) { return recording.commands[index].waited.is_awaited; });
}

bool was_ended(const shell::Recording& recording, const Part& a, const Part& b) {
  return std::ranges::any_of(a.commands, [&](auto first) {
    return std::ranges::any_of(b.commands, [&](auto next) {
      const auto& waited = recording.commands[first].waited;
      const auto& by_then = recording.commands[next].waited;
      // What the script has waited for, a pkill behind that does not find any more.
      return shell::was_ended(waited, by_then) ||
             (a.background && !shell::had_ended(waited, by_then) && ended_by_name(recording, first, next));
    });
  });
}

shell::Words with_input(shell::Words argv, const std::optional<shell::ProgramInput>& input) {
  if (!input) return argv;
  const bool is_program = (argv.size() == 1 || (argv.size() > 1 && argv[1] == "-")) &&
                          shell::program_name(argv[0]).starts_with("python") && !input->repeats;
  if (is_program && !input->is_file) {
    if (argv.size() > 1) argv.erase(argv.begin() + 1);
    argv.insert(argv.begin() + 1, {"-c", input->text});
    return argv;
  }
  // The input is $0, so that no variable of the program changes.
  const auto* const line = input->is_file   ? "exec \"$@\" < \"$0\""
                           : input->repeats ? "exec \"$@\" < <(yes \"$0\")"
                                            : "exec \"$@\" < <(printf %s \"$0\")";
  argv.insert(argv.begin(), {"bash", "-c", line, input->text});
  return argv;
}

shell::Words going_on(shell::Words argv) {
  argv.insert(argv.begin(), {"bash", "-c", "\"$@\" || true", "going-on"});
  return argv;
}

std::string line_with_globs(const shell::Words& argv, const shell::Words& globs) {
  std::vector<std::string> words;
  for (const auto& word : argv) {
    if (!shell::has(globs, word)) {
      words.push_back(text::shell_quote(word));
      continue;
    }
    static const RE2 kPattern(R"(((?:[^*?\[]|\[(?:[^\]]*$))*)([*?]|\[[^\]\s]+\])?)");
    std::string quoted;
    std::string text;
    std::string pattern;
    for (re2::StringPiece rest(word); !rest.empty() && RE2::Consume(&rest, kPattern, &text, &pattern);) {
      if (text.empty() && pattern.empty()) {  // a bracket that begins no pattern
        text = std::string(rest.substr(0, 1));
        rest.remove_prefix(1);
      }
      quoted += (text.empty() ? "" : text::shell_quote(text)) + pattern;
    }
    words.push_back(quoted);
  }
  return "exec " + text::join(words, " ");
}

shell::Words command_of_files(const std::vector<PartFile>& files) {
  shell::Words words{"bash", "-c",
                     "while (($#)); do case $1 in */) mkdir -p \"$1\";; *) mkdir -p \"$(dirname \"$1\")\" && "
                     "printf %s \"$2\" > \"$1\" && chmod \"$3\" \"$1\";; esac || exit; shift 3; done",
                     "write"};
  for (const auto& file : files)
    words.insert(words.end(), {file.path, file.text, file.executable ? "755" : "644"});
  return words;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$' && i + 1 < text.size() && text[i + 1] == '{') out += '$';
    out += text[i];
  }
  return out;
}

bool is_set_by_slurm(std::string_view name) {
  if (name == "SLURM_ARRAY_TASK_ID") return false;  // which job of an array it is
  constexpr std::array<std::string_view, 5> kNames{"HOSTNAME", "PWD", "OLDPWD", "SHLVL", "_"};
  constexpr std::array<std::string_view, 5> kPrefixes{"SLURM_", "SLURMD_", "OMPI_COMM_", "PMI_",
                                                      "BASH_FUNC_"};
  return std::ranges::find(kNames, name) != kNames.end() ||
         std::ranges::any_of(kPrefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

}  // namespace nlaunch::import
