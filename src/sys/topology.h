#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nlaunch::sys {

/// The CPUs that this process may run on.
std::vector<unsigned> allowed_cpus();

/// What is near a device, according to hwloc. Discovery takes some milliseconds and happens on first use.
class Topology {
 public:
  Topology();
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  /// The allowed CPUs on the NUMA nodes of these PCI devices ("00000000:3B:00.0"), ascending. Empty if that
  /// restricts nothing: an unknown device, a single NUMA node, or none of its CPUs allowed.
  std::vector<unsigned> cpus_near(const std::vector<std::string>& bus_ids);
  /// The NUMA node of a PCI device; empty if hwloc does not know.
  std::optional<std::uint32_t> numa_of(const std::string& bus_id);
  /// The indices of the other devices that are nearest to it: with the fewest bridges in between.
  std::vector<std::size_t> nearest(const std::string& bus_id, const std::vector<std::string>& others);

 private:
  struct State;
  State* loaded();
  std::unique_ptr<State> state_;
};

}  // namespace nlaunch::sys
