#pragma once
#include <optional>
#include <string>
#include <vector>

#include "shell/allocation.h"
#include "shell/words.h"

/// What programs say that the recorder does not run. A program is a row of a table in answers.cpp.
namespace nlaunch::shell {

/// A program of this name only computes: it runs.
bool only_computes(const std::string& name);

/// One of those whose work is on files: `mkdir`, `rm`. It runs, and is a part of the job.
bool changes_files(const std::string& name);

struct Answer {
  std::string text;
  int code = 0;
};

/// Of a program that asks something of the cluster, or waits; nothing: it is none. `node`: where it asks.
std::optional<Answer> answer_of(const Words& argv, const Allocation& allocation, std::uint32_t node);

/// What curl and wget are told that a page says, whose real content nobody knows.
bool is_page(const Answer& answer);

/// It says what the machine has, which is made up: its GPUs, its memory.
bool describes_machine(const std::string& program);

/// The names of programs that answer.
std::vector<std::string> names_of_answers();

}  // namespace nlaunch::shell
