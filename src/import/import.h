#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/words.h"
#include "import/parts.h"
#include "lint/rule.h"

/// From the recording of a batch script (shell/recorder.h) to an experiment and a site profile.
namespace nlaunch::import {

/// The place in the two files where a remark belongs.
enum class Destination {
  experiment,  ///< the experiment's head
  workdir,
  environment,
  secrets,
  roles,
  walltime,
  slurm,
  profile,  ///< the profile's head
  scheduler,
  node,
  modules,
  site_environment,
  libraries,
};

/// Something that the user must know or decide, written as a comment.
struct Remark {
  std::uint32_t line = 0;  ///< of the script; 0: of none
  std::string text;
};

/// A key with its value as written to the files, including placeholders.
struct ImportedEntry {
  std::string name;
  std::string value;
  std::uint32_t line = 0;
  std::string remark;  ///< appended to the line; may be empty
};

struct ImportedEnvironment {
  std::vector<ImportedEntry> unset;  ///< without values
  std::vector<ImportedEntry> set;
  std::vector<ImportedEntry> prepend;
  std::vector<ImportedEntry> append;
};

struct ImportedSecret {
  std::string name;
  std::string kind;   ///< "env", "netrc", "file"
  std::string value;  ///< the host, the path; empty for env
  std::uint32_t line = 0;
  std::string remark;
};

struct ImportedReady {
  std::string http{};  ///< one of these six
  std::string tcp{};
  bool exited = false;
  std::string log{};
  std::vector<std::string> exec{};
  std::string delay{};    ///< "60s"
  std::string timeout{};  ///< empty with `exited` and `delay`
  std::uint32_t line = 0;
};

/// The recording as if the script named GPUs as plans do: ROCR_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES of a
/// program becomes CUDA_VISIBLE_DEVICES, which HIP reads too. Not if it is the same for all tasks of a step,
/// or if the program has another of the three.
shell::Recording with_cuda_names(shell::Recording recording);

/// Put in front of a server that rejects the empty CUDA_VISIBLE_DEVICES of a role without GPUs.
inline const std::vector<std::string> kWithoutVisible{"env", "-u", "CUDA_VISIBLE_DEVICES"};

/// A secret in a command line, and the variable that holds it.
struct HandedOver {
  std::string value;
  std::string name;
};

struct ImportedRole {
  std::string name;
  std::optional<std::size_t> part;    ///< index into Imported::parts; nullopt for a role that others spawn
  std::optional<std::size_t> writes;  ///< the part whose files it writes; it has no part itself
  std::optional<std::size_t>
      asks;  ///< the recorded command that it repeats until it succeeds; it has no part itself
  RoleKind kind = RoleKind::service;
  std::uint32_t line = 0;
  std::uint32_t count = 0;        ///< 0: not set
  std::uint32_t per_node = 0;     ///< 0: not set
  bool each_node = false;         ///< per: node
  bool ray = false;               ///< `ray start`
  bool may_end = false;           ///< exit: ok
  bool sees_gpus_of_ray = false;  ///< kWithoutVisible is put in front of it
  std::string except;
  std::vector<std::string> pools;  ///< empty: all nodes
  std::uint32_t gpus = 0;
  std::vector<std::string> share_gpus_with;
  bool rendezvous = false;
  std::vector<std::string> ports;
  std::vector<std::string> port_markers{};  ///< the port of the simulated job that each of them stands for
  std::vector<std::string> preload;
  std::string workdir;  ///< empty: the experiment's
  std::string venv;     ///< likewise
  std::vector<std::string> wrapper;
  std::vector<std::string> command;
  std::vector<std::string> globs;       ///< words that bash expands: if there are any, `command` is a shell
  std::vector<HandedOver> handed_over;  ///< if any: `command` is a shell that has them as variables
  ImportedEnvironment environment;
  std::optional<ImportedReady> ready;
  std::string grace;  ///< of `stop`; empty: not set
  std::optional<bool> ends_run;
  std::vector<std::string> spawned_by;
  std::string classify;
  std::vector<Remark> remarks;
};

struct ImportedWalltime {
  std::string signal;  ///< empty: not set
  std::string before;
  Walltime::Then then = Walltime::Then::stop;
  std::uint32_t max = 0;
  std::uint32_t line = 0;
};

struct ImportedLibrary {
  std::string name;
  std::string path;
  std::uint32_t line = 0;
};

/// A component of a heterogeneous job, or nodes that run the same programs.
struct ImportedPool {
  std::string name;  ///< "group-1", "nodes-1-3"
  std::uint32_t nodes = 1;
  std::optional<std::uint32_t> gpus;  ///< per node; nullopt: as on all nodes
  std::vector<ImportedEntry> slurm;   ///< requests that differ between pools
};

/// The result of importing a script.
struct Imported {
  std::string script;  ///< the file's name
  std::string folder;  ///< of the experiment; empty: unknown
  // The experiment.
  std::string name;
  std::uint32_t nodes = 1;
  std::vector<ImportedPool> pools;  ///< empty: all nodes are alike
  ImportedEntry workdir;            ///< without a value: not set
  ImportedEntry venv;
  std::vector<ImportedEntry> vars;
  ImportedEnvironment environment;
  std::vector<ImportedSecret> secrets;
  std::vector<ImportedRole> roles;  ///< if empty, there is no experiment
  std::vector<std::vector<std::string>> start;
  std::optional<ImportedWalltime> walltime;
  std::vector<ImportedEntry> slurm;
  // The profile.
  std::string site;
  bool scheduler = false;           ///< Slurm's
  std::vector<std::string> submit;  ///< site-specific options of sbatch
  std::vector<ImportedEntry> directives;
  std::vector<ImportedEntry> srun;
  std::uint32_t gpus = 0;
  std::string gpu;        ///< "GH200"
  std::string nics;       ///< "cxi"
  std::string interface;  ///< "hsn"
  std::string scratch;
  std::string modules_init;
  bool modules_reset = false;
  std::vector<ImportedEntry> modules;
  std::vector<ImportedEntry> module_paths;  ///< of `module use`
  ImportedEnvironment site_environment;
  std::vector<ImportedLibrary> libraries;
  // Both.
  std::map<Destination, std::vector<Remark>> remarks;
  std::vector<Part> parts;
  std::size_t too_many = 0;         ///< programs, of which no roles were made; 0: they are not
  bool fewer_gpus = false;          ///< a program sees fewer GPUs than in the script
  std::vector<Remark> not_said;     ///< what the job needs but neither file can express
  std::vector<std::string> became;  ///< for each command of the recording: "learner", "left out: ..."
};

/// The role that a recorded command, or a launcher above it, became, by their indices; nullopt if none.
std::optional<std::size_t> role_of(const Imported& imported, const shell::Recording& recording,
                                   std::size_t command);

/// Whether the nodes of a job that is not heterogeneous are one pool, or split by the programs that they run.
enum class Nodes { alike, by_programs };

/// `input`: the script as lint reads it (lint/script_input.h), for its directives. `findings`: lint's
/// findings; errors are noted next to the values, which are kept. `name`: of the experiment and the profile;
/// empty: the script's. `folder`: their absolute directory. The result contains no secret that is written in
/// the script. Fails if no experiment would be the same job.
Result<Imported> import_script(const lint::LintInput& input, const std::vector<lint::Finding>& findings,
                               const shell::Recording& recording, const shell::Allocation& allocation,
                               const std::string& name, const std::string& folder,
                               Nodes nodes = Nodes::alike);

/// The two files. Each is valid, whatever the script contains.
std::string experiment_text(const Imported& imported);
std::string profile_text(const Imported& imported);

}  // namespace nlaunch::import
