#pragma once
#include <vector>

#include "diagnose/collector.h"

namespace nlaunch::diagnose {

/// A finding of this weight or less never explains another one.
inline constexpr int kConsequence = 40;
/// The first process to fail exited, and nobody knows why.
inline constexpr int kEndOfFirst = 41;
/// An exception that tells of a server which failed or did not answer.
inline constexpr int kOfAPeer = 42;
/// A signal ended the first process to fail: more than any word about what followed.
inline constexpr int kKilledFirst = 46;
/// A signal ended a process below one of the plan's, and what was said after that is left out. One that ended
/// in good order may have been ended for what its server said before: kKilledFirst.
inline constexpr int kLostChild = 55;
/// Evidence showed who held the run up.
inline constexpr int kSureHang = 72;

/// What was found, best first: what explains most before what explains less, of equals the earliest. The
/// first that is no note is the cause.
/// `end` is what the summary of a run says of its end: its own words explain more, and what
/// others said later explains less.
std::vector<Finding> ranked(const Collector& collected, const std::optional<Finding>& end = std::nullopt);

}  // namespace nlaunch::diagnose
