#pragma once
#include <string>
#include <vector>

#include "bench/results.h"

namespace nlaunch::bench {

/// What a bench has shown, in plain sentences: the most important first, at least one. Of many comparisons,
/// the largest difference and a count of the others. What fails or is missed comes before what was compared:
///
///   "NCCL_ALGO=Tree is 8.1 % faster (95 % confidence interval 6.9 to 9.4 %) than Ring for large (all_reduce,
///    1GiB); no difference in the other 3 comparisons"
///   "no difference found between A and B; the smallest detectable difference was 2.1 %"
///   "1 of 2 targets missed: large takes 9.20 ms with B, at most 9.00 ms"
///   "B failed in all 5 repeats: CAUSE"
///
/// Names and causes are as they are in `bench`: whoever prints them escapes them.
std::vector<std::string> answer(const Bench& bench);

}  // namespace nlaunch::bench
