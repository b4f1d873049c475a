#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "shell/recorder.h"

/// Tests that only this machine fails: a file, a program or a container that is on the cluster, a variable or
/// an argument that the user gives.
namespace nlaunch::lint {

/// A test that made a script exit, or wait without end, and what it asks for.
struct Guard {
  std::string script{};  ///< the file that has the test
  std::uint32_t line = 0;
  std::string what;  ///< "/scratch/model exists"
  /// What makes it succeed: a file or directory, a variable, arguments, and the output of a command.
  std::vector<shell::WrittenFile> files{};
  std::vector<std::string> variables{};
  std::size_t arguments = 0;  ///< how many there have to be; 0: it does not ask for them
  std::vector<std::pair<std::string, std::string>> prints{};
  std::vector<shell::ScriptLine> succeeding{};  ///< where the tools of this machine succeed
  bool unbound = false;  ///< set -u: the script ends there if nothing sets the variable
};

/// A recording, and the tests that were assumed to succeed in it.
struct PassedGuards {
  shell::Recording recording;
  shell::RecordRequest request;  ///< that has their answers
  std::vector<Guard> guards{};
};

/// The tests that a recording which did not reach its end ran last, the nearest first.
std::vector<Guard> last_guards(const shell::Recording& recording);

/// Records the script again, with such tests answered as on the cluster, as long as it gets further.
PassedGuards pass_guards(shell::RecordRequest request, shell::Recording recording);

}  // namespace nlaunch::lint
