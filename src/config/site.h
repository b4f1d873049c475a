#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/source.h"
#include "base/words.h"
#include "config/experiment.h"

/// A site profile as typed values with their locations, with `extends` already merged.
namespace nlaunch::config {

struct Modules {
  std::vector<std::pair<Text, Text>> set;  ///< environment variables of that shell, set before anything else
  std::vector<Text> source;                ///< shell files
  std::optional<Text> init;
  bool reset = false;
  std::vector<Text> use;  ///< directories of modulefiles, the last one first
  std::vector<Text> load;
  SourceSpan span;
};

struct Library {
  Text path;  ///< a glob that must match exactly one file
  std::optional<VersionRange> version;
};

struct Expectation {
  SourceSpan span;
  std::optional<std::uint32_t> gpus_per_node;
  std::optional<VersionRange> nodes;
  std::uint64_t size = 0;  ///< bytes
  double min = 0;          ///< bytes/s
  double limit = 0;        ///< bytes/s; 0: not set
};

struct Nics {
  std::string kind;
  std::uint32_t count = 0;
  std::string interface;
};

/// The network location of its nodes, and the layout of a node.
struct Topology {
  std::optional<SlurmTopology> slurm;
  std::optional<std::uint32_t> domain_nodes;  ///< in an NVLink domain
  std::optional<std::uint32_t> switch_nodes;  ///< on one switch
  std::vector<std::uint32_t> numa;            ///< of each GPU
  std::vector<std::string> nics;              ///< likewise
};

/// What must match for a profile to be selected automatically; globs, all given ones must match.
struct Match {
  SourceSpan span;
  std::optional<std::string> slurm_cluster, hostname, beaker_cluster, file, gpu;
  [[nodiscard]] bool any() const { return slurm_cluster || hostname || beaker_cluster || file || gpu; }
};

struct Site {
  Text name;
  std::string path;                  ///< of the profile; "built in" for the embedded one
  std::vector<std::string> sources;  ///< all files that it was built from, absolute
  std::vector<std::string> bases;    ///< the profiles that it extends, nearest first
  Match match;
  std::string scheduler = "local";  ///< a name of base/scheduler_traits.h
  std::vector<Text> submit;
  std::vector<std::pair<Text, Text>> directives;
  std::vector<Text> srun;
  std::optional<std::uint32_t> fan_out;  ///< of the tree of agents
  Beaker beaker;
  std::optional<Text> template_file;
  std::optional<Text> bad_nodes_file;
  std::optional<Duration> bad_nodes_ttl;
  std::optional<Located<std::uint32_t>> gpus;  ///< per node
  std::optional<Text> gpu, arch, scratch;
  std::optional<std::uint32_t> cpus;
  std::vector<Text> bus_ids;
  Nics nics;
  Topology topology;
  Modules modules;
  EnvBlock env;
  std::vector<std::pair<std::string, Library>> libraries;
  std::vector<Overlay> overlays;
  std::vector<Pool> pools;  ///< pools that experiments can use, by name
  std::vector<Expectation> all_reduce_busbw;
  std::string intra_node, inter_node;  ///< expected transports; empty: not checked
  std::string comment;                 ///< `description:`, one line about the site
  bool untried = false;                ///< not tested on its machine
};

/// Facts about this machine, which `match` is compared with.
struct MatchFacts {
  std::string hostname, slurm_cluster, beaker_cluster;
  std::vector<std::string> gpus;  ///< models
};

/// A profile that can be selected.
struct SiteEntry {
  std::string name;
  std::string path;       ///< or "built in"
  std::string folder;     ///< where it was found
  bool shadowed = false;  ///< an earlier directory has one with the same name
};

/// The profiles in `folders` (first wins) and the built-in ones.
std::vector<SiteEntry> list_sites(const std::vector<std::string>& folders);

/// Reads a profile by name or by path (a string with a slash or ending in .yaml); `extends` is searched in
/// the profile's own directory, then in `folders`, then among the built-in ones (for a built-in one: among
/// those first). Libraries named in a `when` must be known. `settings` from --set whose path starts with
/// "site." are applied over it (without that prefix).
Result<Site> load_site(const std::string& name_or_path, const std::vector<std::string>& folders,
                       const std::vector<Setting>& settings);

/// The one profile whose `match` matches `facts`; `local` if none does; two matches are an error.
Result<Site> choose_site(const std::vector<std::string>& folders, const MatchFacts& facts,
                         const std::vector<Setting>& settings);

}  // namespace nlaunch::config
