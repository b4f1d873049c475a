#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"

/// Which host replaces a lost node, and when. Pure.
namespace nlaunch::fleet {

/// What a run has observed of the hosts of its job.
class HostHistory {
 public:
  struct Choice {
    std::string host;
    Duration wait{};  ///< until it may be tried
  };
  /// A host was lost or could not be used; `now` is since the start of the attempt.
  void failed(const std::string& host, Duration now);
  /// An agent on it takes part: earlier failures no longer count.
  void joined(const std::string& host) { failures_.erase(host); }
  /// Failures since an agent there last took part.
  [[nodiscard]] unsigned failures_of(const std::string& host) const;
  /// It must not be tried again.
  void rule_out(const std::string& host) { out_.insert(host); }
  [[nodiscard]] const std::set<std::string>& ruled_out() const { return out_; }

  /// The candidate that can be tried first; among several, the one with the fewest failures, in their order.
  /// A lost host can be tried immediately; each further failure doubles the wait, from two seconds to a
  /// minute. Empty: all are `in_use` or ruled out.
  [[nodiscard]] std::optional<Choice> choose(const std::vector<std::string>& candidates,
                                             const std::set<std::string>& in_use, Duration now) const;

 private:
  struct Failures {
    unsigned times = 0;
    Duration last{};
  };
  std::map<std::string, Failures> failures_;
  std::set<std::string> out_;
};

}  // namespace nlaunch::fleet
