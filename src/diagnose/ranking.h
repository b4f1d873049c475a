#pragma once
#include <vector>

#include "diagnose/collector.h"

namespace nlaunch::diagnose {

/// A finding of this weight or less never explains another one.
inline constexpr int kConsequence = 40;
/// The first process to fail exited, and nothing says why.
inline constexpr int kEndOfFirst = 41;
/// An exception caused by a server that failed or did not answer.
inline constexpr int kOfAPeer = 42;
/// A signal killed the first process to fail: this outweighs any message about what followed.
inline constexpr int kKilledFirst = 46;
/// A signal killed a process below one of the plan's; what was printed after that is left out. One that
/// exited normally may have done so because of what its server printed before: kKilledFirst.
inline constexpr int kLostChild = 55;
/// An exception that nothing caught.
inline constexpr int kException = 50;
/// nlaunch saw why the first process failed: that outweighs what the log says in general.
inline constexpr int kSeenCause = 76;
/// Evidence showed what blocked the run.
inline constexpr int kSureHang = 72;

/// The findings, best first: those that explain most before those that explain less, of equals the earliest.
/// The first that is not a note is the cause. `end` is the summary's description of the run's end: the words
/// of the process concerned explain more, and what others printed later explains less.
std::vector<Finding> ranked(const Collector& collected, const std::optional<Finding>& end = std::nullopt);

}  // namespace nlaunch::diagnose
