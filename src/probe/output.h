#pragma once
#include <nlohmann/json.hpp>

#include "base/diagnostic.h"

namespace nlaunch::probe {

/// Keeps standard output for the probe's JSON lines: what libraries print there (NCCL's log) goes to standard
/// error from now on. Call it before any library is loaded.
void claim_stdout();

/// Prints one line, whole, at once. Safe from several threads.
void emit(const nlohmann::json& line);

/// Gives the JSON stream back its number 1, for a program that this process is about to become.
void release_stdout();

/// The messages of a failure as one text.
std::string text_of(const Diagnostics& why);

}  // namespace nlaunch::probe
