#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"
#include "base/words.h"
#include "lint/secrets.h"
#include "shell/processes.h"

/// The input of rules: environments as written, and what is known about where they will be used. A plan, a
/// script, a .env file and a Beaker spec all become one of these.
namespace nlaunch::lint {

/// One change to an environment.
struct Setting {
  std::string name;
  std::optional<std::string> value{};  ///< nullopt: known only when it runs
  bool unset = false;
  bool exported = true;      ///< false: only a variable of the shell
  bool sure = true;          ///< false: under a condition that cannot be decided here
  bool one_command = false;  ///< only for one command: NAME=VALUE command
  bool in_words = false;     ///< in the arguments of a command: docker -e NAME=VALUE
  SourceSpan span{};

  /// True if the value is a secret: it must never be printed.
  [[nodiscard]] bool holds_secret() const;
};

/// The environment of one kind of process: a role's, or everything that a script starts.
struct Environment {
  std::string name;                    ///< of the role; empty for a file
  std::optional<RoleKind> kind;        ///< of the role
  std::vector<std::string> command{};  ///< of the role
  SourceSpan command_span{};
  std::string shares_gpus_with{};      ///< "learner": roles that use its GPUs at the same time; empty: none
  std::optional<double> gpu_memory{};  ///< of the role
  std::vector<Setting> settings;       ///< in order: a later one wins
  std::vector<std::string> preload;    ///< libraries by name, as a role requests them
  SourceSpan preload_span;
  std::string
      cleaned_by;  ///< the part of the role's wrapper that keeps variables from the program; empty: none
  bool plan_passes =
      false;  ///< with `cleaned_by`: variables of the plan get through, unlike those of modules
  SourceSpan wrapper_span;
  std::map<std::string, Version> releases;  ///< by owner ("NCCL"): what will be loaded, if known
  /// Names that the script exports but its Ray job does not get.
  std::set<std::string> lost{};

