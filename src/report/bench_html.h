#pragma once
#include <string>

#include "bench/results.h"

namespace nlaunch::report {

/// One self-contained page: the verdicts first, bus bandwidth by message size with a line for each arm, the
/// table of times, failures, differences, and the whole environment of each arm.
std::string bench_html(const bench::Bench& bench);

}  // namespace nlaunch::report
