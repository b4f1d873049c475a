#pragma once
#include <map>
#include <string>
#include <vector>

#include "preflight/preflight.h"

/// Figures of pairs as squares: senders in the rows, receivers in the columns.
namespace nlaunch::report {

struct PairMatrix {
  std::string what;  ///< "p2p", "pair"
  std::string host;  ///< empty: this machine, or pairs of nodes
  std::string unit;
  std::vector<std::string> names;  ///< in numerical order
  std::map<std::pair<std::string, std::string>, double> values;

  [[nodiscard]] const double* at(const std::string& from, const std::string& to) const;
  /// Of all values; 0 if there are none.
  [[nodiscard]] double median() const;
  /// The smallest value as a share of the median.
  [[nodiscard]] double worst() const;
};

/// One for each `what` and host that has rates between pairs.
std::vector<PairMatrix> pair_matrices(const std::vector<preflight::Figure>& figures);

/// For each pair, the median over matrices of one `what`.
PairMatrix median_of(const std::vector<const PairMatrix*>& matrices);

/// The CSS class of a cell, by its value relative to the median: "h0" (less than half) to "h5" (above it).
std::string heat_class(double share);

/// The section of the page: a square for each node or, for many nodes, their median and the nodes with the
/// slowest pairs. Empty if there are no pairs.
std::string heat_maps_html(const std::vector<preflight::Figure>& figures);

}  // namespace nlaunch::report
