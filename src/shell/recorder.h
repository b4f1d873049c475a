#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "shell/allocation.h"
#include "shell/guarded.h"
#include "shell/pipes.h"
#include "shell/processes.h"
#include "shell/trace.h"
#include "shell/words.h"
#include "shell/written.h"

/// What a shell script would start, seen by letting bash run it where nothing of it has an effect.
namespace nlaunch::shell {

enum class Fate {
  recorded,  ///< it would have been started, and seemed to succeed without a word
  answered,  ///< it asks something of the cluster, or waits: shell/answers.h
  launcher,  ///< it starts other commands, which are recorded too: shell/launchers.h
};

/// A connection that bash makes by itself (`> /dev/tcp/HOST/PORT`) is a command of this one word.
inline const std::string kConnection = "/dev/tcp/";

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
  bool fails = false;                   ///< cp and the like, which run here: it ends with another code than 0
  bool output_is_read = false;          ///< by the script, which read nothing: it is recorded only
  bool has_input = false;  ///< a here-document, a pipe or a file that it alone has as standard input
  std::optional<ProgramInput> input;  ///< what it reads there, where that is known
  std::string input_from;  ///< "/data/x", "pipe:[123]": its own, or that of a loop or a launcher around it
  WaitedFor waited;        ///< which programs the script had waited for when it began
  std::vector<WrittenFile> given;  ///< files whose paths, or whose folders, are in its words or variables
};

/// A file, a folder or a variable that the script asks for and that is not here.
struct Absent {
  std::uint32_t line = 0;
  std::string name;
  std::string script{};     ///< the file of that line; empty: the script itself
  std::string found_in{};   ///< the script's own folder, where it is there as seen from that
  bool is_sourced = false;  ///< by `source`: what it sets is not known
};

/// A job that the script submits.
struct Submission {
  std::uint32_t line = 0;
  Words options;                       ///< of sbatch
  std::string script;                  ///< its file, where it has one
  std::string text;                    ///< of that file, of --wrap, of a here-document
  Words arguments;                     ///< of the script
  std::vector<std::string> variables;  ///< "NAME=VALUE" of its environment that the script has set
  std::vector<WrittenFile> files;      ///< that the script has written before
  std::string folder;
};

struct Recording {
  bool per_node = false;                  ///< as of RecordRequest: no Slurm knows of its first step
  bool all_tasks = false;                 ///< likewise
  bool may_differ = false;                ///< tasks that were not recorded may be none of the others' kind
  std::vector<RecordedCommand> commands;  ///< in their order; a launcher's own behind it
  std::vector<Assignment> assignments;
  std::vector<TracedCommand> traced;     ///< all that the shells ran, in its order
  std::vector<std::string> environment;  ///< that the script began with
  std::vector<std::string> given;  ///< names in it that belong to this one job: of the request, of an array
  std::vector<std::string> not_here;  ///< files and folders that are on the cluster alone, taken as empty
  std::vector<Absent> asked_for;      ///< `[ -f PATH ]` was answered with no
  std::vector<Absent> made_up;  ///< the script reads what a command prints, which is made up or true of this
                                ///< machine and moment alone: `name` is the command
  std::vector<Absent> printed;  ///< what RecordRequest::prints says, where the script has asked for it
  std::vector<std::string> written;  ///< files that the script writes itself, of which no program is told
  std::vector<Absent> passed_on;     ///< a program is told of a file into which another one's output goes
  std::vector<Absent> failed;        ///< shells of tasks that ended with another code than 0, which is `name`
  std::vector<Absent> unset;         ///< variables that the script uses and nothing sets: they are empty
  std::vector<Absent>
      done_here;  ///< `mkdir -p PATH` of the batch script itself: it has run in the layer alone
  std::vector<Absent> by_machine;  ///< what would be another on another machine: shell/machine.h
  std::vector<Absent> idle;        ///< what `xargs` would have started, had it read anything
  std::vector<Absent> unread;      ///< a program wanted to read it, and the script what the program prints
  std::vector<Absent> contents;    ///< a file that only seems to be there, or that a recorded program would
                                   ///< write, and whose contents the script reads
  std::vector<Absent> sourced;     ///< a file that only seems to be there, and is sourced
  std::vector<Absent> no_folder;   ///< `> PATH` of a program in a folder that is not there: it does not start
  std::vector<Absent> placeholders;   ///< `<team>` in the script's text, which a person has to fill in
  std::vector<Submission> submitted;  ///< those whose script is known
  std::string output;                 ///< what the script printed, its last 64 KiB
  int exit_code = 0;                  ///< 128 + N for a signal
  std::uint32_t last_line = 0;        ///< of the script, where it ended
  bool at_its_end = false;            ///< no command of the script stands behind that line
  std::string stopped;                ///< the limit that ended it (GuardedEnd); empty: none
  bool waits = false;                 ///< that was in a loop that only waits

  /// It ran to its end. The exit code alone does not say so: that of a last `[ ... ] && ...` may be 1. A last
  /// loop that watches what the script has started has no end.
  [[nodiscard]] bool whole() const {
    return stopped.empty() ? exit_code == 0 || at_its_end : waits && at_its_end;
  }

  /// The last setting of a variable to that value; nullptr where no script has set it.
  [[nodiscard]] const Assignment* origin(const std::string& name, const std::string& value) const;
};

struct RecordRequest {
  std::string script;  ///< its file
  std::vector<std::string> arguments;
  std::vector<std::string> variables;  ///< "NAME=VALUE", of the environment in which it is submitted
  std::string folder{};                ///< in which it is submitted; empty: the script's own
  std::string chdir{};                 ///< in which it runs (sbatch --chdir); empty: the same
  /// What a command prints in whose line a text stands: {"get_free_port", "29500"}.
  std::vector<std::pair<std::string, std::string>> prints{};
  std::vector<std::string> existing{};  ///< files that the cluster has, and folders, which end with a slash
  /// Somebody starts the script on each node: a step of one task each, though the script knows of none. In
  /// arguments and variables `{node}` is the number of the node, `{host}` its host, `{first}` the first
  /// node's, `{nodes}` how many there are.
  bool per_node = false;
  bool in_job = true;                ///< false: on a login node, where no variable is Slurm's
  bool all_tasks = false;            ///< none stands for others (recorded_for)
  std::vector<WrittenFile> files{};  ///< that somebody has written before
  Allocation allocation;
  Limits limits;
};

/// Runs the script with bash and records every program that it would start. Of a step of many tasks some are
/// started (recorded_for). Fails where the script cannot be read, or where the
/// kernel does not permit to guard it (shell/guarded.h, whose limits hold here too).
Result<Recording> record(const RecordRequest& request);

}  // namespace nlaunch::shell
