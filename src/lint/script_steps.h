#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lint/lint_input.h"

/// What a script asks of Slurm.
namespace nlaunch::lint {

/// Whether an option of srun has its value in the next word.
bool srun_takes_value(std::string_view option);

/// The options and the program of an srun. A variable without quotes may hold several words, as it does for
/// bash.
Step read_step(const Command& command,
               const std::function<std::optional<std::string>(const Word&)>& value_of);

/// A step that is there for a look, not for the job: its options matter to nobody.
bool is_helper(const Step& step);

/// The options of the script's #SBATCH lines, as "--name=value", with short ones written out.
std::vector<StepOption> batch_options(const Script& script);

}  // namespace nlaunch::lint
