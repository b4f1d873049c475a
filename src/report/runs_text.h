#pragma once
#include <string>

#include "bench/runs.h"
#include "report/table.h"

/// Terminal output of `nlaunch run --vary`.
namespace nlaunch::report {

/// The times and metrics of the arms, and how they compare; empty if no run has any.
std::string runs_table(const bench::RunComparison& comparison, const Paint& paint);

/// The text below the table: failures, metrics that no run printed, differences, the order. Lines that end in
/// a newline.
std::string runs_text(const bench::RunComparison& comparison, const Paint& paint);

}  // namespace nlaunch::report
