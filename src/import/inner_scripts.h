#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "import/commands.h"

/// Scripts within the script.
namespace nlaunch::import {

struct InnerScript {
  std::string text;
  std::uint32_t offset = 0;  ///< lines before it, in the script
};

/// What a shell is given to read in a word (`bash -c`, `eval`) or behind `<<`; `offset`: lines before the
/// command's own script. Nothing: it is no shell, or reads something that does not stand here.
std::optional<InnerScript> inner_script(const Launch& launch, const lint::Command& command,
                                        std::uint32_t offset, const Values& values);

/// What `eval` is given comes of a program that runs then: `eval "$(tool)"`.
bool evaluates_output(const InnerScript& script);

/// Of a shell in the background, the command that stays; nullptr: none does.
const lint::Command* last_program(const lint::Script& script);

}  // namespace nlaunch::import
