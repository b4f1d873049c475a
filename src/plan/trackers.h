#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace nlaunch::plan {

/// A program that reports its training steps in lines of a known form: a name for `watch.progress`.
struct Tracker {
  std::string_view name;
  std::string_view pattern;  ///< with the groups `step` and, if its lines contain them, `total` and `seconds`
};
const std::vector<Tracker>& trackers();

/// The pattern of the tracker with this name; any other string is a regular expression, and is returned
/// unchanged.
std::string progress_pattern(const std::string& written);
/// The tracker that was most likely meant by a regular expression; empty if none is close.
std::string tracker_like(const std::string& written);

}  // namespace nlaunch::plan
