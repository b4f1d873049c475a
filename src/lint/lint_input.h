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

/// What rules look at: environments as somebody wrote them down, and what is known of where they will be
/// used. A plan, a script, a .env file and a Beaker spec all become one of these.
namespace nlaunch::lint {

/// One change to an environment.
struct Setting {
  std::string name;
  std::optional<std::string> value{};  ///< nothing: known only when it runs
  bool unset = false;
  bool exported = true;      ///< false: a variable of the shell alone
  bool sure = true;          ///< false: under a condition that is not decided here
  bool one_command = false;  ///< for one command alone: NAME=VALUE command
  bool in_words = false;     ///< among the words of a command: docker -e NAME=VALUE
  SourceSpan span{};

  /// The value is one that nobody should read: never to be printed.
  [[nodiscard]] bool holds_secret() const;
};

/// What the processes of one kind get: a role's, or everything that a script starts.
struct Environment {
  std::string name;                    ///< of the role; empty for a file
  std::optional<RoleKind> kind;        ///< of the role
  std::vector<std::string> command{};  ///< of the role
  SourceSpan command_span{};
  std::string shares_gpus_with{};  ///< "learner": roles that are on its GPUs at the same time; empty: none
  std::optional<double> gpu_memory{};  ///< of the role
  std::vector<Setting> settings;       ///< in their order: a later one wins
  std::vector<std::string> preload;    ///< libraries by name, as a role asks for them
  SourceSpan preload_span;
  std::string cleaned_by;    ///< what in the role's wrapper keeps variables from the program; empty: nothing
  bool plan_passes = false;  ///< with `cleaned_by`: what the plan asks for gets through, unlike modules
  SourceSpan wrapper_span;
  std::map<std::string, Version> releases;  ///< by owner ("NCCL"), what will be loaded, where known
  /// Names that the script exports, and its job, of a Ray cluster, does not get.
  std::set<std::string> lost{};

  /// The last that sets it for certain, or else the last that may; nullptr when none does.
  [[nodiscard]] const Setting* find(std::string_view variable) const;
  /// The value that it has for certain.
  [[nodiscard]] std::optional<std::string> value(std::string_view variable) const;
  /// Some setting of it, even one under a condition or of an unknown value, might be such that `fits`.
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

/// An option of sbatch or srun, its short name written out.
struct StepOption {
  std::string text;  ///< "--network=disable_rdzv_get"
  SourceSpan span;
};

/// A step of Slurm that starts more than a helper.
struct Step {
  std::vector<std::string> argv;  ///< of what it starts
  std::vector<StepOption> options;
  bool open_ended = false;         ///< there are more, which are only known when it runs
  bool several = false;            ///< it has more than one task
  std::set<std::string> exported;  ///< names in the environment of its tasks
  std::string text;                ///< of its command, as it is written
  SourceSpan span;
};

/// A line that is a comment.
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
  bool background = false;  ///< that program runs behind an &
};

/// A program that the script would start, or that it only asks (sleep, curl), once for each task of its step.
struct Program {
  std::vector<std::string> words;
  std::map<std::string, std::string> environment{};
  SourceSpan span{};
  bool works = false;  ///< it is none that asks, copies or installs
  bool background = false;
  std::optional<std::size_t> step{};  ///< the programs of one launcher have the same
  std::uint32_t node = 0, rank = 0;
  std::uint32_t nodes_of_step = 1;  ///< on how many nodes its step runs; 1: it is in none
  std::uint32_t local_tasks = 1;    ///< the most tasks of its step on one node
  shell::WaitedFor waited{};
};

/// Something of a script that bash did not come to.
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
  std::string set_name;  ///< one that it sets, and that is alike; may be empty
};

/// A shell script: its text as far as sbatch reads it, and what bash ran of it.
struct Script {
  std::shared_ptr<const SourceFile> file;
  std::vector<Comment> comments;
  std::uint32_t first_command = 0;      ///< the line behind which sbatch looks for no directive; 0: none
  std::vector<ScriptCommand> commands;  ///< in the order in which they ran; empty: it was not recorded
  std::vector<Program> programs;        ///< likewise
  std::vector<Unread> failed_tests;     ///< `[ ... ]` that bash could not make sense of
  std::vector<Unread> not_started;      ///< by bash: it cannot write where the output goes
  std::vector<Unread> unread;
  std::vector<UnsetVariable> unset;

  /// The process that runs the script itself, which began before all that it has started.
  [[nodiscard]] int shell() const;
};

struct LintInput {
  std::vector<std::shared_ptr<const SourceFile>> files;  ///< that all of this was read from
  std::vector<Environment> environments;
  /// Those that talk through one NCCL communicator, by index: name of the group, environments.
  std::vector<std::pair<std::string, std::vector<std::size_t>>> groups;
  std::optional<std::uint32_t> nodes;
  std::optional<std::uint32_t> gpus;  ///< of each node, as the directives ask for them
  std::string gpu;                    ///< model as the profile says: "GH200"; empty: unknown
  std::string nics;                   ///< "cxi", "ib", "efa"; empty: unknown
  bool slurm = false;
  bool plan = false;        ///< of a plan: what nlaunch itself takes care of cannot go wrong
  bool by_nlaunch = false;  ///< a script that starts `nlaunch`: the environment is a plan's
  std::vector<Step> steps;
  std::vector<StepOption> batch;  ///< of the job; of a heterogeneous one those of all components
  std::vector<std::vector<StepOption>> components;  ///< of each; empty: the job is not heterogeneous
  std::vector<StepOption> stray;                    ///< words of #SBATCH lines that belong to no option
  std::vector<Setting> conf;           ///< what nccl.conf files of this machine add; their spans say which
  std::vector<Module> modules;         ///< as a script loads them
  std::vector<Setting> from_modules;   ///< what a plan's modules set, where they could be loaded
  std::vector<ExposedSecret> secrets;  ///< in a script's text and its commands
  std::vector<Reading> readings;
  std::optional<Script> script;
  std::set<std::string> began_with;  ///< names of the environment that a script began with
  /// Whether a folder is on this machine; nothing: not looked (a script is often linted elsewhere).
  std::function<bool(const std::string&)> folder_exists;
  /// The file system of a path, where it is one that several machines share: "nfs"; else empty.
  std::function<std::string(const std::string&)> shared_file_system;
};

}  // namespace nlaunch::lint
