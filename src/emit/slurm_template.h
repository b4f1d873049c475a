#pragma once
#include <memory>

#include "base/diagnostic.h"
#include "emit/template.h"

/// The template of a Slurm batch script. Its head, the comments above the first command, is where sbatch
/// reads directives; its last line execs nlaunch.
namespace nlaunch::emit {

/// The built-in template.
std::shared_ptr<const SourceFile> built_in_slurm_template();

/// Reads a template and checks that no inserted value can be misread: directives are alone on their line in
/// the head, the command alone on the last line after `exec`, everything else in comments of the head.
Result<Template> read_slurm_template(std::shared_ptr<const SourceFile> file);

}  // namespace nlaunch::emit
