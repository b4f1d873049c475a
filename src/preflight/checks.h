#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "preflight/evidence.h"

namespace nlaunch::preflight {

/// A check of one machine, before any probe has touched a GPU: a pure judgement of what was found there. A
/// check that has nothing to say returns no rows.
struct NodeCheck {
  std::string_view name;
  std::string_view what;  ///< in a line, for the reference
  std::vector<Row> (*judge)(const NodeEvidence&);
};

/// When a check of the job has all that it needs.
enum class Stage {
  before,    ///< every node has said what it has
  identity,  ///< every rank has its GPU; the ranks go on only when no row fails
  after,     ///< the groups have been tried
};

/// A check of ranks and groups, wherever they are.
struct Check {
  std::string_view name;
  std::string_view what;  ///< in a line, for the reference
  Stage stage;
  std::vector<Row> (*judge)(const Evidence&);
};

/// All checks, in the order in which they are reported.
std::span<const NodeCheck> node_checks();
std::span<const Check> checks();

std::vector<Row> check_gpus(
    const NodeEvidence& evidence);  ///< those that NVML shows, and who was given which
std::vector<Row> check_libraries(const NodeEvidence& evidence);  ///< which libnccl each role loads
std::vector<Row> check_deny_list(const NodeEvidence& evidence);  ///< versions that are known to fail here
std::vector<Row> check_limits(const NodeEvidence& evidence);     ///< of the system: memlock, nofile, /dev/shm
std::vector<Row> check_ports(const NodeEvidence& evidence);      ///< free
std::vector<Row> check_space(const NodeEvidence& evidence);      ///< in the run directory and scratch

std::vector<Row> check_versions(const Evidence& evidence);     ///< one version in a group; the site's range
std::vector<Row> check_identity(const Evidence& evidence);     ///< as CUDA says it: no two ranks on one GPU
std::vector<Row> check_collectives(const Evidence& evidence);  ///< all ranks arrive, every element is right
std::vector<Row> check_bandwidth(const Evidence& evidence);    ///< the site's floors
std::vector<Row> check_transport(
    const Evidence& evidence);  ///< what NCCL chose against what the site expects
std::vector<Row> check_leftovers(const Evidence& evidence);  ///< probes that could not be ended

/// The slowest rank's figure for each group and size that all its ranks completed.
std::vector<Measurement> measurements(const Evidence& evidence);

}  // namespace nlaunch::preflight
