#pragma once
#include <memory>
#include <string>
#include <vector>

namespace nlaunch::sys {

/// The CPUs that this process may run on.
std::vector<unsigned> allowed_cpus();

/// Which CPUs are near a device, by hwloc. Discovery costs some milliseconds and happens at the first
/// question.
class Topology {
 public:
  Topology();
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  /// The allowed CPUs on the NUMA nodes of these PCI devices ("00000000:3B:00.0"), ascending. Empty where
  /// that narrows nothing: a device that is not known, one NUMA node, or none of its CPUs allowed.
  std::vector<unsigned> cpus_near(const std::vector<std::string>& bus_ids);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nlaunch::sys
