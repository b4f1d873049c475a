#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/collective.h"
#include "base/diagnostic.h"
#include "base/drill.h"
#include "base/units.h"
#include "base/words.h"

namespace nlaunch::probe {

struct RankSpec {
  std::string name;     ///< for people: "learner rank 1 (GPU 1)"
  int device = -1;      ///< CUDA ordinal in this rank's environment; -1: no GPU
  std::string library;  ///< path of the libnccl to load; empty: none is needed
  std::string address;  ///< address of its node for ranks on other nodes; empty: there are none
};

struct GroupSpec {
  std::string name;
  Collective op = Collective::all_reduce;
  Backend backend = Backend::nccl;
  std::vector<unsigned> members;     ///< ranks of the preflight, in the communicator's order
  std::vector<std::uint64_t> sizes;  ///< bytes of each message, multiples of 4; each is checked and timed
  std::vector<Workload> workloads;   ///< timed after them
  bool transport = false;  ///< read the chosen transport from a second communicator, and the algorithm and
                           ///< protocol of each operation of the workloads
  std::optional<Drill> drill{};  ///< instead of all of these
};

/// The work of one preflight, the same file for every rank:
///   {"folder": PATH, "join_ms": N, "op_ms": N,
///    "ranks": [{"name":..., "device":0, "library": PATH, "address": "10.0.0.1"}],
///    "groups": [{"name":..., "op":"all_reduce", "backend":"nccl", "members":[0,1], "sizes":[8],
///    "transport":true, "workloads": [{"name":..., "steps":20, "warm_up":5, "busy":false,
///    "step": [{"op":"all_reduce", "bytes":8, "type":"bf16", "count":80}]}],
///    "drill": {"name":..., "bytes":8, "communicators":2, "captured":false, "env":{NAME: VALUE},
///    "deadline_ms":10000, "does": [[{"communicator":0, "stream":0, "part":0}], []]}}]}
struct Spec {
  std::string folder;  ///< where the ranks write logs, and meet over Gloo; exists
  Duration join{};     ///< to form one communicator
  Duration op{};       ///< for one check or one measurement
  std::vector<RankSpec> ranks;
  std::vector<GroupSpec> groups;

  /// Names the communicator that a group uses: groups with the same backend and the same members in the same
  /// order share one, and have the same key.
  [[nodiscard]] std::size_t communicator_of(std::size_t group) const;
};

Result<Spec> read_spec(const std::string& path);

}  // namespace nlaunch::probe
