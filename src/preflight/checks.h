#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "preflight/observations.h"

namespace nlaunch::preflight {

/// A check of one machine, before any probe has touched a GPU: a pure judgement of what was found there. A
/// check that has nothing to say returns no rows.
struct NodeCheck {
  std::string_view name;
  std::string_view what;  ///< in a line, for the reference
  std::vector<Row> (*judge)(const NodeObservations&);
  std::vector<Figure> (*figures)(const NodeObservations&) = nullptr;  ///< that it measured; null: none
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
  std::vector<Row> (*judge)(const Observations&);
};

/// All checks, in the order in which they are reported.
std::span<const NodeCheck> node_checks();
std::span<const Check> checks();

std::vector<Row> check_gpus(
    const NodeObservations& observations);  ///< those that NVML shows, and who was given which
std::vector<Row> check_gpu_health(
    const NodeObservations& observations);                            ///< memory errors, recovery, slowdown
std::vector<Row> check_nvlink(const NodeObservations& observations);  ///< links to other GPUs and to the CPU
std::vector<Row> check_gpu_mode(const NodeObservations& observations);  ///< MIG, compute mode, PCIe, driver
std::vector<Row> check_gpu_processes(
    const NodeObservations& observations);                                ///< who holds them before the run
std::vector<Row> check_kernel_log(const NodeObservations& observations);  ///< Xid, SXid, tasks that hang
std::vector<Row> check_shared_memory(
    const NodeObservations& observations);  ///< files of programs that have ended
std::vector<Row> check_container(
    const NodeObservations& observations);  ///< that of a role starts, and has all
std::vector<Row> check_libraries(const NodeObservations& observations);  ///< which libnccl each role loads
std::vector<Row> check_deny_list(
    const NodeObservations& observations);  ///< versions that are known to fail here
std::vector<Row> check_limits(
    const NodeObservations& observations);  ///< of the system: memlock, nofile, nproc, /dev/shm, ...
std::vector<Row> check_ports(const NodeObservations& observations);   ///< free
std::vector<Row> check_space(const NodeObservations& observations);   ///< room, and a file written in time
std::vector<Row> check_fabric(const NodeObservations& observations);  ///< what libfabric has for each role
std::vector<Row> check_interpreter(
    const NodeObservations& observations);                           ///< each role's Python, as it starts
std::vector<Row> check_torch(const NodeObservations& observations);  ///< the NCCL that torch loads
std::vector<Row> check_names(
    const NodeObservations& observations);  ///< where the ranks meet, as seen from here
std::vector<Row> check_nics(
    const NodeObservations& observations);  ///< network adapters: number, links, drivers

std::vector<Row> check_copies(const NodeObservations& observations);  ///< between GPUs, and with the host
std::vector<Row> check_gemm(const NodeObservations& observations);    ///< the same product, the same bits
std::vector<Figure> copy_figures(const NodeObservations& observations);
std::vector<Figure> gemm_figures(const NodeObservations& observations);
/// Of the matrix product on each GPU of this node.
std::vector<Fingerprint> gemm_fingerprints(const NodeObservations& observations);

std::vector<Row> check_agreement(const Observations& observations);  ///< the same bits on all GPUs of a model
std::vector<Row> check_versions(
    const Observations& observations);                           ///< one version in a group; the site's range
std::vector<Row> check_clock(const Observations& observations);  ///< the nodes agree what time it is
std::vector<Row> check_identity(
    const Observations& observations);  ///< as CUDA says it: no two ranks on one GPU
std::vector<Row> check_collectives(
    const Observations& observations);  ///< all ranks arrive, every element is right
std::vector<Row> check_bandwidth(const Observations& observations);  ///< the site's floors
std::vector<Row> check_slow_node(const Observations& observations);  ///< nodes against each other
std::vector<Row> check_transport(
    const Observations& observations);  ///< what NCCL chose against what the site expects
std::vector<Row> check_leftovers(const Observations& observations);  ///< probes that could not be ended
std::vector<Row> check_peers(const Observations& observations);      ///< a GPU or a link far below its like

/// The provider by which libfabric reaches the site's NICs.
std::string fabric_provider(const plan::Node& node);

/// The addresses at which the ranks of this node meet the others: each MASTER_ADDR, once.
std::vector<std::string> meeting_points(const NodeObservations& observations);

/// How far each node's clock is from that of the node in the middle.
std::vector<Figure> clock_figures(const Observations& observations);

/// Of one group: whether it completed with the right numbers, and if not, why.
Row judge_group(const Observations& observations, const GroupTrial& group);
/// The slowest rank's figure for each group and size that all its ranks completed.
std::vector<Measurement> measurements(const Observations& observations);

}  // namespace nlaunch::preflight
