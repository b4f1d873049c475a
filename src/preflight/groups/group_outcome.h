#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "preflight/observations.h"

/// How far a group got, according to its ranks.
namespace nlaunch::preflight {

/// What the rank reported about the group; null: nothing.
const Progress* progress_of(const Observations& observations, const GroupTrial& group, std::size_t rank);

/// Every rank has completed every size.
bool complete(const Observations& observations, const GroupTrial& group);

/// An error about a group, with the rank that reported it; null: none.
struct Told {
  std::size_t rank = 0;
  const ProbeError* error = nullptr;
};
/// The first of this kind: "unavailable", "failed", "deadline".
Told find_error(const Observations& observations, const GroupTrial& group, std::string_view kind);

/// The first wrong result, with the rank that found it; null: none.
struct WrongData {
  std::size_t rank = 0;
  const SizeResult* result = nullptr;
};
WrongData find_wrong_data(const Observations& observations, const GroupTrial& group);

/// The slowest rank's figure for each size of a complete group.
std::vector<Measurement> measured(const Observations& observations, const GroupTrial& group);

/// It is incomplete because another group was: all ranks run the groups in the same order, so the first one
/// that fails is the cause, and then all probes are stopped.
bool is_consequence(const Observations& observations, const GroupTrial& group);

/// "ranks 0, 2, 3" if they are ranks of the role of `like`, else all their names.
std::string names_of(const Observations& observations, const std::vector<std::size_t>& ranks,
                     std::size_t like);

/// "learner rank 1 (GPU 1) did not join within 20 s; ranks 0, 2, 3 did", for ranks given by index.
std::string did_not_join(const Observations& observations, const std::vector<std::size_t>& missing,
                         const std::vector<std::size_t>& arrived);

/// The variables in a process's environment that disable a transport or a protocol: "NCCL_P2P_DISABLE=1".
std::vector<std::string> slow_settings(const plan::BoundProcess& process);

/// The variables that disable a transport or a protocol, as set in the environments of a group's ranks:
/// "NCCL_P2P_DISABLE=1 is set for learner". Empty if there are none.
std::string slow_settings(const Observations& observations, const GroupTrial& group);

}  // namespace nlaunch::preflight
