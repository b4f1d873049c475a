#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "import/commands.h"
#include "import/loops.h"

namespace nlaunch::import {

/// Where a command stands: within how much, and under what.
struct Context {
  std::uint32_t offset = 0;  ///< lines before its script
  unsigned depth = 0;
  unsigned calls = 0;           ///< of functions, around it
  std::uint32_t call_line = 0;  ///< of the outermost of these
  bool own_shell = false;       ///< bash -c: what it sets, the script does not have
  Launch around;                ///< srun and variables that stand in front of it
};

/// The variables that a script sets, and those of them that its programs get, command by command.
class ScriptVariables {
 public:
  explicit ScriptVariables(Doings& doings) : out_(doings) {}

  /// NAME=VALUE, and what export, declare, readonly, typeset and local do. What the shell of `bash -c`
  /// exports goes to the launches behind it there, by the context.
  void assign(const lint::Command& command, Context& context);
  void set(Exported made);
  void unset(const Launch& launch, const lint::Command& command, const Context& context);
  /// `read NAME`, `mapfile NAME`: what it gets, as far as that stands in the script.
  void read(const Launch& launch, const lint::Command& command);
  /// `set -a`: all that is set from here on is exported.
  void set_option(const lint::Command& command);

  /// What a number or a variable in the text of a loop stands for; 0: no number. Valid as long as this is.
  [[nodiscard]] NumberIn number() const;

  /// At the end of the script: hands them over, in their order.
  void finish();

 private:
  void hand_on(Launch::Variable variable, const lint::Command& command, Context& context);

  Doings& out_;
  std::map<std::string, Exported> variables_;
  std::set<std::string> exported_;
  bool all_exported_ = false;
};

}  // namespace nlaunch::import
