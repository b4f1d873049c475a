#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "shell/words.h"

/// What a program does in a job, by its command line: one row of a table in work.cpp for each kind.
namespace nlaunch::import {

enum class Work {
  training,    ///< it trains, or starts what trains
  engine,      ///< a server that generates
  ray_head,    ///< ray start --head
  ray_worker,  ///< ray start --address=...
  nothing,     ///< nlaunch, or the site's profile, does this: it is left out
  submission,  ///< it submits or cancels jobs
  other,       ///< a server, a preparation: its place in the script says which
};

struct WorkOf {
  Work work = Work::other;
  const char* reason = "";  ///< of `nothing` and `submission`: why it is left out
};

/// `argv` has a program.
WorkOf work_of(const shell::Words& argv);

/// The name of a role for it: "train-grpo" of `python train_grpo.py`.
std::string role_name_of(const shell::Words& argv);

/// The value of an option, `--tensor-parallel-size 2`, `--tensor_parallel_size=2`, `-tp 2`.
std::optional<std::string> option_of(const shell::Words& argv, std::string_view name);
/// The same as a number, 1024 at most; nothing: it is none.
std::optional<std::uint32_t> number_option_of(const shell::Words& argv, std::string_view name);

/// It copies, loads, packs or installs something, and has no use for a GPU.
bool works_on_files(const shell::Words& argv);
/// A launcher that makes several ranks of one process: torchrun, accelerate, deepspeed.
bool makes_ranks(const shell::Words& argv);
/// How many GPUs of its node such a launcher or a server says that it uses; nothing: it does not say.
std::optional<std::uint32_t> gpus_said_by(const shell::Words& argv, std::uint32_t nodes);

}  // namespace nlaunch::import
