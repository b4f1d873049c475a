#pragma once
#include <string>
#include <vector>

#include "preflight/examine.h"

namespace nlaunch::bench {

/// The result of one workload in one group, in one repeat.
struct Timing {
  std::string workload;
  std::string group;
  std::uint32_t ranks = 0;
  Backend backend = Backend::nccl;
  bool two_ranks = false;  ///< only the first two of the group, for the scaling
  double seconds = 0;      ///< the median of its steps, each as long as its slowest rank took
};

/// What NCCL chose for a group, for people.
struct Chosen {
  std::string group;
  std::vector<preflight::Choice> choices;
  std::vector<std::string> transports;  ///< "P2P/CUMEM", each once
};

/// One repeat of one arm.
struct Repeat {
  std::vector<Timing> timings;  ///< of what was done, correctly
  std::vector<Chosen> chosen;   ///< if it was requested
  std::string failure;          ///< empty: everything was done
};

/// The plan's workloads over its groups, only those with a name in `only` (empty: all). Each group is a
/// trial; one of more than two ranks has another trial of its first two, if a workload says how it should
/// scale.
std::vector<preflight::GroupTrial> make_trials(const plan::Plan& plan,
                                               const std::vector<preflight::Rank>& ranks,
                                               const std::vector<std::string>& only);

/// What the probes reported about these trials.
Repeat read_repeat(const std::vector<preflight::GroupTrial>& trials, const preflight::Measured& measured);

/// Bus bandwidth of a whole step: what all its operations move over each link, divided by its time.
double bus_bandwidth(const Workload& workload, double seconds, std::size_t ranks);

/// "RING/LL128 16ch, over P2P": for the operations of a step, as far as known; empty without any.
std::string text_of(const Chosen& chosen, const std::vector<Operation>& step);

}  // namespace nlaunch::bench
