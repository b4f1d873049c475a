#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Generates a site profile for this machine, for a person to review and complete.
namespace nlaunch::emit {

/// What was found; nothing in it is a decision.
struct SiteFacts {
  struct Gpu {
    std::string name, bus_id;
    std::optional<std::uint32_t> numa{};  ///< empty: unknown
    std::string nic{};                    ///< the nearest; empty: none is nearer than the others
  };
  struct Nic {
    std::string name, kind;  ///< "cxi", "efa", "ib", "roce"
  };
  struct Interface {
    std::string name, address;
  };
  struct Partition {
    std::string name, time, cpus, gres;  ///< as printed by sinfo
    std::uint32_t nodes = 0;
    bool is_default = false;
  };
  std::string host, arch;
  std::uint32_t cpus = 0;  ///< physical cores: hyper-threads are not counted twice
  std::vector<Gpu> gpus;   ///< in PCI order
  std::string no_gpus;     ///< why there are none
  std::vector<Nic> nics;
  std::vector<Interface> interfaces;  ///< with an IPv4 address, without loopback
  std::string default_interface;      ///< through which this machine reaches others
  std::string modules_init;           ///< empty: no modules here
  std::vector<std::string> modules;   ///< loaded modules
  std::string cluster;                ///< Slurm's cluster name
  std::string topology;               ///< Slurm's plugin: "topology/tree"
  std::vector<Partition> partitions;  ///< empty without Slurm
  std::string schema;                 ///< schema with which editors check the profile; empty: none here
};

/// The number of GPUs in "gpu:gh200:4(S:0-3),shard:8".
std::uint32_t gpus_of_gres(const std::string& gres);

/// The profile; decisions for a person are comments in it. `name` is the profile's name.
std::string site_profile(const SiteFacts& facts, const std::string& name);

}  // namespace nlaunch::emit
