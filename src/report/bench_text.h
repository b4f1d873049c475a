#pragma once
#include <string>

#include "bench/results.h"
#include "report/table.h"

/// Terminal output of `nlaunch bench`.
namespace nlaunch::report {

/// What the bench has shown, as bench::answer has it: a line for each sentence, the first one bold.
std::string bench_answer(const bench::Bench& bench, const Paint& paint);

/// The times with their targets, what NCCL chose, and how the arms compare.
std::string bench_table(const bench::Bench& bench, const Paint& paint);

/// The text below the table: failures, differences and remarks. Lines that end in a newline.
std::string bench_text(const bench::Bench& bench, const Paint& paint);

/// "at most 9.0 ms: met" for each target of a line, joined by "; "; empty if there is none.
std::string targets_text(const bench::Line& line);

/// "2 of 5 failed (95 %: 12 to 77 %)".
std::string failures_text(const bench::Failures& failures);

/// The variables that differ between the arms, as a table with a title; empty if there are none.
std::string differences_text(const std::vector<std::string>& arms,
                             const std::vector<bench::Difference>& differences, const Paint& paint);

/// The order of the measurements, preceded by a warning if there were too few repeats. `option` sets their
/// number.
std::string order_text(std::uint32_t repeats, std::uint64_t seed, std::string_view option,
                       const Paint& paint);

}  // namespace nlaunch::report
