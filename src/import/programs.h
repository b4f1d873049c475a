#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/commands.h"

/// What kind of work a program of the script does, told by its command line.
namespace nlaunch::import {

/// Wants a process of its own, and so may become a role.
bool is_program(const Launch& launch, const lint::Command& command);
/// Some word behind the first is a program's name, or a Python script.
bool names_program(const Launch& launch);
/// `python -c`, `python - <<EOF`: a look at something.
bool is_inline_python(const Launch& launch);

enum class Work { ray_head, ray_worker, engine, helper };
Work work_of(const Launch& launch);
/// How much a helper looks like the training.
int training_score(const Launch& launch);

/// The number that an option has, at most 1024; 0: none.
std::uint32_t number_of(const std::optional<std::string>& text);
/// How many devices CUDA_VISIBLE_DEVICES names in front of it.
std::uint32_t devices(const Launch& launch);
/// A name for its role.
std::string name_of_program(const Launch& launch);
/// Takes torchrun and its options away, so that what it starts is left; how many ranks a node has, `free`
/// where it takes as many as there are GPUs.
std::uint32_t ranks_of_torchrun(std::vector<Value>& words, std::uint32_t free);
/// The port of a process, where nlaunch chooses it: `ports: [http]`.
constexpr std::string_view kChosenPort = "${self.ports.http}";
/// Has nlaunch choose the port of --port, where only a shell knows it: true where it was so.
bool choose_port(std::vector<Value>& words);
/// "nccl" of /x/libnccl.so.2.
std::string library_name(const std::string& path);
/// The files of an LD_PRELOAD.
std::vector<std::string> library_paths(const std::string& text);

}  // namespace nlaunch::import
