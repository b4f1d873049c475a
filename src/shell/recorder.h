#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
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

/// Finds what a shell script would start by letting bash run it without effects.
namespace nlaunch::shell {

enum class Fate {
  recorded,  ///< would have been started; appears to succeed without output
  answered,  ///< queries the cluster, or waits: shell/answers.h
  launcher,  ///< starts other commands, which are also recorded: shell/launchers.h
};

/// A connection that bash itself makes (`> /dev/tcp/HOST/PORT`) is recorded as a command of this one word.
inline const std::string kConnection = "/dev/tcp/";

/// A program that the script would start.
struct RecordedCommand {
  std::vector<std::string> argv;         ///< argv[0] as it was called
  std::vector<std::string> environment;  ///< "NAME=VALUE", without variables set by the recorder
  std::string folder;
  std::map<int, std::string> files;  ///< 1 → "/scratch/log", if it is not the script's own output
  bool appends = false;              ///< to the file of its standard output
  std::string script;                ///< the file that starts it; empty: unknown
  std::uint32_t line = 0;            ///< of it
  bool background = false;
  Fate fate = Fate::recorded;
  std::optional<std::size_t> launcher;  ///< index of the command that starts it: srun, timeout, a container
  std::optional<Task> task;             ///< its task, if it is in a step
  bool fails = false;                   ///< cp and similar programs run here: exited with a code other than 0
  bool output_is_read = false;  ///< the script reads its output, which is empty since the program did not run
  bool has_input = false;       ///< a here-document, pipe or file is its own standard input
  std::optional<ProgramInput> input;  ///< its input, if known
  std::string
      input_from;    ///< "/data/x", "pipe:[123]": its own, or inherited from an enclosing loop or launcher
  WaitedFor waited;  ///< which programs the script had waited for when it started
  std::vector<WrittenFile> given;  ///< files whose paths or directories are in its arguments or variables
};

/// A file, directory or variable that the script uses and that is missing here.
struct Absent {
  std::uint32_t line = 0;
  std::string name;
  std::string script{};     ///< the file of that line; empty: the script itself
  std::string found_in{};   ///< the script's own directory, if the file exists relative to it
  bool is_sourced = false;  ///< by `source`: what it sets is unknown
};

/// A file that nothing here makes, and for which the script waits in a loop until it is there.
struct AwaitedFile {
  std::uint32_t line = 0;
  std::string name;         ///< as the test names it
  std::string test;         ///< "-f", "-s"
  std::size_t command = 0;  ///< how many commands had been recorded when it appeared
  bool in_task = false;     ///< a task of a step waits
};

/// A job that the script submits.
struct Submission {
  std::uint32_t line = 0;
  Words options;                       ///< of sbatch
  std::string script;                  ///< its file, if any
  std::string text;                    ///< from that file, --wrap or a here-document
  Words arguments;                     ///< of the script
  std::vector<std::string> variables;  ///< "NAME=VALUE" of its environment that the script set
  std::vector<WrittenFile> files;      ///< that the script wrote before
  std::string folder;
};

struct Recording {
  bool per_node = false;                  ///< as in RecordRequest: Slurm does not know its first step
  bool all_tasks = false;                 ///< likewise
  bool may_differ = false;                ///< tasks that were not recorded may differ from the recorded ones
  std::vector<RecordedCommand> commands;  ///< in order; the commands of a launcher follow it
  std::vector<Assignment> assignments;
  std::vector<TracedCommand> traced;     ///< everything that the shells ran, in order
  std::map<pid_t, pid_t> shells_above;   ///< subshell → the shell that forked it; `bash -c` has none
  std::vector<std::string> environment;  ///< the script's initial environment
  std::vector<std::string> given;  ///< names in it that belong to this job only: from the request or an array
  std::vector<std::string>
      not_here;                   ///< files and directories that exist only on the cluster, treated as empty
  std::vector<Absent> asked_for;  ///< `[ -f PATH ]` was answered with no
  std::vector<AwaitedFile> waited_for;
  std::vector<Absent> teed;     ///< files that `tee` truncates
  std::vector<Absent> broken;   ///< a tool of this machine failed (`name`) within a pipe: awk cannot do it
  std::vector<Absent> guessed;  ///< commands whose exit code the script asks for, which is made up
  std::set<std::uint32_t>
      searches;                     ///< lines of `guessed` that look for something in the output of a program
  std::vector<Absent> ended_early;  ///< scripts that it calls, and that exited with a code (`name`) within
  std::vector<Absent> made_up;  ///< the script reads the output of a command (`name`), which is made up or
                                ///< true only of this machine now
  std::vector<Absent> printed;  ///< output from RecordRequest::prints that the script used
  std::vector<std::string> written;  ///< files that the script writes itself and that no program is given
  std::vector<Absent> passed_on;     ///< a program is given a file that contains the output of another one
  std::vector<Absent> failed;        ///< shells of tasks that exited with a code other than 0 (`name`)
  std::vector<Absent> unset;         ///< variables that the script uses but nothing sets: they are empty
  std::vector<Absent> missing_arguments;  ///< `$1` of the script itself, by number
  std::vector<Absent> done_here;   ///< `mkdir -p PATH` of the batch script itself: ran only in the layer
  std::vector<Absent> by_machine;  ///< what would differ on another machine: shell/machine.h
  std::vector<Absent> idle;        ///< what `xargs` would have started if it had read anything
  std::vector<Absent> unread;      ///< a program reads it, and the script reads that program's output
  std::vector<Absent> contents;    ///< the script reads the contents of a file that only appears to exist, or
                                   ///< that a recorded program would write
  std::vector<Absent> sourced;     ///< a sourced file that only appears to exist
  std::vector<Absent> no_folder;   ///< `> PATH` of a program in a missing directory: it does not start
  std::vector<Absent> placeholders;   ///< `<team>` in the script's text, which the user must fill in
  std::vector<Submission> submitted;  ///< submitted jobs whose script is known
  std::string output;                 ///< what the script printed, its last 64 KiB
  int exit_code = 0;                  ///< 128 + N for a signal
  std::uint32_t last_line = 0;        ///< the last line of the script that ran
  bool at_its_end = false;            ///< no command of the script follows that line
  std::string stopped;                ///< the limit that stopped it (GuardedEnd); empty: none
  bool waits = false;                 ///< it stopped in a loop that only waits
  bool cut = false;                   ///< what was left in the background when it had ended was stopped

