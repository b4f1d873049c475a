#pragma once
#include <memory>

#include "base/diagnostic.h"
#include "emit/template.h"

/// The template of a Slurm batch script. Its head, the comments above the first command, is what sbatch reads
/// for directives; its last line becomes nlaunch.
namespace nlaunch::emit {

/// The one that comes with nlaunch.
std::shared_ptr<const SourceFile> built_in_slurm_template();

/// Reads a template and checks that nothing put into it can be taken for something else: directives stand on
/// a line of their own in the head, the command alone on the last line behind `exec`, all else in comments
/// of the head.
Result<Template> read_slurm_template(std::shared_ptr<const SourceFile> file);

}  // namespace nlaunch::emit
