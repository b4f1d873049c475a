#pragma once
#include <map>
#include <string>
#include <vector>

#include "preflight/preflight.h"

/// Figures of pairs as squares: who sends in the rows, who receives in the columns.
namespace nlaunch::report {

struct PairMatrix {
  std::string what;  ///< "p2p", "pair"
  std::string host;  ///< empty: of this machine, or of nodes
  std::string unit;
  std::vector<std::string> names;  ///< in the order of their numbers
  std::map<std::pair<std::string, std::string>, double> values;

  [[nodiscard]] const double* at(const std::string& from, const std::string& to) const;
  /// Of all values; 0 when there is none.
  [[nodiscard]] double median() const;
  /// The least value as a share of the median.
  [[nodiscard]] double worst() const;
};

/// One for each `what` and host that has rates of pairs.
std::vector<PairMatrix> pair_matrices(const std::vector<preflight::Figure>& figures);

/// Of each pair the median over matrices of one `what`.
PairMatrix median_of(const std::vector<const PairMatrix*>& matrices);

/// The class of a cell, by its value against the median: "h0" (less than half) to "h5"
/// (above it).
std::string heat_class(double share);

/// The section of the page: a square for each node, or of many nodes their median and those with the slowest
/// pairs. Empty where there are no pairs.
std::string heat_maps_html(const std::vector<preflight::Figure>& figures);

}  // namespace nlaunch::report
