#pragma once
#include <string>

#include "bench/runs.h"
#include "report/table.h"

/// What `nlaunch run --vary` found, for a terminal.
namespace nlaunch::report {

/// The times and metrics of the arms, and how they compare; empty where no run has any.
std::string runs_table(const bench::RunComparison& comparison, const Paint& paint);

/// Below it: failures, metrics that nobody printed, what differed, the order. Lines that end in a newline.
std::string runs_text(const bench::RunComparison& comparison, const Paint& paint);

}  // namespace nlaunch::report
