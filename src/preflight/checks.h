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
  std::vector<Figure> (*figures)(const NodeEvidence&) = nullptr;  ///< that it measured; null: none
};

/// When a check of the job has all that it needs.
enum class Stage {
  before,    ///< every node has said what it has
  identity,  ///< every rank has its GPU; the ranks go on only when no row fails
  after,     ///< the groups have been tried
  measured,  ///< all figures are there
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
std::vector<Row> check_gpu_health(const NodeEvidence& evidence);     ///< memory errors, recovery, slowdown
std::vector<Row> check_nvlink(const NodeEvidence& evidence);         ///< links to other GPUs and to the CPU
std::vector<Row> check_gpu_mode(const NodeEvidence& evidence);       ///< MIG, compute mode, PCIe, driver
std::vector<Row> check_gpu_processes(const NodeEvidence& evidence);  ///< who holds them before the run
std::vector<Row> check_kernel_log(const NodeEvidence& evidence);     ///< Xid, SXid, tasks that hang
std::vector<Row> check_shared_memory(const NodeEvidence& evidence);  ///< files of programs that have ended
std::vector<Row> check_container(const NodeEvidence& evidence);      ///< that of a role starts, and has all
std::vector<Row> check_libraries(const NodeEvidence& evidence);      ///< which libnccl each role loads
std::vector<Row> check_deny_list(const NodeEvidence& evidence);      ///< versions that are known to fail here
std::vector<Row> check_limits(
    const NodeEvidence& evidence);  ///< of the system: memlock, nofile, nproc, /dev/shm, ...
std::vector<Row> check_ports(const NodeEvidence& evidence);        ///< free
std::vector<Row> check_space(const NodeEvidence& evidence);        ///< room, and a file written in time
std::vector<Row> check_fabric(const NodeEvidence& evidence);       ///< what libfabric has for each role
std::vector<Row> check_interpreter(const NodeEvidence& evidence);  ///< each role's Python, as it starts
std::vector<Row> check_torch(const NodeEvidence& evidence);        ///< the NCCL that torch loads
std::vector<Row> check_names(const NodeEvidence& evidence);  ///< where the ranks meet, as seen from here
std::vector<Row> check_nics(const NodeEvidence& evidence);   ///< network adapters: number, links, drivers

std::vector<Row> check_copies(const NodeEvidence& evidence);  ///< between GPUs, and with the host
std::vector<Row> check_gemm(const NodeEvidence& evidence);    ///< the same product, the same bits
std::vector<Figure> copy_figures(const NodeEvidence& evidence);
std::vector<Figure> gemm_figures(const NodeEvidence& evidence);
/// Of the matrix product on each GPU of this node.
std::vector<Fingerprint> gemm_fingerprints(const NodeEvidence& evidence);

std::vector<Row> check_agreement(const Evidence& evidence);    ///< the same bits on all GPUs of a model
std::vector<Row> check_versions(const Evidence& evidence);     ///< one version in a group; the site's range
std::vector<Row> check_clock(const Evidence& evidence);        ///< the nodes agree what time it is
std::vector<Row> check_identity(const Evidence& evidence);     ///< as CUDA says it: no two ranks on one GPU
std::vector<Row> check_collectives(const Evidence& evidence);  ///< all ranks arrive, every element is right
std::vector<Row> check_bandwidth(const Evidence& evidence);    ///< the site's floors
std::vector<Row> check_slow_node(const Evidence& evidence);    ///< nodes against each other
std::vector<Row> check_transport(
    const Evidence& evidence);  ///< what NCCL chose against what the site expects
std::vector<Row> check_leftovers(const Evidence& evidence);  ///< probes that could not be ended
std::vector<Row> check_peers(const Evidence& evidence);      ///< a GPU or a link far below its like

/// The provider by which libfabric reaches the site's NICs.
std::string fabric_provider(const plan::Node& node);

/// The addresses at which the ranks of this node meet the others: each MASTER_ADDR, once.
std::vector<std::string> meeting_points(const NodeEvidence& evidence);

/// How far each node's clock is from that of the node in the middle.
std::vector<Figure> clock_figures(const Evidence& evidence);

/// Of one group: whether it completed with the right numbers, and if not, why.
Row judge_group(const Evidence& evidence, const GroupTrial& group);
/// The slowest rank's figure for each group and size that all its ranks completed.
std::vector<Measurement> measurements(const Evidence& evidence);

}  // namespace nlaunch::preflight
