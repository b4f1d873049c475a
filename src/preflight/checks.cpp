#include "preflight/checks.h"

#include <algorithm>

namespace nlaunch::preflight {
namespace {

template <class Entry, class Seen>
std::vector<Row> run_check_of(const std::vector<const Entry*>& table, std::string_view name,
                              const Seen& observations) {
  return (*std::ranges::find(table, name, &Entry::name))->judge(observations);
}

}  // namespace

std::vector<Row> run_check(std::string_view name, const NodeObservations& observations) {
  return run_check_of(node_checks(), name, observations);
}

std::vector<Row> run_check(std::string_view name, const Observations& observations) {
  return run_check_of(checks(), name, observations);
}

}  // namespace nlaunch::preflight
