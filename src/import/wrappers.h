#pragma once
#include <string>
#include <string_view>

#include "import/commands.h"

namespace nlaunch::import {

/// A variable's name.
bool is_variable_name(std::string_view text);
/// NAME=VALUE.
bool is_assignment(std::string_view text);
/// The path without its folders.
std::string base_name(const std::string& path);

/// An option of srun and sbatch, without its dashes, that says in which image or environment a step is.
bool is_of_image(std::string_view option);
/// What a person has to know where such an option becomes one of nlaunch's step; empty: nothing.
std::string said_of_step(std::string_view option);
/// Leaves a remark on what the launch's srun asks for and nlaunch does not take over.
void remark_step_options(const Launch& launch, Doings& doings);
/// Takes off what stands in front of a program: srun, whose options are kept, env and its variables, timeout,
/// nohup and their like.
void take_off_wrappers(Launch& launch, Doings& doings);
/// Takes off the tool of a container, which the launch is then in; of one that no role can be in (docker),
/// a remark is left. False where there is none, or where nobody can tell what is started in it.
bool take_off_container(Launch& launch, Doings& doings);
/// Of `uv run python x.py`: what is in front of the program becomes its prefix.
void find_started_program(Launch& launch);

}  // namespace nlaunch::import
