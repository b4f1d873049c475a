#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "shell/allocation.h"
#include "shell/guarded.h"
#include "shell/trace.h"

/// What a shell script would start, seen by letting bash run it where nothing of it has an effect.
namespace nlaunch::shell {

enum class Fate {
  recorded,  ///< it would have been started, and seemed to succeed without a word
  answered,  ///< it asks something of the cluster, or waits: shell/answers.h
  launcher,  ///< it starts other commands, which are recorded too: shell/launchers.h
};

/// A program that the script would start.
struct RecordedCommand {
  std::vector<std::string> argv;         ///< argv[0] as it was called
  std::vector<std::string> environment;  ///< "NAME=VALUE", without what the recorder itself has set
  std::string folder;
  std::map<int, std::string> files;  ///< 1 → "/scratch/log", where it is not the script's own output
  std::string script;                ///< the file that starts it; empty: not known
  std::uint32_t line = 0;            ///< of it
  bool background = false;
  Fate fate = Fate::recorded;
  std::optional<std::size_t> launcher;  ///< index of the command that starts it: srun, timeout, a container
  std::optional<Task> task;             ///< of the step that it is in
  bool output_is_read = false;          ///< by the script, which read nothing: it is recorded only
};

struct Recording {
  std::vector<RecordedCommand> commands;  ///< in their order; a launcher's own behind it
  std::vector<Assignment> assignments;
  std::vector<std::string> environment;  ///< that the script began with
  std::vector<std::string> not_here;     ///< files and folders that are on the cluster alone
  std::string output;                    ///< what the script printed, its last 64 KiB
  int exit_code = 0;                     ///< 128 + N for a signal
  std::string stopped;                   ///< the limit that ended it (GuardedEnd); empty: it ran to its end

  /// The last setting of a variable to that value; nullptr where no script has set it.
  [[nodiscard]] const Assignment* origin(const std::string& name, const std::string& value) const;
};

struct RecordRequest {
  std::string script;  ///< its file
  std::vector<std::string> arguments;
  std::vector<std::string> variables;  ///< "NAME=VALUE", of the environment in which it is submitted
  Allocation allocation;
  Limits limits;
};

/// Runs the script with bash and records every program that it would start. Of a step of many tasks the
/// first, second and last of each node are started. Fails where the script cannot be read, or where the
/// kernel does not permit to guard it (shell/guarded.h, whose limits hold here too).
Result<Recording> record(const RecordRequest& request);

}  // namespace nlaunch::shell
