#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shell/recorder.h"
#include "shell/words.h"

/// The programs that a recorded script starts, each once, no matter how many tasks run it.
namespace nlaunch::import {

/// Variables of a part that differ from the script's initial environment; nullopt: unset.
using Changes = std::map<std::string, std::optional<std::string>>;

/// A file that the script writes and that a part is given; its path and text may differ by task.
struct PartFile {
  std::string path, text;
  bool executable = false;
  bool in_task = false;  ///< written on the node of each task, not on that of the batch script
};

/// Texts use the experiment's syntax: what differs by task is `${self.index}`, `${self.node}`,
/// `${self.local_rank}` or `${self.host}`, and a literal `${` of the script is `$${`.
struct Part {
  std::vector<std::size_t> commands;  ///< of the recording: one per entry of `recorded`
  std::vector<shell::Words> lines;    ///< their unmodified command lines, including wrappers
  std::vector<std::size_t> inner;     ///< commands that run inside one of `commands`, a container
  std::vector<shell::Task> tasks;     ///< all; for a program of the batch script itself, one on node 0
  std::vector<std::size_t> recorded;  ///< indices into `tasks`
  bool in_step = false;               ///< srun, mpirun or ssh starts it
  shell::Words step;                  ///< that launcher's command line
  std::size_t tasks_of_step = 0;      ///< of that launcher, whatever they run
  shell::Words wrapper;               ///< containers, numactl: what comes before its own words
  shell::Words argv;
  std::optional<shell::ProgramInput> input;
  bool may_fail = false;  ///< it fails here, and the script continues
  std::vector<PartFile> files;
  shell::Words program;  ///< what identifies it: `argv`, or what that starts in its container
  Changes changes;
  std::string folder;
  std::string script;  ///< the file that starts it
  std::uint32_t line = 0;
  bool background = false;
  bool first_of_step = false;  ///< the tasks of its step continue with another program after it exits
  std::string problem;         ///< why it is unknown what its tasks run; empty: it is known
};

/// In start order. Does not include programs that are only answered.
std::vector<Part> parts_of(const shell::Recording& recording, const shell::Allocation& allocation);

/// The script waited for `a` to exit, or ran it in the foreground, before `b` starts.
bool had_exited(const shell::Recording& recording, const Part& a, const Part& b);
/// The same, if `a` is in the background.
bool had_ended(const shell::Recording& recording, const Part& a, const Part& b);
/// The script does not end before all of its processes have exited.
bool is_awaited(const shell::Recording& recording, const Part& part);
/// The script goes on after its last program: it sleeps, or loops and only waits.
bool holds_at_its_end(const shell::Recording& recording);
/// True if the script killed some of `a` before `b` starts.
bool was_ended(const shell::Recording& recording, const Part& a, const Part& b);

/// A command line that gets its input from arguments: `python -c PROGRAM` for `python - <<EOF`, or bash,
/// which executes the program.
shell::Words with_input(shell::Words argv, const std::optional<shell::ProgramInput>& input);

/// A command line that exits with 0 if its program fails.
shell::Words going_on(shell::Words argv);

/// The line of a shell that expands some of the words to files.
std::string line_with_globs(const shell::Words& argv, const shell::Words& globs);

/// The command that writes files: a path, a text and permissions for each.
shell::Words command_of_files(const std::vector<PartFile>& files);

/// Escapes a text of the script for an experiment, in which `${` starts a placeholder.
std::string escaped(std::string_view text);

/// True for variables that Slurm and bash set for a task or the batch script, which are not settings of the
/// script.
bool is_set_by_slurm(std::string_view name);

}  // namespace nlaunch::import