  /// The last setting that certainly sets it, else the last that may; nullptr if none does.
  [[nodiscard]] const Setting* find(std::string_view variable) const;
  /// The value that it certainly has.
  [[nodiscard]] std::optional<std::string> value(std::string_view variable) const;
  /// Whether a setting of it, even a conditional one or one with an unknown value, might satisfy `fits`.
  [[nodiscard]] bool may(std::string_view variable,
                         const std::function<bool(const std::string&)>& fits) const;
  /// The release of an owner, or nullptr.
  [[nodiscard]] const Version* release(std::string_view owner) const;
};

/// A text that may read variables by name: a program's source, a script's own expansions.
struct Reading {
  std::string name;
  std::string text;
};

struct Module {
  std::string name;  ///< as it is loaded: "brics/nccl/2.21.5-1"
  SourceSpan span;
};

/// An option of sbatch or srun, with its long name.
struct StepOption {
  std::string text;  ///< "--network=disable_rdzv_get"
  SourceSpan span;
};

/// A step of Slurm that starts more than a helper.
struct Step {
  std::vector<std::string> argv;  ///< of what it starts
  std::vector<StepOption> options;
  bool open_ended = false;         ///< there are more, known only when it runs
  bool several = false;            ///< it has more than one task
  std::set<std::string> exported;  ///< names in the environment of its tasks
  std::string text;                ///< of its command, as it is written
  SourceSpan span;
};

/// A comment line.
struct Comment {
  std::string text;  ///< with the #
  SourceSpan span;
};

/// A command that bash ran.
struct ScriptCommand {
  std::vector<std::string> words;  ///< as the command gets them
  SourceSpan span;
  int shell = 0;            ///< the process that ran it
  bool works = false;       ///< it starts a program that does the work
  bool background = false;  ///< that program runs in the background (&)
};

/// A program that the script would start, or that only queries or waits (sleep, curl), once per task of its
/// step.
struct Program {
  std::vector<std::string> words;
  std::map<std::string, std::string> environment{};
  SourceSpan span{};
  SourceSpan called{};  ///< where the script itself starts it, or calls the file that does; no file: unknown
  bool works = false;   ///< does not just query, copy or install
  bool background = false;
  std::optional<std::size_t> step{};  ///< the same for all programs of one launcher
  std::uint32_t node = 0, rank = 0;
  std::uint32_t nodes_of_step = 1;  ///< the number of nodes of its step; 1: not in a step
  std::uint32_t local_tasks = 1;    ///< the most tasks of its step on one node
  std::string output{};             ///< the file that it prints to, which its start truncates; empty: none
  std::string asked_port{};         ///< in its words, and another command asks whether it answers there
  shell::WaitedFor waited{};
  std::size_t recorded_as = 0;  ///< its index among the commands of the recording
};

/// A program that a script starts only after a failure.
struct Substitute {
  std::string name;
  std::uint32_t line = 0;
};

/// What the script did when bash ran it again and a program exited with 1: the first time, a server always.
struct Trial {
  std::size_t program = 0;         ///< the first of them, by its index
  std::size_t turns = 1;           ///< of a line that starts it so often in turn, only the first failed
  bool restarts = false;           ///< a server: it starts again
  bool without_end = false;        ///< if it fails each time, the script starts it again each time
  bool tries_unseen = false;       ///< if all tries of it fail, the script exits with 0
  bool last_is_told = false;       ///< if the last of those fails, the script does not exit with 0
  bool serves = false;             ///< it is a server in the background that never answers
  std::optional<int> exit_code{};  ///< of the script; nullopt: it did not end
  bool waits = false;              ///< then: it only waited, until that was enough
  std::uint64_t waited = 0;        ///< seconds of `sleep` between the failure and the last question for it
  std::size_t questions = 0;       ///< how often it asked the same, at most
  bool kills_more = false;    ///< behind the failure it killed or stopped something, and does not without it
  bool ends_nothing = false;  ///< it did not, and does without the failure
  bool sure = true;  ///< false: it asked for something that is made up, and may depend on the failure
  std::vector<std::size_t> later{};        ///< programs that start after it without a failure, and did
  std::vector<Substitute> replacements{};  ///< what started only because of the failure, or once more
  std::uint32_t skipped_line = 0;          ///< the line behind it, if that did not run then; 0: it did
  std::uint32_t submits_itself = 0;        ///< the line on which the job submits or requeues itself; 0: none
  std::shared_ptr<const Trial> hung{};  ///< of a server: what the script does if it runs, but never answers
};

/// What a script does if nobody answers the query on a line, to a host of the job for which it starts no
/// server.
struct Unanswered {
  std::uint32_t line = 0;
  std::size_t times = 0;              ///< how often it asked the same, at most
  bool waits = false;                 ///< in the end it only waited
  std::optional<int> exit_code{};     ///< of the script; nullopt: it did not end
  std::vector<Substitute> others{};   ///< what it starts only then
  std::vector<Substitute> missing{};  ///< what it does not start then
};

/// What the script does when its first sbatch fails.
struct FailedSubmission {
  SourceSpan span{};
  std::optional<int> exit_code{};  ///< of the script; nullopt: it did not end
  std::uint32_t next = 0;          ///< the line of a job that should wait for it, and is submitted; 0: none
  std::string dependency{};        ///< what that one asks for then: "--dependency=afterok:"; empty: nothing
};

/// A program whose output the script keeps in a variable, and which fails: the script goes on.
struct FailedValue {
  std::string program;   ///< its name for people
  std::string variable;  ///< then empty, or without what the program would have printed
  std::size_t used_by;   ///< an index into Script::programs: one that starts with it all the same
  SourceSpan span;
};

/// A part of a script that bash did not reach.
struct Unread {
  SourceSpan span{};
  Severity severity = Severity::warning;
  std::string message{};
  std::string why{};
  std::string instead{};
};

/// A variable that a script uses and nothing sets.
struct UnsetVariable {
  std::string name;
  SourceSpan span;
  std::string set_name{};    ///< a similar one that it sets; may be empty
  bool ends_script = false;  ///< with set -u
};

/// A file that the script writes and gives to a program.
struct OwnFile {
  std::string path;
  std::string text;  ///< empty: not known
  SourceSpan span;   ///< of the program
};

/// A file that `tee` truncates.
struct TeedFile {
  std::string path;
  SourceSpan span;
};

/// A shell script: the text that sbatch reads, and what bash ran.
struct Script {
  std::shared_ptr<const SourceFile> file;
  std::string folder{};  ///< where it was recorded as submitted; empty: unknown
  std::vector<Comment> comments;
  std::uint32_t first_command = 0;      ///< the line after which sbatch ignores directives; 0: none
  int exit_code = 0;                    ///< if all its programs succeed; 0 if it was not recorded to its end
  std::uint32_t last_line = 0;          ///< the last line that ran then
  bool misses_source = false;           ///< a file that it sources was not read: it may set traps
  std::vector<ScriptCommand> commands;  ///< in execution order; empty: it was not recorded
  int shell = 0;                        ///< the process that runs the script itself
  std::map<int, int> shells_above;      ///< subshell → the shell that forked it; `bash -c` has none
  std::vector<Program> programs;        ///< likewise
  std::optional<FailedSubmission> failed_submission{};
  std::vector<Unanswered> unanswered{};
  std::vector<FailedValue> failed_values{};
  std::vector<Trial> trials;         ///< of programs that work; empty if the script does not reach its end
  std::vector<Unread> failed_tests;  ///< `[ ... ]` that bash could not evaluate
  std::vector<Unread> not_started;   ///< not started by bash, which cannot write the output file
  std::vector<Unread> unread;
  std::vector<UnsetVariable> unset;
  std::vector<OwnFile> own_files;
  std::vector<TeedFile> teed;
  /// As another job, of the next day, would run it, or another task of the array: what is the same there does
  /// not depend on the job.
  /// nullptr: unknown, or it starts other programs.
  std::shared_ptr<const Script> in_next_job{};
};

/// A script that a script submits as a job.
struct SubmittedScript {
  std::string path;
  std::vector<std::string> arguments;
  std::vector<std::string> variables;  ///< "NAME=VALUE"
  std::vector<std::string> options;    ///< of sbatch
  SourceSpan span;                     ///< of that command
};

struct LintInput {
  std::vector<std::shared_ptr<const SourceFile>> files;  ///< from which all of this was read
  std::vector<Environment> environments;
  /// Environments that share an NCCL communicator: name of the group, indices of environments.
  std::vector<std::pair<std::string, std::vector<std::size_t>>> groups;
  std::optional<std::uint32_t> nodes;
  std::optional<std::uint32_t> gpus;  ///< per node, as the directives request
  std::string gpu;                    ///< the model from the profile: "GH200"; empty: unknown
  std::string nics;                   ///< "cxi", "ib", "efa"; empty: unknown
  bool slurm = false;
  bool plan = false;        ///< of a plan: what nlaunch itself handles cannot go wrong
  bool by_nlaunch = false;  ///< a script that starts `nlaunch`: the environment comes from a plan
  std::vector<Step> steps;
  std::vector<StepOption> batch;  ///< of the job; if heterogeneous, those that apply to all components
  std::vector<std::vector<StepOption>> components;  ///< per component; empty: the job is not heterogeneous
  std::vector<StepOption> stray;       ///< words in #SBATCH lines that do not belong to an option
  std::vector<Setting> conf;           ///< what this machine's nccl.conf files add; the spans tell which file
  std::vector<Module> modules;         ///< as a script loads them
  std::vector<Setting> from_modules;   ///< what a plan's modules set, if they could be loaded
  std::vector<ExposedSecret> secrets;  ///< in a script's text and its commands
  std::vector<Reading> readings;
  std::optional<Script> script;
  std::vector<SubmittedScript> submitted;
  std::set<std::string> began_with;     ///< names in a script's initial environment
  std::vector<std::string> given{};     ///< "NAME=VALUE" of --env
  std::vector<std::string> existing{};  ///< what the user says the cluster has: as in shell::RecordRequest
  /// Whether a directory exists on this machine; empty: not checked (a script is often linted elsewhere).
  std::function<bool(const std::string&)> folder_exists;
  /// The file system of a path if it is shared between machines: "nfs"; else empty.
  std::function<std::string(const std::string&)> shared_file_system;
};

}  // namespace nlaunch::lint