  /// True if it ran to its end. The exit code alone does not tell: a final `[ ... ] && ...` can return 1. A
  /// final loop that watches what the script started never ends.
  [[nodiscard]] bool whole() const {
    return stopped.empty() ? exit_code == 0 || at_its_end : waits && at_its_end;
  }

  /// What bash says of a text of `bash -c` that it cannot parse: "line 1: unexpected EOF …"; empty: nothing.
  [[nodiscard]] std::string broken_text() const;

  /// The last assignment of this value to the variable; nullptr if no script set it.
  [[nodiscard]] const Assignment* origin(const std::string& name, const std::string& value) const;
};

/// A program that exits with code 1, once with all tasks of its step, or, if it is a server, always: what
/// does the script do then?
struct FailingProgram {
  std::string script{};  ///< as in RecordedCommand, which it names together with the next two
  std::uint32_t line = 0;
  std::string call{};  ///< call_of() its words
  /// It is a server that exits before it answers: no query to a host of the job succeeds, its log has no line
  /// that tells of readiness, and no process that has exited appears to be alive. The time is that of the
  /// start and of the script's `sleep`.
  bool serves = false;
  bool hangs = false;  ///< the server runs on and does not answer: only queries to the job's hosts fail
  /// Another one answers until this one has started: a worker of Ray. A server in the background may start
  /// after the first question for it.
  bool joins = false;
  /// Lines (Recording::searches) on which a search in the output of what has failed ends the other way:
  /// without these, it finds what it looks for, unless that is a failure.
  std::set<std::uint32_t> otherwise{};
  std::size_t turn = 0;  ///< of those that start in turn, which one fails; of a server all do
  bool always = false;   ///< all of them fail, as those of a server do

  [[nodiscard]] bool is(const RecordedCommand& command) const;
};

/// A line of a script or of a file that it sources.
struct ScriptLine {
  std::string script;
  std::uint32_t line = 0;
  bool operator==(const ScriptLine&) const = default;
};

struct RecordRequest {
  std::string script;  ///< its file
  std::vector<std::string> arguments;
  std::vector<std::string> variables;  ///< "NAME=VALUE", in the environment in which it is submitted
  std::string folder{};                ///< where it is submitted; empty: the script's own directory
  std::string chdir{};                 ///< where it runs (sbatch --chdir); empty: the same
  /// The output of commands whose line contains a text: {"get_free_port", "29500"}.
  std::vector<std::pair<std::string, std::string>> prints{};
  /// Files on the cluster, and directories, which end with a slash; none is empty.
  std::vector<std::string> existing{};
  /// The script is started on each node from outside: a step with one task per node, which the script does
  /// not know about. In arguments and variables, `{node}` is the node's number, `{host}` its host, `{first}`
  /// the first node's host, and `{nodes}` the number of nodes.
  bool per_node = false;
  bool in_job = true;                ///< false: on a login node, without Slurm's variables
  bool all_tasks = false;            ///< every task is recorded (recorded_for)
  bool keeps_trace = false;          ///< what runs after the script's own `set +x` is traced too
  std::vector<WrittenFile> files{};  ///< that were written before
  std::optional<FailingProgram> failing{};
  std::set<std::uint32_t> unanswered{};  ///< lines whose queries to hosts of the job get no answer
  std::vector<ScriptLine> succeeding{};  ///< where the tools of the system do nothing, and succeed
  std::uint64_t later = 0;               ///< seconds from now: `date` tells that time
  Allocation allocation;
  Limits limits;
};

/// Runs the script with bash and records every program that it would start. Only some tasks of a large step
/// are started (recorded_for). Fails if the script cannot be read, or if the kernel does not permit guarding
/// it (shell/guarded.h, whose limits also apply here).
Result<Recording> record(const RecordRequest& request);

}  // namespace nlaunch::shell
