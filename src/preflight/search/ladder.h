#pragma once
#include "preflight/examine.h"

/// From the smallest setup that can work to the whole job: the first rung that fails tells which layer is at
/// fault, since each rung adds only one.
namespace nlaunch::preflight {

struct Ladder {
  std::vector<Row> rows;  ///< "ladder", one per rung, and what failed at the last of them
  bool all_well = false;  ///< the plan's own groups are next
  bool cancelled = false;
};

/// One GPU, one node, two nodes, each with fresh probes, up to the first rung that fails. `observations`
/// before any probe.
Ladder climb_ladder(sys::Loop& loop, const Examination& request, const Observations& observations);

/// The last rung: the plan's own groups, described by these rows.
Row top_rung(const std::vector<Row>& judged, Duration took);

}  // namespace nlaunch::preflight
