#pragma once
#include <sys/types.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "shell/guarded.h"
#include "shell/notes.h"
#include "shell/places.h"
#include "shell/recorder.h"
#include "shell/scratch_layer.h"
#include "shell/stand_ins.h"
#include "shell/words.h"
#include "shell/written.h"

namespace nlaunch::shell {

/// The tools of the system that really run (`cp`, `sed`, `awk`, `date`): what of this machine they would tell
/// the script, and what the recording has to say about them.
class Tools {
 public:
  /// All arguments must outlive this object.
  Tools(const ScratchLayer& layer, const OwnFiles& own, const Places& places, Written& written, Notes& notes,
        Recording& recording)
      : layer_(layer), own_(own), places_(places), written_(written), notes_(notes), recording_(recording) {}

  /// True for tools that place files: what they do is part of the job, and the script may build on it here.
  static bool places_files(const std::string& tool);
  /// True for a `date` that tells the current time, not that of a given moment or a file.
  static bool tells_time(const Words& argv);

  /// True if what `cp` and the like place is here.
  [[nodiscard]] bool sources_are_here(const ProgramStart& start, const Words& argv) const;
  /// The answer to `realpath PATH` and `readlink -f PATH` for what is not here: nothing says that it is a
  /// link.
  [[nodiscard]] std::optional<std::string> canonical_path(const ProgramStart& start, const Words& argv) const;

  /// The tool `name` runs.
  void runs(const ProgramStart& start, const Words& argv, const std::string& name);
  /// The process is one that places files, the `index`th command of the recording.
  void places(pid_t pid, std::size_t index) { placing_[pid] = index; }
  /// The process starts another one.
  void forked(pid_t pid) { xargs_.erase(pid); }
  void ended(pid_t pid, int status);

 private:
  [[nodiscard]] bool is_missing(const ProgramStart& start, const std::string& path) const;
  [[nodiscard]] bool names_own_program(const Words& argv) const;
  void note_tee(const ProgramStart& start, const Words& argv);
  void note_xargs(const ProgramStart& start, const Words& argv);
  void note_edited(const ProgramStart& start, const Words& argv);

  const ScratchLayer& layer_;
  const OwnFiles& own_;
  const Places& places_;
  Written& written_;
  Notes& notes_;
  Recording& recording_;
  std::map<pid_t, std::size_t> placing_;  ///< which command
  std::map<pid_t, Absent> awks_;          ///< those that read a pipe
  std::map<pid_t, Absent> xargs_;         ///< those that have started nothing
};

}  // namespace nlaunch::shell
