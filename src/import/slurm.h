#pragma once
#include "import/import.h"
#include "shell/allocation.h"

namespace nlaunch::import {

/// What the job's directives say about the machine.
struct JobSize {
  std::uint32_t nodes = 1;
  std::uint32_t gpus = 0;   ///< per node; 0: not set
  std::uint32_t tasks = 0;  ///< per node; 0: not set
};

/// The content of #SBATCH lines other than what goes into the files verbatim.
struct JobDirectives {
  JobSize size;
  std::string job_name, account, partition;
  ImportedEntry workdir;
  std::string signal;  ///< for the learners; empty: not set
  std::string before;  ///< "120s"
  std::uint32_t signal_line = 0;
  std::uint32_t cpus_per_task = 0;       ///< 0: not set
  std::uint32_t cpus_per_gpu = 0;        ///< 0: not set
  std::vector<std::string> variables{};  ///< as in shell::AskedFor
  bool counts_tasks = false;             ///< by --ntasks-per-node
  std::vector<std::string> outputs{};    ///< of --output and --error: "log/%j.out"
  std::string array_text;                ///< "0-15%4"
  std::uint32_t array_line = 0;
  std::vector<std::uint32_t> array;                      ///< ids of the tasks of a job array
  std::vector<shell::Allocation::Component> components;  ///< of a heterogeneous job; else empty
};

/// Sorts the script's directives: those of the cluster go to the profile, those of the job to the experiment.
JobDirectives import_directives(const lint::LintInput& input, Imported& out);

/// The job that the srun of a script without directives requests from Slurm, like `#SBATCH` lines would.
/// Empty if none does, or if several request different jobs.
std::vector<lint::StepOption> job_of_steps(const shell::Recording& recording);

/// The only job of a script that submits one and starts nothing else; nullptr for other scripts.
const shell::Submission* only_submission(const shell::Recording& recording);
/// The options of its sbatch, which take precedence over `#SBATCH` lines.
std::vector<lint::StepOption> job_of(const shell::Submission& submission);

/// The job that they request.
shell::Allocation allocation_of(const JobDirectives& directives);

}  // namespace nlaunch::import
