#pragma once
#include <nlohmann/json_fwd.hpp>

#include "bench/results.h"

namespace nlaunch::bench {

/// What the files of a bench and of whole runs have in common. A Comparison is a Bench or a RunComparison.

inline nlohmann::ordered_json interval_json(const Interval& interval) {
  return {interval.low, interval.high};
}

inline nlohmann::ordered_json arm_json(const Arm& arm, const Environments& environments,
                                       const Failures& failures) {
  return {{"name", arm.name},
          {"set", arm.set},
          {"with", arm.with},
          {"env", arm.env},
          {"repeats", failures.repeats},
          {"failed", failures.failed},
          {"failure_interval", interval_json(failures.interval)},
          {"causes", failures.causes},
          {"environments", environments}};
}

/// The names of the arms in the order in which they ran.
template <class Comparison>
nlohmann::ordered_json order_json(const Comparison& comparison) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& turn : comparison.order) out.push_back(comparison.arms[turn.arm].arm.name);
  return out;
}

template <class Comparison>
nlohmann::ordered_json differences_json(const Comparison& comparison) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& one : differences(comparison))
    out.push_back({{"role", one.role}, {"variable", one.name}, {"values", one.values}});
  return out;
}

}  // namespace nlaunch::bench
