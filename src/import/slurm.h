#pragma once
#include "import/import.h"
#include "shell/allocation.h"

namespace nlaunch::import {

/// What the job's directives say of the machine.
struct JobSize {
  std::uint32_t nodes = 1;
  std::uint32_t gpus = 0;   ///< of each node; 0: not said
  std::uint32_t tasks = 0;  ///< of each node; 0: not said
};

/// What the #SBATCH lines say beside what goes into the files as it is.
struct JobDirectives {
  JobSize size;
  std::string job_name, account, partition;
  ImportedEntry workdir;
  std::string signal;  ///< for the learners; empty: not said
  std::string before;  ///< "120s"
  std::uint32_t signal_line = 0;
  std::uint32_t cpus_per_task = 0;  ///< 0: not said
  std::string array_text;           ///< "0-15%4"
  std::uint32_t array_line = 0;
  std::vector<std::uint32_t> array;                      ///< ids of the tasks of a job array
  std::vector<shell::Allocation::Component> components;  ///< of a heterogeneous job; else empty
};

/// Sorts the script's directives: what belongs to the cluster into the profile, what to the job into the
/// experiment.
JobDirectives import_directives(const lint::LintInput& input, Imported& out);

/// What the srun of a script without directives asks of Slurm: a job of its own, as `#SBATCH` lines would.
/// Empty where none does, or where several ask for different jobs.
std::vector<lint::StepOption> job_of_steps(const shell::Recording& recording);

/// The one job that a script submits which starts nothing else; nullptr: it is another one.
const shell::Submission* only_submission(const shell::Recording& recording);
/// The options of its sbatch, which go before `#SBATCH` lines.
std::vector<lint::StepOption> job_of(const shell::Submission& submission);

/// The job that they ask for.
shell::Allocation allocation_of(const JobDirectives& directives);

}  // namespace nlaunch::import
