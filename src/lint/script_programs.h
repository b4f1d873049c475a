#pragma once
#include "lint/lint_input.h"
#include "lint/script_sources.h"
#include "shell/recorder.h"
#include "shell/words.h"

/// The programs of a recorded script, as rules see them.
namespace nlaunch::lint {

/// The command as rules read it: the program of `uv run torchrun ...` is torchrun, that of `uv run train.py`
/// is Python, and `python -m ray.scripts.scripts start` is `ray start`.
shell::Words as_read(shell::Words words);

/// True for programs that query, copy, install or wait: their environment does not matter.
bool is_helper(const shell::Words& called);

/// Adds to `input` the programs, the files that the script writes for them, and the texts of those in Python.
void add_programs(const shell::Recording& recording, const shell::Allocation& allocation,
                  ScriptSources& sources, LintInput& input);

}  // namespace nlaunch::lint
