#include "sys/topology.h"

#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <set>

namespace nlaunch::sys {

std::vector<unsigned> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<unsigned> cpus;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

struct Topology::State {
  hwloc_topology_t topology = nullptr;
  bool loaded = false;

  State() {
    if (::hwloc_topology_init(&topology) != 0) {
      topology = nullptr;
      return;
    }
    ::hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
    loaded = ::hwloc_topology_load(topology) == 0;
  }
  ~State() {
    if (topology != nullptr) ::hwloc_topology_destroy(topology);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void add_cpus_near(const std::string& bus_id, std::set<unsigned>& cpus) const {
    const auto* device = ::hwloc_get_pcidev_by_busidstring(topology, bus_id.c_str());
    if (device == nullptr) return;
    const auto* place = ::hwloc_get_non_io_ancestor_obj(topology, const_cast<hwloc_obj_t>(device));
    if (place == nullptr || place->cpuset == nullptr) return;
    for (int cpu = ::hwloc_bitmap_first(place->cpuset); cpu >= 0;
         cpu = ::hwloc_bitmap_next(place->cpuset, cpu)) {
      cpus.insert(static_cast<unsigned>(cpu));
    }
  }
};

Topology::Topology() = default;
Topology::~Topology() = default;

std::vector<unsigned> Topology::cpus_near(const std::vector<std::string>& bus_ids) {
  if (bus_ids.empty()) return {};
  if (!state_) state_ = std::make_unique<State>();
  if (!state_->loaded) return {};
  std::set<unsigned> near;
  for (const auto& bus_id : bus_ids) state_->add_cpus_near(bus_id, near);
  const auto allowed = allowed_cpus();
  std::vector<unsigned> cpus;
  std::ranges::copy_if(allowed, std::back_inserter(cpus), [&](unsigned cpu) { return near.contains(cpu); });
  return cpus.size() == allowed.size() ? std::vector<unsigned>() : cpus;
}

}  // namespace nlaunch::sys
