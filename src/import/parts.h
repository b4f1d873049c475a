#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shell/recorder.h"
#include "shell/words.h"

/// The programs that a recorded script starts, each once, however many tasks run it.
namespace nlaunch::import {

/// Variables that a part has otherwise than the script began with; nothing: unset.
using Changes = std::map<std::string, std::optional<std::string>>;

/// A file that the script writes and a part is told of; its path and its text may differ by task.
struct PartFile {
  std::string path, text;
  bool executable = false;
  bool in_task = false;  ///< written on the node of each of its tasks, not on that of the batch script
};

/// Texts are those of an experiment: what differs by task is `${self.index}`, `${self.node}`,
/// `${self.local_rank}` or `${self.host}`, and a `${` of the script's own is `$${`.
struct Part {
  std::vector<std::size_t> commands;  ///< of the recording: one for each of `recorded`
  std::vector<shell::Words> lines;    ///< their command lines as they are, with what stands in front
  std::vector<std::size_t> inner;     ///< commands that run within one of `commands`, a container
  std::vector<shell::Task> tasks;     ///< all; of a program of the batch script itself one, on node 0
  std::vector<std::size_t> recorded;  ///< indices into `tasks`
  bool in_step = false;               ///< srun, mpirun or ssh starts it
  shell::Words step;                  ///< that launcher's command line
  std::size_t tasks_of_step = 0;      ///< of that launcher alone, whatever they run
  shell::Words wrapper;               ///< containers, numactl: what stands in front of its own words
  shell::Words argv;
  std::optional<shell::ProgramInput> input;
  bool may_fail = false;  ///< it fails here, and the script goes on
  std::vector<PartFile> files;
  shell::Words program;  ///< what it is known by: `argv`, or what that starts in its container
  Changes changes;
  std::string folder;
  std::string script;  ///< the file that starts it
  std::uint32_t line = 0;
  bool background = false;
  bool first_of_step = false;  ///< the tasks of its step go on with another program when it has ended
  std::string problem;         ///< why it cannot be told what its tasks run; empty: it can
};

/// In the order of their starts. Programs that only answer are none.
std::vector<Part> parts_of(const shell::Recording& recording, const shell::Allocation& allocation);

/// `a` is in the background, and the script has waited for its end before `b` begins.
bool had_ended(const shell::Recording& recording, const Part& a, const Part& b);
/// The script has ended some of `a` (`kill`) before `b` begins.
bool was_ended(const shell::Recording& recording, const Part& a, const Part& b);

/// A command line that is given its input by arguments: `python -c PROGRAM` of `python - <<EOF`, or bash,
/// which becomes the program.
shell::Words with_input(shell::Words argv, const std::optional<shell::ProgramInput>& input);

/// A command line that ends with 0 where its program fails.
shell::Words going_on(shell::Words argv);

/// The line of a shell that puts files in the place of some of the words.
std::string line_with_globs(const shell::Words& argv, const shell::Words& globs);

/// The command that writes files: a path, a text and rights for each.
shell::Words command_of_files(const std::vector<PartFile>& files);

/// A text of the script as one of an experiment, which reads `${` as a reference.
std::string escaped(std::string_view text);

/// Of the task of a step and of the batch script: what Slurm and bash set, which is no setting of the script.
bool is_set_by_slurm(std::string_view name);

}  // namespace nlaunch::import
