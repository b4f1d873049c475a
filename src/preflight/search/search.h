#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Which part of a group is to blame, found by trying its parts in pairs: a pure function of what the pairs
/// showed, round by round. A unit is a node or a GPU, by its index in the group's ring. However many there
/// are, four rounds suffice: neighbours, the other neighbours, each suspect with a good partner, and again.
namespace nlaunch::preflight {

using UnitPair = std::pair<std::size_t, std::size_t>;

/// The result of one pair.
struct PairTrial {
  UnitPair units;
  std::size_t ranks = 0;  ///< of both together: speeds are compared only between pairs of the same size
  double seconds = 0;     ///< for one operation, if it completed with the right numbers
  std::string trouble{};  ///< why it did not, for people; empty: it did
};
using Round = std::vector<PairTrial>;

struct SearchRules {
  /// A pair that takes this many times as long as the usual one is slow (DLRover uses 2; prior art uses 1.5
  /// for a warning). Nothing: times are not judged.
  std::optional<double> slower = 1.5;
  /// The time that a pair may take if the site has a floor, by its number of ranks. 0: no floor.
  double most_seconds = 0;
};

/// The pairs to try next, which have no unit in common; none: the search is over.
std::vector<UnitPair> next_round(std::size_t units, const std::vector<Round>& rounds,
                                 const SearchRules& rules);

struct Culprit {
  std::size_t unit = 0;
  std::size_t partners = 0;  ///< units that are good with others, and were not with it
  PairTrial worst;           ///< the last of these that failed, else the slowest
};
struct BadLink {
  PairTrial worst;
  std::size_t trials = 0;
};
struct Verdicts {
  std::vector<Culprit> culprits;
  std::vector<BadLink> links;        ///< pairs that are not good, of units that are
  std::vector<PairTrial> undecided;  ///< pairs that are not good, with units of which too little is known
  std::size_t good = 0;              ///< units that are good with at least one partner
  double usual = 0;                  ///< seconds: the median of each unit's best pair; 0: none completed
  bool all_slow = false;             ///< the usual pair itself takes longer than allowed
};
Verdicts conclude(std::size_t units, const std::vector<Round>& rounds, const SearchRules& rules);

}  // namespace nlaunch::preflight
