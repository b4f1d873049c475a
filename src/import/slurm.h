#pragma once
#include "import/import.h"
#include "import/roles.h"
#include "shell/allocation.h"

namespace nlaunch::import {

/// What the #SBATCH lines say beside what goes into the files as it is.
struct JobDirectives {
  JobSize size;
  std::string job_name;
  ImportedEntry workdir;
  std::string signal;  ///< for the learners; empty: not said
  std::string before;  ///< "120s"
  std::uint32_t signal_line = 0;
  bool requeue = false;
  std::uint32_t cpus_per_task = 0;                             ///< 0: not said
  std::vector<std::pair<std::string, std::uint32_t>> numbers;  ///< what Slurm sets for the job, by name
};

/// Sorts the script's directives: what belongs to the cluster into the profile, what to the job into the
/// experiment.
JobDirectives import_directives(const lint::LintInput& input, Imported& out);

/// The job that they ask for.
shell::Allocation allocation_of(const JobDirectives& directives);

}  // namespace nlaunch::import
