#pragma once
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "preflight/observations.h"

/// The tables of checks. A check is a function in the file of its subject in preflight/checks/, and registers
/// itself there. What it asks nlaunch-probe is an Inquiry next to it (preflight/ask/inquiries.h).
namespace nlaunch::preflight {

/// A check of one machine, before any probe has touched a GPU: a pure judgement of what was found there. A
/// check that does not apply returns no rows.
struct NodeCheck {
  int order;  ///< in the report: multiples of ten, to leave room between two
  std::string_view name;
  std::string_view what;  ///< one line, for the reference
  std::vector<Row> (*judge)(const NodeObservations&);
  std::vector<Figure> (*figures)(const NodeObservations&) = nullptr;  ///< that it measured; null: none
};

/// When a check of the job has everything that it needs.
enum class Stage {
  before,    ///< every node has reported its findings
  identity,  ///< every rank has its GPU; the ranks continue only if no row fails
  after,     ///< the groups have been tried
  measured,  ///< all figures are available
};

/// A check of ranks and groups, on any node.
struct Check {
  int order;  ///< as in NodeCheck, but a separate order
  std::string_view name;
  std::string_view what;  ///< one line, for the reference
  Stage stage;
  std::vector<Row> (*judge)(const Observations&);
};

/// All checks, in the order in which they are reported.
inline std::vector<const NodeCheck*> node_checks() {
  return Registered<NodeCheck>::all();
}
inline std::vector<const Check*> checks() {
  return Registered<Check>::all();
}

/// The rows of the check with this name, which must exist.
std::vector<Row> run_check(std::string_view name, const NodeObservations& observations);
std::vector<Row> run_check(std::string_view name, const Observations& observations);

/// For the matrix product on each GPU of this node.
std::vector<Fingerprint> gemm_fingerprints(const NodeObservations& observations);
/// How far each node's clock is from that of the median node.
std::vector<Figure> clock_figures(const Observations& observations);
/// For one group: whether it completed with the right numbers, and if not, why.
Row judge_group(const Observations& observations, const GroupTrial& group);
/// The slowest rank's figure for each group and size that all its ranks completed.
std::vector<Measurement> measurements(const Observations& observations);

}  // namespace nlaunch::preflight
