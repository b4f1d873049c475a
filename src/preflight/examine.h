#pragma once
#include "preflight/ask/probes.h"
#include "preflight/findings.h"
#include "preflight/preflight.h"
#include "sys/loop.h"

namespace nlaunch::preflight {

/// What is to be started.
struct ProbeStart {
  const std::vector<Rank>& ranks;          ///< all of the preflight
  const std::vector<std::size_t>& wanted;  ///< those whose probes are started
  std::string folder;                      ///< has spec.json in it
};

struct Examination {
  const plan::Plan& plan;
  const Options& options;
  Deadlines deadlines{};
  std::string folder;  ///< of the attempt, seen by all nodes; "preflight" is made (or emptied) in it
  std::vector<std::string> hosts{};      ///< names of the nodes; empty where there is only this machine
  std::vector<std::string> addresses{};  ///< by which the nodes reach each other; empty likewise
  std::vector<std::optional<ClockOffset>> clocks{};  ///< by node; empty likewise
  std::function<bool()> cancelled{};
  /// Makes probes, again and again; the ones before have ended.
  std::function<std::unique_ptr<Probes>(const ProbeStart&)> probes;
};

/// What fresh probes did with trials.
struct Measured {
  std::vector<Row> rows{};  ///< what was wrong: with the ranks, with a group, with what is left of the probes
  std::vector<RankReport> reports{};  ///< one for each rank; none where no probe could be started
  bool went = false;                  ///< the identities were fit, and the ranks were told to go on
  bool cancelled = false;
};

/// Lets probes do `trials`, whose members are indices into `ranks` (of all nodes, node after node), and
/// nothing else. The level and the ladder of `request.options` do not count. Runs `loop`; when it returns,
/// every probe has been reaped, or a row says which could not be.
Measured measure(sys::Loop& loop, const Examination& request, std::vector<Rank> ranks,
                 std::vector<GroupTrial> trials);

/// The same on this machine alone.
Measured measure(const Request& request, std::vector<Rank> ranks, std::vector<GroupTrial> trials);

/// Judges what all nodes found, and lets probes try the plan's groups. Runs `loop`. `findings` by node.
Report examine(sys::Loop& loop, const Examination& request, std::vector<Findings> findings);

}  // namespace nlaunch::preflight
