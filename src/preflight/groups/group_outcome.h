#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "preflight/observations.h"

/// How far a group came, from what its ranks said.
namespace nlaunch::preflight {

/// What the rank said of the group; null: nothing.
const Progress* progress_of(const Observations& observations, const GroupTrial& group, std::size_t rank);

/// Every rank has done every size.
bool complete(const Observations& observations, const GroupTrial& group);

/// An error that is about a group, with the rank that told it; null: there is none.
struct Told {
  std::size_t rank = 0;
  const ProbeError* error = nullptr;
};
/// The first of this kind: "unavailable", "failed", "deadline".
Told find_error(const Observations& observations, const GroupTrial& group, std::string_view kind);

/// The first wrong result, with the rank that found it; null: there is none.
struct WrongData {
  std::size_t rank = 0;
  const SizeResult* result = nullptr;
};
WrongData find_wrong_data(const Observations& observations, const GroupTrial& group);

/// The slowest rank's figure for each size of a group that is complete.
std::vector<Measurement> measured(const Observations& observations, const GroupTrial& group);

/// It is not complete because another group was not: all ranks take the groups in the same order, so that the
/// first one that fails holds the cause, and then all probes are ended.
bool is_consequence(const Observations& observations, const GroupTrial& group);

/// "ranks 0, 2, 3" where they are ranks of the role that `like` is of, else all their names.
std::string names_of(const Observations& observations, const std::vector<std::size_t>& ranks,
                     std::size_t like);

/// "learner rank 1 (GPU 1) did not join within 20 s; ranks 0, 2, 3 did", for ranks given by index.
std::string did_not_join(const Observations& observations, const std::vector<std::size_t>& missing,
                         const std::vector<std::size_t>& arrived);

/// The variables of a process's environment that take a transport or a protocol away: "NCCL_P2P_DISABLE=1".
std::vector<std::string> slow_settings(const plan::BoundProcess& process);

/// The variables that take a transport or a protocol away, as set in the environments of a group's ranks:
/// "NCCL_P2P_DISABLE=1 is set for learner". Empty where there is none.
std::string slow_settings(const Observations& observations, const GroupTrial& group);

}  // namespace nlaunch::preflight
