#pragma once
#include <optional>
#include <string>
#include <vector>

#include "shell/allocation.h"
#include "shell/words.h"

/// The output of programs that the recorder does not run. Each program is a row of a table in answers.cpp.
namespace nlaunch::shell {

/// True for a program that only computes; it really runs.
bool only_computes(const std::string& name);

/// True for programs that change files: `mkdir`, `rm`. They run, and are also part of the job.
bool changes_files(const std::string& name);

struct Answer {
  std::string text;
  int code = 0;
};

/// The answer to a program that queries the cluster or waits; nullopt for other programs. `node`: where it
/// runs.
std::optional<Answer> answer_of(const Words& argv, const Allocation& allocation, std::uint32_t node);

/// The answer to a program that queries a host on which nothing listens.
Answer refused(const Words& argv);

/// True for the page content given to curl and wget; the real content is unknown.
bool is_page(const Answer& answer);

/// True for programs that describe the machine (its GPUs, its memory); their answers are made up.
bool describes_machine(const std::string& program);

/// The names of the programs that are answered.
std::vector<std::string> names_of_answers();

/// True if the script asks by the exit code, which is made up: `git diff --quiet`.
bool asks_by_exit_code(const Words& argv);

/// "Traceback", "error": a script that looks for it in a log finds nothing, since nothing goes wrong here.
bool names_failure(const std::string& pattern);

}  // namespace nlaunch::shell
