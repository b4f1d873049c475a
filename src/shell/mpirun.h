#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shell/words.h"

/// The command line of mpirun: of Open MPI, of MPICH's Hydra, and of Intel MPI.
namespace nlaunch::shell {

/// A host and how many processes fit on it.
struct HostSlots {
  std::string host;
  std::optional<std::uint32_t> slots;  ///< nullopt: not said
  bool operator==(const HostSlots&) const = default;
};

/// How processes are given to nodes, and numbered.
enum class Mapping {
  fill,    ///< a node gets as many as it has slots, before the next one does
  spread,  ///< each node gets as many as the others, numbered node by node
  cyclic,  ///< one after the other to each node in turn
};

struct Mpirun {
  Words program;                             ///< empty: there is none
  std::optional<std::uint32_t> processes{};  ///< in all
  std::optional<std::uint32_t> per_node{};
  Mapping mapping = Mapping::fill;
  std::vector<HostSlots> hosts{};  ///< of -H; a host that is named again has more slots
  std::string hostfile{};
  std::string folder{};  ///< of -wdir
  Words variables{};     ///< "NAME=VALUE"
  std::string
      placed_by{};  ///< an option by which nothing says here how many processes a node gets: "-rankfile"
  std::vector<std::string> unknown{};  ///< options that none of them has: what follows may be the value or
                                       ///< the program
};

/// The programs that are called mpirun: mpiexec, orterun.
bool is_mpirun(const std::string& program);

/// Several programs in one call, `a : b`, are not taken apart: `program` then has them all.
Mpirun read_mpirun(const Words& argv);

/// The hosts of a host file: "node1 slots=4", "node1:4"; empty if it has none.
std::vector<HostSlots> hosts_in_file(std::string_view text);

}  // namespace nlaunch::shell
