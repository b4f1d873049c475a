#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/secrets.h"
#include "plan/plan.h"

/// The plan as one node will run it: what only the node knows is filled in.
namespace nlaunch::plan {

/// A GPU of this node. The plan's GPU numbers are indices into BoundNode::gpus.
struct BoundGpu {
  std::string visible;                  ///< what stands for it in CUDA_VISIBLE_DEVICES
  std::string bus_id;                   ///< "00000000:3B:00.0", or empty where NVML could not say
  std::string uuid;                     ///< "GPU-...", or empty
  std::optional<std::uint32_t> numa{};  ///< the NUMA node that it is at; nothing where hwloc could not say
  std::vector<std::string> nics{};      ///< the network devices nearest to it: "mlx5_0", "cxi0"
};

/// A library of the site, found on this node.
struct BoundLibrary {
  std::string path;     ///< the one file that the glob fits
  std::string version;  ///< "2.28.9", or empty where it could not be determined
};

/// A process, ready to be started: every reference resolved.
struct BoundProcess {
  std::uint32_t process = 0;                             ///< index into Plan::processes
  std::string name;                                      ///< "learner.0"
  std::vector<std::string> argv;                         ///< without the wrapper
  std::vector<std::pair<std::string, std::string>> env;  ///< whole, sorted by name; secrets included
  std::vector<std::string> wrapper{};  ///< with what it mounts; see container.h for how it is used
  /// Of `env` what the plan asks for, without what comes from this host: of a list that is added to, the
  /// addition alone. Empty without a wrapper.
  std::vector<std::pair<std::string, std::string>> given{};
  std::string workdir;
  std::vector<unsigned> cpus;              ///< near its GPUs; empty: no binding
  std::vector<std::uint16_t> ports;        ///< free when bound
  std::vector<std::string> preload;        ///< paths of the preloaded libraries, scope library not among them
  Ready ready;                             ///< references resolved
  std::optional<Alive> alive;              ///< likewise
  std::optional<Throughput> throughput{};  ///< likewise
  std::optional<Fresh> fresh{};            ///< likewise
  std::optional<OnChange> on_change{};     ///< likewise
  std::string heartbeat;                   ///< likewise; relative to `workdir`
};

struct BoundNode {
  std::string host;
  std::uint32_t index = 0;  ///< of the node in the plan
  std::string scratch;
  std::string cache{};                      ///< outlives the run; made when it is first named
  std::vector<std::string> weight_paths{};  ///< of the plan's weight syncs, in their order: that of `disk`
  std::string nixl_host{};     ///< where the first learner's node is reached; empty: there is none
  std::vector<BoundGpu> gpus;  ///< empty where the plan counts CPU slots
  std::map<std::string, BoundLibrary> libraries;
  std::vector<BoundProcess> processes;  ///< of this node, in plan order
  std::vector<std::string> secret_names;
  Masker masker;                     ///< knows the secrets' values
  std::vector<std::string> dropped;  ///< inherited variables that a launcher must own, by name
  std::vector<std::string> notes;    ///< what a person should hear
};

}  // namespace nlaunch::plan
