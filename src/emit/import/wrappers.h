#pragma once
#include <string>
#include <string_view>

#include "emit/import/commands.h"

namespace nlaunch::emit {

/// A variable's name.
bool is_variable_name(std::string_view text);
/// NAME=VALUE.
bool is_assignment(std::string_view text);
/// The path without its folders.
std::string base_name(const std::string& path);

/// Takes off what stands in front of a program: srun, whose options are kept, env and its variables, timeout,
/// nohup and their like.
void take_off_wrappers(Launch& launch, Doings& doings);
/// Of `uv run python x.py` and containers: what is in front of the program becomes its prefix.
void find_started_program(Launch& launch);

}  // namespace nlaunch::emit
