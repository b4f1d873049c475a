#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"

/// Which host takes the place of a node that was lost, and when: pure.
namespace nlaunch::fleet {

/// What a run has seen of the hosts of its job.
class HostHistory {
 public:
  struct Choice {
    std::string host;
    Duration wait{};  ///< until it may be tried
  };
  /// A host was lost, or could not be had; `now` is since the attempt began.
  void failed(const std::string& host, Duration now);
  /// An agent there takes part: what it failed at before counts no more.
  void joined(const std::string& host) { failures_.erase(host); }
  /// Since an agent there took part for the last time.
  [[nodiscard]] unsigned failures_of(const std::string& host) const;
  /// It is not to be tried any more.
  void rule_out(const std::string& host) { out_.insert(host); }
  [[nodiscard]] const std::set<std::string>& ruled_out() const { return out_; }

  /// Of `candidates` the one that may be tried first; of several, the one that failed least often, in their
  /// order. A host that was lost may be tried at once, and each failure after that doubles the wait, from two
  /// seconds to a minute. Nothing: all are `in_use` or ruled out.
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
