#include "shell/recorded_commands.h"

#include <fcntl.h>
#include <re2/re2.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "shell/srun.h"
#include "sys/proc_threads.h"

namespace nlaunch::shell {
namespace {

/// True if the standard output of a process was opened with O_APPEND: `>> log`.
bool appends(pid_t pid) {
  const auto info = sys::read_proc_file(pid, "fdinfo/1").value_or("");
  constexpr std::string_view kName = "flags:";
  const auto at = info.find(kName);
  constexpr int kOctal = 8;
  return at != std::string::npos &&
         (std::strtoull(info.c_str() + at + kName.size(), nullptr, kOctal) & std::uint64_t{O_APPEND}) != 0;
}

/// Puts each launcher's commands after it, whatever ran in parallel.
std::vector<RecordedCommand> by_launcher(std::vector<RecordedCommand> commands) {
  std::vector<std::vector<std::size_t>> started(commands.size() + 1);
  for (std::size_t i = 0; i < commands.size(); ++i)
    started[commands[i].launcher.value_or(commands.size())].push_back(i);
  std::vector<RecordedCommand> ordered;
  ordered.reserve(commands.size());
  const auto add = [&](const auto& self, std::size_t launcher, std::optional<std::size_t> place) -> void {
    for (const auto index : started[launcher]) {
      ordered.push_back(std::move(commands[index]));
      ordered.back().launcher = place;
      self(self, index, ordered.size() - 1);
    }
  };
  add(add, commands.size(), std::nullopt);
  return ordered;
}

/// The directory in which srun starts its tasks; empty: its own.
std::string folder_of_tasks(const Words& argv) {
  if (program_name(argv[0]) != "srun") return {};
  const auto within = option(argv, words_of_srun(argv), "", "--container-workdir");
  const auto folder = within ? within : option(argv, words_of_srun(argv), "-D", "--chdir");
  return folder && folder->starts_with('/') ? *folder : "";
}

}  // namespace

const RecordedCommand& RecordedCommands::add(const ProgramStart& start, Words argv, Fate fate) {
  RecordedCommand command;
  command.fate = fate;
  command.argv = std::move(argv);
  for (auto& word : command.argv) word = without_own(std::move(word), own_);
  // `$(which torchrun) train.py`: the one that PATH has there.
  constexpr std::string_view kOwn = "/rec/own/";
  if (command.argv[0].starts_with(kOwn)) command.argv[0] = program_name(command.argv[0]);
  for (const auto& entry : start.environment) {
    if (!is_own_variable(entry)) command.environment.push_back(without_own(entry, own_));
  }
  command.folder = start.folder;
  for (const auto& [fd, file] : start.files) {
    constexpr int kMost = 9;  // those that a script can redirect
    if (fd <= kMost && file.starts_with('/') && file != "/dev/null" &&
        !file.starts_with(own_.folder.native()))
      command.files[fd] = file;
  }
  command.appends = command.files.contains(STDOUT_FILENO) && appends(start.pid);
  const auto in = start.files.find(STDIN_FILENO);
  // The script's own is empty, also after `exec` has put a program in its place.
  const bool is_of_script = in != start.files.end() && in->second.starts_with(own_.folder.native());
  command.has_input = !is_of_script && has_own_input(start, places_.parent_of(start.pid));
  if (command.has_input && fate == Fate::recorded) command.input = pipes_.input_of(start);
  // `srun bash <<EOF`: what a program inherits from its shell are commands.
  const auto shell = places_.parent_of(start.pid);
  const bool are_commands = !command.has_input && shell && places_.reads_commands(*shell);
  if (in != start.files.end() && in->second != "/dev/null" && !are_commands &&
      !in->second.starts_with(own_.folder.native()))
    command.input_from = in->second;
  command.task = task_of(start.environment);
  find_launcher(start, command);
  find_place(start, command);
  command.background = start.background || reads_nothing(start, command);
  if (const auto out = start.files.find(STDOUT_FILENO);
      fate == Fate::recorded && out != start.files.end() && out->second.starts_with("pipe:"))
    printing_.emplace_back(recording_.commands.size(), out->second);
  if (fate != Fate::answered) note_files(start, command);
  // What only answers may be within the words of a program in the background.
  places_.started(start.pid, recording_.commands.size(), command.background || fate == Fate::answered,
                  prints_into_own_pipe(start, places_.parent_of(start.pid)));
  pids_.push_back(start.pid);
  return recording_.commands.emplace_back(std::move(command));
}

const RecordedCommand& RecordedCommands::add_launcher(Words argv, const std::string& folder) {
  RecordedCommand command;
  command.argv = std::move(argv);
  command.fate = Fate::launcher;
  command.folder = folder;
  pids_.push_back(0);
  return recording_.commands.emplace_back(std::move(command));
}

bool RecordedCommands::is_served(const std::string& port) const {
  const auto names = [&](const std::string& text) {
    return text == port || text.ends_with("=" + port) || text.ends_with(":" + port);
  };
  return std::ranges::any_of(recording_.commands, [&](const RecordedCommand& command) {
    return command.fate == Fate::recorded && command.background &&
           (std::ranges::any_of(command.argv, names) || std::ranges::any_of(command.environment, names));
  });
}

bool RecordedCommands::asks_again(const Words& argv) const {
  const auto last = std::find_if(
      recording_.commands.rbegin(), recording_.commands.rend(), [](const RecordedCommand& command) {
        return command.fate != Fate::answered || command.argv[0].starts_with(kConnection);
      });
  return last != recording_.commands.rend() && last->argv == argv;
}

void RecordedCommands::finish() {
  for (const auto& [command, pipe] : printing_) {
    auto& one = recording_.commands[command];
    one.output_is_read =
        pipes_.is_read_by_shell(pipe) && !only_shows(places_.text_of_line(one.script, one.line));
  }
  for (std::size_t i = 0; i < recording_.commands.size(); ++i)
    recording_.commands[i].waited = places_.waited(i);
  recording_.commands = by_launcher(std::move(recording_.commands));
}

/// Inside a function, and for a name that is not found, bash has already restored the signals. But a
/// background command reads from /dev/null, unless redirected, while the script does not.
bool RecordedCommands::reads_nothing(const ProgramStart& start, const RecordedCommand& command) const {
  static const RE2 kSaid(R"(<\s*/dev/null)");
  const auto in = start.files.find(STDIN_FILENO);
  if (in == start.files.end() || in->second != "/dev/null") return false;
  const auto* place = places_.of(start.pid);
  const bool by_xargs = place != nullptr && place->command.starts_with("xargs ");
  return !by_xargs && !RE2::PartialMatch(places_.text_of_line(command.script, command.line), kSaid);
}

void RecordedCommands::killed(pid_t pid) {
  const auto last = std::find(pids_.rbegin(), pids_.rend(), pid);
  if (last != pids_.rend()) killed_.insert(static_cast<std::size_t>(pids_.rend() - last) - 1);
}

bool RecordedCommands::asks_killed(const Words& query) const {
  if (killed_.empty()) return false;
  bool any = false;
  for (std::size_t i = 0; i < recording_.commands.size(); ++i) {
    const auto& command = recording_.commands[i];
    const bool asked =
        command.fate == Fate::recorded && std::ranges::any_of(command.argv, [&](const auto& word) {
          const auto value = word.substr(word.find('=') + 1);
          return is_port(value) && names_port(query, value);
        });
    if (!asked) continue;
    any = true;
    bool killed = killed_.contains(i);
    for (auto at = command.launcher; at && !killed; at = recording_.commands[*at].launcher)
      killed = killed_.contains(*at);
    if (!killed) return false;
  }
  return any;
}

/// The launcher that started it, which may have chosen its directory.
void RecordedCommands::find_launcher(const ProgramStart& start, RecordedCommand& command) const {
  const auto step = launcher_of(start.environment);
  if (!step || *step >= recording_.commands.size()) return;
  command.launcher = *step;
  const auto& launcher = recording_.commands[*step];
  const auto folder = folder_of_tasks(launcher.argv);
  if (!folder.empty() && command.folder == launcher.folder) command.folder = folder;
}

/// The place that starts it; if that is unknown, the place of its launcher.
void RecordedCommands::find_place(const ProgramStart& start, RecordedCommand& command) const {
  const auto top = command.launcher ? pids_[*command.launcher] : 0;
  if (const auto* place = places_.of(start.pid, top)) {
    command.script = layer_.unmapped(place->script);
    command.line = place->line;
  } else if (command.launcher) {
    command.script = recording_.commands[*command.launcher].script;
    command.line = recording_.commands[*command.launcher].line;
  }
}

/// Notes the files that it is given, and where its output goes.
void RecordedCommands::note_files(const ProgramStart& start, RecordedCommand& command) {
  auto told = command.argv;  // given by name, or as its input
  if (command.input && command.input->is_file) told.push_back(command.input->text);
  for (const auto& path : written_.outputs_told_to({told, command.environment, command.folder})) {
    const bool own = std::ranges::any_of(
        command.files, [&](const auto& file) { return file.first > 0 && file.second == path; });
    const bool known =
        std::ranges::find(recording_.passed_on, path, &Absent::name) != recording_.passed_on.end();
    if (!own && !known) recording_.passed_on.push_back({command.line, path, command.script});
  }
  for (const auto& [fd, file] : start.files)
    if (fd > 0 && file.starts_with("pipe:")) written_.job_prints_to(file, command.background);
  for (const auto& [fd, file] : command.files)
    if (fd > 0) written_.redirected(file);
  command.given = written_.told_to({told, command.environment, command.folder});
  for (auto& file : command.given) {
    if (file.text && is_of_given(*file.text)) recording_.contents.push_back({command.line, file.path});
    if (file.text) file.text = without_own(std::move(*file.text), own_);
  }
}

}  // namespace nlaunch::shell
