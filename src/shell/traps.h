#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shell/words.h"

/// The command `trap`, by its words as a shell gets them.
namespace nlaunch::shell {

/// What a `trap` command changes.
struct Trap {
  std::optional<std::string> handler;  ///< nullopt: the signals are reset; empty: they are ignored
  std::vector<std::string> signals;    ///< by name: "USR1", "EXIT"

  [[nodiscard]] bool names(std::string_view signal) const;
  /// True if the handler runs at this signal.
  [[nodiscard]] bool catches(std::string_view signal) const;
};

/// "USR1" for "SIGUSR1", "usr1" and "10"; "EXIT" for "0".
std::string signal_name(std::string_view signal);

/// nullopt for another command, and for a `trap` that only prints.
std::optional<Trap> trap_of(const Words& words);
/// True if the command sets a handler for this signal (by name; EXIT, ERR and DEBUG are signals too).
bool sets_trap(const Words& words, std::string_view signal);

}  // namespace nlaunch::shell
