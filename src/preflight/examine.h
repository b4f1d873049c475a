#pragma once
#include "preflight/ask/probes.h"
#include "preflight/findings.h"
#include "preflight/preflight.h"
#include "sys/loop.h"

namespace nlaunch::preflight {

/// What to start.
struct ProbeStart {
  const std::vector<Rank>& ranks;          ///< all of the preflight
  const std::vector<std::size_t>& wanted;  ///< those whose probes are started
  std::string folder;                      ///< has spec.json in it
};

struct Examination {
  const plan::Plan& plan;
  const Options& options;
  Deadlines deadlines{};
  std::string folder;  ///< of the attempt, visible to all nodes; "preflight" is created (or emptied) in it
  std::vector<std::string> hosts{};      ///< names of the nodes; empty if this machine is the only one
  std::vector<std::string> addresses{};  ///< the addresses of the nodes for each other; empty likewise
  std::vector<std::optional<ClockOffset>> clocks{};  ///< by node; empty likewise
  std::function<bool()> cancelled{};
  /// Creates probes repeatedly; the previous ones have exited.
  std::function<std::unique_ptr<Probes>(const ProbeStart&)> probes;
};

/// What fresh probes did with the trials.
struct Measured {
  std::vector<Row> rows{};  ///< the problems: with the ranks, with a group, with probes that are left
  std::vector<RankReport> reports{};  ///< one per rank; none if no probe could be started
  bool went = false;                  ///< the identities were fit, and the ranks were told to continue
  bool cancelled = false;
};

/// Makes probes run `trials`, whose members are indices into `ranks` (of all nodes, in node order), and
/// nothing else. The level and the ladder of `request.options` are ignored. Runs `loop`. When it returns,
/// every probe has been reaped, or a row names those that could not be.
Measured measure(sys::Loop& loop, const Examination& request, std::vector<Rank> ranks,
                 std::vector<GroupTrial> trials);

/// The same on this machine only.
Measured measure(const Request& request, std::vector<Rank> ranks, std::vector<GroupTrial> trials);

/// Judges what all nodes found, and makes probes try the plan's groups. Runs `loop`. `findings` by node.
Report examine(sys::Loop& loop, const Examination& request, std::vector<Findings> findings);

}  // namespace nlaunch::preflight
