#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/secrets.h"
#include "plan/plan.h"

/// The plan as one node runs it, with the values that only the node knows filled in.
namespace nlaunch::plan {

/// A GPU of this node. The plan's GPU numbers are indices into BoundNode::gpus.
struct BoundGpu {
  std::string visible;                  ///< its value in CUDA_VISIBLE_DEVICES
  std::string bus_id;                   ///< "00000000:3B:00.0", or empty if NVML does not report it
  std::string uuid;                     ///< "GPU-...", or empty
  std::optional<std::uint32_t> numa{};  ///< its NUMA node; nothing if hwloc does not report it
  std::vector<std::string> nics{};      ///< the network devices nearest to it: "mlx5_0", "cxi0"
};

/// A site library, found on this node.
struct BoundLibrary {
  std::string path;     ///< the one file that the glob matches
  std::string version;  ///< "2.28.9", or empty where it could not be determined
};

/// The Python of a process, as far as it can be known without starting it.
struct BoundPython {
  std::string path;     ///< empty: there is none, or it is in a container
  std::string version;  ///< "3.11.7", "3.11"; empty: not known
  bool named = false;   ///< the command runs it; else it is the first on PATH, which the command may use
};

/// A process that is ready to start: every reference is resolved.
struct BoundProcess {
  std::uint32_t process = 0;                             ///< index into Plan::processes
  std::string name;                                      ///< "learner.0"
  std::vector<std::string> argv;                         ///< without the wrapper
  std::vector<std::pair<std::string, std::string>> env;  ///< complete, sorted by name; including secrets
  std::vector<std::string> wrapper{};                    ///< with its mounts; see container.h for its use
  /// The part of `env` that the plan sets, without values from this host: for a list that is appended to,
  /// only the addition. Empty without a wrapper.
  std::vector<std::pair<std::string, std::string>> given{};
  std::string workdir;
  std::vector<unsigned> cpus;        ///< near its GPUs; empty: no binding
  std::vector<std::uint16_t> ports;  ///< free when bound
  std::vector<std::string> preload;  ///< paths of the preloaded libraries, without the scope library
  BoundPython python{};
  Ready ready;                             ///< references resolved
  std::optional<Alive> alive;              ///< likewise
  std::optional<Throughput> throughput{};  ///< likewise
  std::optional<Fresh> fresh{};            ///< likewise
  std::optional<OnChange> on_change{};     ///< likewise
  std::string heartbeat;                   ///< likewise; relative to `workdir`
  /// Where the process leaves the exception that ends it (TORCHELASTIC_ERROR_FILE), on this node only; empty:
  /// nowhere that nlaunch reads.
  std::string error_file{};
};

struct BoundNode {
  std::string host;
  std::uint32_t index = 0;  ///< of the node in the plan
  std::string scratch;
  std::string cache{};                      ///< persists after the run; created when first referenced
  std::vector<std::string> weight_paths{};  ///< paths of the plan's weight syncs with `disk`, in their order
  std::string nixl_host{};                  ///< the address of the first learner's node; empty: there is none
  std::vector<BoundGpu> gpus;               ///< empty if the plan counts CPU slots
  std::map<std::string, BoundLibrary> libraries;
  std::vector<BoundProcess> processes;  ///< of this node, in plan order
  std::vector<std::string> secret_names;
  Masker masker;                     ///< knows the secrets' values
  std::vector<std::string> dropped;  ///< names of inherited variables that only a launcher can set
  std::vector<std::string> notes;    ///< messages for the user
};

}  // namespace nlaunch::plan
