#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/collective.h"
#include "probe/rank/pattern.h"

/// What a rank sends, and must find, in an operation on the numbers of pattern.h.
namespace nlaunch::probe {

/// Elements that one rank sends and receives.
struct Shape {
  std::uint64_t send = 0;
  std::uint64_t receive = 0;
};

/// `elements`: the operation's size as nccl-tests counts it. Shares are rounded down.
constexpr Shape shape_of(Collective op, std::uint64_t elements, unsigned ranks) {
  const auto share = elements / ranks;
  if (op == Collective::all_gather) return {share, share * ranks};
  if (op == Collective::reduce_scatter) return {share * ranks, share};
  return {elements, elements};
}

/// A stretch of received data: element `offset + i` must be expected_element(weight, first + i).
struct Stretch {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
  std::uint64_t first = 0;
  std::uint32_t weight = 0;
  int owner = -1;  ///< the rank that sent it alone; -1: it is a sum
};

inline std::vector<Stretch> expected_in(Collective op, std::uint64_t elements, unsigned rank,
                                        unsigned ranks) {
  const auto shape = shape_of(op, elements, ranks);
  const auto before = (rank + ranks - 1) % ranks;
  std::vector<Stretch> out;
  switch (op) {
    case Collective::all_reduce:
      return {{0, shape.receive, 0, sum_weight(ranks), -1}};
    case Collective::broadcast:
      return {{0, shape.receive, 0, 1, 0}};
    case Collective::all_gather:
      for (unsigned owner = 0; owner < ranks; ++owner)
        out.push_back({owner * shape.send, shape.send, 0, owner + 1, static_cast<int>(owner)});
      return out;
    case Collective::reduce_scatter:
      return {{0, shape.receive, rank * shape.receive, sum_weight(ranks), -1}};
    case Collective::send_recv:
      return {{0, shape.receive, 0, before + 1, static_cast<int>(before)}};
  }
  return out;
}

/// What a wrong element shows about the rank that it names.
enum class Fault {
  none,      ///< nothing is wrong, or no single rank explains it
  missing,   ///< its contribution is missing from the sum
  twice,     ///< its contribution is in the sum twice
  received,  ///< what was received from it is not what it sent
};

constexpr std::string_view name_of(Fault fault) {
  switch (fault) {
    case Fault::missing:
      return "missing";
    case Fault::twice:
      return "twice";
    case Fault::received:
      return "received";
    case Fault::none:
      break;
  }
  return "";
}

/// How the elements of one collective compare with the expected ones.
struct Comparison {
  std::uint64_t elements = 0;
  std::uint64_t wrong = 0;
  std::uint64_t first_wrong = 0;  ///< index, if any is wrong
  std::uint32_t expected = 0;     ///< at first_wrong
  std::uint32_t found = 0;
  Fault fault = Fault::none;
  int rank = -1;  ///< in the communicator, which the fault concerns
};

/// Which rank alone explains `found` at `index` of a sum that should be `verdict.expected`.
inline void explain_sum(Comparison& comparison, std::uint64_t index, unsigned ranks) {
  for (const auto fault : {Fault::missing, Fault::twice}) {
    const auto difference = fault == Fault::missing ? comparison.expected - comparison.found  // modulo 2^32
                                                    : comparison.found - comparison.expected;
    comparison.rank = rank_of_term(ranks, index, difference);
    if (comparison.rank < 0) continue;
    comparison.fault = fault;
    return;
  }
}

/// `found` is at index `first_wrong`, if any is wrong.
inline Comparison judge(const std::vector<Stretch>& stretches, std::uint64_t wrong, std::uint64_t first_wrong,
                        std::uint32_t found, unsigned ranks) {
  Comparison comparison;
  comparison.wrong = wrong;
  for (const auto& one : stretches) {
    comparison.elements += one.count;
    if (wrong == 0 || first_wrong < one.offset || first_wrong >= one.offset + one.count) continue;
    const auto index = one.first + (first_wrong - one.offset);
    comparison.first_wrong = first_wrong;
    comparison.found = found;
    comparison.expected = expected_element(one.weight, index);
    if (one.owner < 0) {
      explain_sum(comparison, index, ranks);
    } else {
      comparison.fault = Fault::received;
      comparison.rank = one.owner;
    }
  }
  return comparison;
}

}  // namespace nlaunch::probe
