#pragma once
#include "import/commands.h"
#include "import/loops.h"

/// Commands of the shell and of tools that an import knows, each with what it means for the job.
namespace nlaunch::import {

/// Only moves within the script.
bool is_syntax(std::string_view program);
/// Prints, looks, waits or cleans up.
bool is_left_out(std::string_view program);

void read_module(const Launch& launch, Doings& doings);
void read_source(const Launch& launch, Doings& doings);
/// conda and its like: what is activated.
void read_conda(const Launch& launch, Doings& doings);
void read_cd(const Launch& launch, const lint::Command& command, Doings& doings);
/// curl and its like: a question that is asked until there is an answer.
void read_poll(const Launch& launch, const lint::Command& command, const NumberIn& number_in, Doings& doings);
/// `wandb login KEY`, which is never shown: true where it was one.
bool read_login(const Launch& launch, Doings& doings);

}  // namespace nlaunch::import
