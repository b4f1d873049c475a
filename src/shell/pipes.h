#pragma once
#include <map>
#include <string>

#include "shell/guarded.h"

namespace nlaunch::shell {

/// Who reads what programs print.
class Pipes {
 public:
  /// A program reads from one pipe, and may print to another.
  void note(const ProgramStart& start);
  /// `$(…)` and `| while read`, not `| tee log`.
  [[nodiscard]] bool is_read_by_shell(std::string pipe) const;

 private:
  std::map<std::string, std::string> passed_on_;  ///< a pipe → where its reader prints
};

/// A line of a script shows what its substitutions print, and does nothing else with it:
/// `echo "Python: $(python --version)"`.
bool only_shows(std::string line);

}  // namespace nlaunch::shell
