#pragma once
#include <sys/types.h>

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "shell/guarded.h"
#include "shell/pipes.h"
#include "shell/places.h"
#include "shell/recorder.h"
#include "shell/scratch_layer.h"
#include "shell/stand_ins.h"
#include "shell/words.h"
#include "shell/written.h"

namespace nlaunch::shell {

/// Adds the commands of one recording as they start, each with its place, its launcher and its files.
class RecordedCommands {
 public:
  /// All arguments must outlive this object. `written` learns which files a program of the job writes.
  RecordedCommands(const ScratchLayer& layer, const OwnFiles& own, const Pipes& pipes, Places& places,
                   Written& written, Recording& recording)
      : layer_(layer), own_(own), pipes_(pipes), places_(places), written_(written), recording_(recording) {}

  /// A program that starts. `argv`: as the script calls it.
  const RecordedCommand& add(const ProgramStart& start, Words argv, Fate fate);
  /// A launcher that no process of the script starts.
  const RecordedCommand& add_launcher(Words argv, const std::string& folder);

  /// True if a background program has this number in its arguments or a variable.
  [[nodiscard]] bool is_served(const std::string& port) const;
  /// True if the last connection was the same, with only sleep in between.
  [[nodiscard]] bool asks_again(const Words& argv) const;

  /// The process is killed by the script.
  void killed(pid_t pid);
  /// True if the port in a query is that of programs which were all killed.
  [[nodiscard]] bool asks_killed(const Words& query) const;

  /// Adds what is known only at the end, and puts each launcher's commands after it.
  void finish();

 private:
  [[nodiscard]] bool reads_nothing(const ProgramStart& start, const RecordedCommand& command) const;
  void find_launcher(const ProgramStart& start, RecordedCommand& command) const;
  void find_place(const ProgramStart& start, RecordedCommand& command) const;
  void note_files(const ProgramStart& start, RecordedCommand& command);

  const ScratchLayer& layer_;
  const OwnFiles& own_;
  const Pipes& pipes_;
  Places& places_;
  Written& written_;
  Recording& recording_;
  std::vector<pid_t> pids_;                                    ///< of the commands
  std::set<std::size_t> killed_;                               ///< commands, by index
  std::vector<std::pair<std::size_t, std::string>> printing_;  ///< a command → the pipe it prints to
};

}  // namespace nlaunch::shell
