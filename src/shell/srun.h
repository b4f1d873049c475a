#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shell/words.h"

/// The command lines of srun(1) and sbatch(1).
namespace nlaunch::shell {

struct SrunOption {
  std::string name;  ///< the long name: "ntasks" for `-n 2`, "cpu-bind" for `--cpu_bind=none`
  std::optional<std::string> value{};  ///< empty for `--container-image=`
  bool known = true;                   ///< false: from a site plugin
};

/// srun's own options, in order.
std::vector<SrunOption> options_of_srun(const Words& argv);

/// The value of the last option with that name; nullopt if there is none or it has no value.
std::optional<std::string> value_of(const std::vector<SrunOption>& options, std::string_view name);

/// The number of words that belong to srun itself: the program follows them.
std::size_t words_of_srun(const Words& argv);

/// The same for sbatch: the script follows them.
std::size_t words_of_sbatch(const Words& argv);

/// True if an srun option ("--nodes" or "-N") has its value in the next word.
bool takes_value_of_srun(const std::string& option);
bool takes_value_of_sbatch(const std::string& option);

}  // namespace nlaunch::shell
