#pragma once
#include <cstdint>
#include <string>

#include "import/commands.h"
#include "import/loops.h"

/// How a job continues itself when its time is over.
namespace nlaunch::import {

/// `sbatch`: of the script itself, whose file has that name, or of another one.
void read_resubmission(const lint::Command& command, std::uint32_t line, const std::string& script,
                       const NumberIn& number, Doings& doings);
/// A trap may hand the job back to Slurm.
void read_trap(const Launch& launch, const std::string& script, const NumberIn& number, Doings& doings);

}  // namespace nlaunch::import
