#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace nlaunch::plan {

/// A program that reports its training steps in lines of a known form: a name for `watch.progress`.
struct Tracker {
  std::string_view name;
  std::string_view pattern;  ///< with the groups `step` and, where its lines tell them, `total` and `seconds`
};
const std::vector<Tracker>& trackers();

/// The pattern of the tracker of this name; any other text is a regular expression, and stays as it is.
std::string progress_pattern(const std::string& written);
/// The tracker that a regular expression was most likely meant to be; empty where none is near.
std::string tracker_like(const std::string& written);

}  // namespace nlaunch::plan
