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

/// A site profile as typed values that know their place, `extends` already merged in.
namespace nlaunch::config {

struct Modules {
  std::vector<std::pair<Text, Text>> set;  ///< variables of that shell, before anything else
  std::vector<Text> source;                ///< shell files
  std::optional<Text> init;
  bool reset = false;
  std::vector<Text> use;  ///< folders of modulefiles, the last one in front
  std::vector<Text> load;
  SourceSpan span;
};

struct Library {
  Text path;  ///< a glob that must fit exactly one file
  std::optional<VersionRange> version;
};

struct Expectation {
  SourceSpan span;
  std::optional<std::uint32_t> gpus_per_node;
  std::optional<VersionRange> nodes;
  std::uint64_t size = 0;  ///< bytes
  double min = 0;          ///< bytes/s
  double limit = 0;        ///< bytes/s; 0: not said
};

struct Nics {
  std::string kind;
  std::uint32_t count = 0;
  std::string interface;
};

/// Where its nodes stand, and the parts of a node.
struct Topology {
  std::optional<SlurmTopology> slurm;
  std::optional<std::uint32_t> domain_nodes;  ///< in an NVLink domain
  std::optional<std::uint32_t> switch_nodes;  ///< at a switch
  std::vector<std::uint32_t> numa;            ///< of each GPU
  std::vector<std::string> nics;              ///< likewise
};

/// What has to fit for a profile to be chosen by itself; globs, all that are given.
struct Match {
  SourceSpan span;
  std::optional<std::string> slurm_cluster, hostname, beaker_cluster, file, gpu;
  [[nodiscard]] bool any() const { return slurm_cluster || hostname || beaker_cluster || file || gpu; }
};

struct Site {
  Text name;
  std::string path;                  ///< of the profile; "built in" for the embedded one
  std::vector<std::string> sources;  ///< all files that it was made from, absolute
  std::vector<std::string> bases;    ///< the profiles that it extends, the nearest first
  Match match;
  std::string scheduler = "local";  ///< a name of base/scheduler_traits.h
  std::vector<Text> submit;
  std::vector<std::pair<Text, Text>> directives;
  std::vector<Text> srun;
  Beaker beaker;
  std::optional<Text> template_file;
  std::optional<Text> bad_nodes_file;
  std::optional<Duration> bad_nodes_ttl;
  std::optional<Located<std::uint32_t>> gpus;  ///< on each node
  std::optional<Text> gpu, arch, scratch;
  std::optional<std::uint32_t> cpus;
  std::vector<Text> bus_ids;
  Nics nics;
  Topology topology;
  Modules modules;
  EnvBlock env;
  std::vector<std::pair<std::string, Library>> libraries;
  std::vector<Overlay> overlays;
  std::vector<Pool> pools;  ///< that experiments may have nodes of, by name
  std::vector<Expectation> all_reduce_busbw;
  std::string intra_node, inter_node;  ///< expected transports; empty: not judged
  std::string comment;                 ///< `description:`, one line about the site
  bool untried = false;                ///< nobody could try it on its machine
};

/// Facts about this machine that `match` is held against.
struct MatchFacts {
  std::string hostname, slurm_cluster, beaker_cluster;
  std::vector<std::string> gpus;  ///< models
};

/// A profile that can be chosen.
struct SiteEntry {
  std::string name;
  std::string path;       ///< or "built in"
  std::string folder;     ///< where it was found
  bool shadowed = false;  ///< an earlier folder has one of the same name
};

/// The profiles in `folders` (first wins) and the built-in ones.
std::vector<SiteEntry> list_sites(const std::vector<std::string>& folders);

/// Reads a profile by name or by path (a text with a slash or ending in .yaml), `extends` looked up in the
/// profile's own folder, then in `folders`, then among the built-in ones (for a built-in one: among those
/// first). Libraries named in a `when` must be known. `settings` of --set whose path starts with "site." are
/// applied over it (without that prefix).
Result<Site> load_site(const std::string& name_or_path, const std::vector<std::string>& folders,
                       const std::vector<Setting>& settings);

/// The one profile whose `match` fits `facts`; `local` when none does; two that fit are an error.
Result<Site> choose_site(const std::vector<std::string>& folders, const MatchFacts& facts,
                         const std::vector<Setting>& settings);

}  // namespace nlaunch::config
