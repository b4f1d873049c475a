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

/// The variables that are not the same in all arms, as a table with a title; empty without any.
std::string differences_text(const std::vector<std::string>& arms,
                             const std::vector<bench::Difference>& differences, const Paint& paint);

/// In which order it was measured; before it, where there were too few repeats, a line that says so.
/// `option` gives their number.
std::string order_text(std::uint32_t repeats, std::uint64_t seed, std::string_view option,
                       const Paint& paint);

/// "broken off after 7 of 10 repeats: node node1: ...", of one that was.
std::string broken_off_text(const bench::Bench& bench);

}  // namespace nlaunch::report
