#pragma once
#include <string>

#include "bench/results.h"
#include "report/table.h"

/// What `nlaunch bench` found, for a terminal.
namespace nlaunch::report {

/// The times with what they should be, what NCCL chose, and how the arms compare.
std::string bench_table(const bench::Bench& bench, const Paint& paint);

/// Below it: failures, what differed, and what to bear in mind. Lines that end in a newline.
std::string bench_text(const bench::Bench& bench, const Paint& paint);

/// "at most 9.0 ms: held" for each target of a line, joined by "; "; empty without any.
std::string targets_text(const bench::Line& line);

/// "2 of 5 failed (95 %: 12 to 77 %)".
std::string failures_text(const bench::Failures& failures);

}  // namespace nlaunch::report
