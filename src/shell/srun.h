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
  std::string name;                    ///< the long one: "ntasks" of `-n 2`, "cpu-bind" of `--cpu_bind=none`
  std::optional<std::string> value{};  ///< that of `--container-image=` is empty
  bool known = true;                   ///< false: of a plugin of the cluster
};

/// Its own options, in their order.
std::vector<SrunOption> options_of_srun(const Words& argv);

/// The value of the last of that name; nothing: there is none, or it has no value.
std::optional<std::string> value_of(const std::vector<SrunOption>& options, std::string_view name);

/// How many words of an srun are its own: the program stands behind them.
std::size_t words_of_srun(const Words& argv);

/// The same of an sbatch: the script stands behind them.
std::size_t words_of_sbatch(const Words& argv);

/// An option of srun, "--nodes" or "-N", has its value in the next word.
bool takes_value_of_srun(const std::string& option);
bool takes_value_of_sbatch(const std::string& option);

}  // namespace nlaunch::shell
