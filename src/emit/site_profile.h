#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// A site profile for the machine that it was made on, to be read and completed by a person.
namespace nlaunch::emit {

/// What was found; nothing in it is a decision.
struct SiteFacts {
  struct Gpu {
    std::string name, bus_id;
    std::optional<std::uint32_t> numa{};  ///< nothing: not known
    std::string nic{};                    ///< the nearest; empty: none is nearer than others
  };
  struct Nic {
    std::string name, kind;  ///< "cxi", "efa", "ib", "roce"
  };
  struct Interface {
    std::string name, address;
  };
  struct Partition {
    std::string name, time, cpus, gres;  ///< as sinfo writes them
    std::uint32_t nodes = 0;
    bool is_default = false;
  };
  std::string host, arch;
  std::uint32_t cpus = 0;  ///< cores, those of hyper-threading not counted twice
  std::vector<Gpu> gpus;   ///< in PCI order
  std::string no_gpus;     ///< why there are none
  std::vector<Nic> nics;
  std::vector<Interface> interfaces;  ///< with an IPv4 address, without loopback
  std::string default_interface;      ///< by which this machine reaches others
  std::string modules_init;           ///< empty: no modules here
  std::vector<std::string> modules;   ///< what is loaded
  std::string cluster;                ///< Slurm's name for it
  std::string topology;               ///< Slurm's plugin: "topology/tree"
  std::vector<Partition> partitions;  ///< empty without Slurm
  std::string schema;                 ///< the file that editors check the profile by; empty: none here
};

/// The GPUs that "gpu:gh200:4(S:0-3),shard:8" speaks of.
std::uint32_t gpus_of_gres(const std::string& gres);

/// The profile; what a person has to decide stands in it as a comment. `name` is a profile's name.
std::string site_profile(const SiteFacts& facts, const std::string& name);

}  // namespace nlaunch::emit
