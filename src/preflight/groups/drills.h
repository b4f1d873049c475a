#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "preflight/examine.h"

/// What a failure looks like on a system: the ranks of a group do something wrong on purpose.
namespace nlaunch::preflight {

/// One arm of a drill.
struct DrillCase {
  std::string_view name;  ///< "missing-rank"; the arms of a drill share it
  std::string_view arm;   ///< "all but the last"; empty: it has one only
  std::string_view does;  ///< what the ranks do, for people
  bool gpu = false;       ///< needs streams or graphs, which Gloo does not have
  Drill (*make)(unsigned ranks) = nullptr;
};

/// All of them; the arms of a drill are adjacent.
std::span<const DrillCase> drill_cases();

/// How long a rank waits before it reports. An all-reduce of a drill takes a few milliseconds.
constexpr Duration kDrillDeadline = std::chrono::seconds(10);

/// The arm for the ranks of `trial`, without their other work.
GroupTrial drill_trial(const DrillCase& which, GroupTrial trial, Duration deadline = kDrillDeadline);

/// The result, for people.
struct DrillRow {
  std::string drill;
  std::string arm;
  std::string does;
  std::string shows;  ///< what each rank saw: "ranks 0, 2: waited, no message; rank 1: did not take part"
  std::string end;    ///< "hangs: all ranks wait, no message; stopped after 10 s by its deadline"
};
/// [{"drill", "arm", "does", "shows", "end"}]
nlohmann::json to_json(const std::vector<DrillRow>& rows);

DrillRow judge_drill(const DrillCase& which, const GroupTrial& trial, const Measured& measured);

}  // namespace nlaunch::preflight
