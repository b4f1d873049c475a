#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "shell/words.h"

/// What a program does in a job, from its command line: each kind is a row of a table in work.cpp.
namespace nlaunch::import {

enum class Work {
  training,    ///< it trains, or starts what trains
  engine,      ///< a server that generates
  ray_head,    ///< ray start --head
  ray_worker,  ///< ray start --address=...
  nothing,     ///< nlaunch or the site profile does this: it is left out
  submission,  ///< it submits or cancels jobs
  other,       ///< a server or a preparation: its place in the script decides
};

struct WorkOf {
  Work work = Work::other;
  const char* reason = "";  ///< for `nothing` and `submission`: why it is left out
};

/// `argv` must contain a program.
WorkOf work_of(const shell::Words& argv);

/// A role name for it: "train-grpo" for `python train_grpo.py`.
std::string role_name_of(const shell::Words& argv);

/// The value of an option, `--tensor-parallel-size 2`, `--tensor_parallel_size=2`, `-tp 2`.
std::optional<std::string> option_of(const shell::Words& argv, std::string_view name);
/// The same as a number, at most 1024; nullopt if it is not one.
std::optional<std::uint32_t> number_option_of(const shell::Words& argv, std::string_view name);

/// True if it copies, loads, packs or installs something and does not need a GPU.
bool works_on_files(const shell::Words& argv);
/// True for a launcher that starts several ranks: torchrun, accelerate, deepspeed.
bool makes_ranks(const shell::Words& argv);
/// True for an `accelerate launch` of one process on so many GPUs: the program is no rank, but would take the
/// variables of one for its own (accelerate 1.1, utils/launch.py, prepare_simple_launcher_cmd_env).
bool hands_its_environment_on(const shell::Words& argv, std::uint32_t gpus);
/// How many GPUs of its node such a launcher or server says it uses; nullopt if it does not say.
std::optional<std::uint32_t> gpus_said_by(const shell::Words& argv, std::uint32_t nodes);

}  // namespace nlaunch::import
