#pragma once
#include "preflight/examine.h"
#include "preflight/search/complaints.h"

namespace nlaunch::preflight {

/// What was found about groups that were split into pairs.
struct TakenApart {
  std::vector<Row> rows;  ///< "suspect"
  std::vector<Figure> figures;
  bool cancelled = false;
};

/// Tries the parts of each of these groups in pairs, with fresh probes: nodes if the group crosses nodes,
/// else its ranks. All pairs of a round run at the same time, across all groups, which have no rank in
/// common.
TakenApart bisect(sys::Loop& loop, const Examination& request, const Observations& observations,
                  const std::vector<Complaint>& complaints);

}  // namespace nlaunch::preflight
