#pragma once
#include "preflight/preflight.h"
#include "preflight/search/complaints.h"
#include "preflight/search/search.h"

/// A group split into the parts that are tried in pairs, and what the pairs show about it. No side effects.
namespace nlaunch::preflight {

/// A node's ranks in the group, or one rank.
struct Part {
  std::string name;                  ///< of the node; "learner rank 1 (GPU 1), 00000000:07:00.0"
  std::vector<std::size_t> members;  ///< indices into Evidence::ranks
  std::vector<std::string> hosts;
};

struct Bisection {
  std::string group{};
  Collective op = Collective::all_reduce;
  Backend backend = Backend::nccl;
  std::uint64_t bytes = 0;
  bool of_nodes = false;
  std::vector<Part> parts{};
  SearchRules rules{};
  double floor = 0;  ///< bus bandwidth that the site expects of a pair; 0: none
};
Bisection dissect(const Observations& observations, const Complaint& complaint);

/// Two parts as a separate group.
GroupTrial pair_trial(const Bisection& what, UnitPair pair);

/// The result of the pair; nothing if it could not be tried. `observations` after the round, `index` of the
/// pair's group in it.
std::optional<PairTrial> read_trial(const Observations& observations, std::size_t index, UnitPair pair);

/// The culprits by name, one row each, and the parts that are cleared.
std::vector<Row> suspect_rows(const Bisection& what, const std::vector<Round>& rounds);
std::vector<Figure> pair_figures(const Bisection& what, const std::vector<Round>& rounds);

}  // namespace nlaunch::preflight
