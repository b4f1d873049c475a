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

  [[nodiscard]] hwloc_obj_t find(const std::string& bus_id) const {
    return ::hwloc_get_pcidev_by_busidstring(topology, bus_id.c_str());
  }
  /// Its place in the machine; null if unknown.
  [[nodiscard]] hwloc_obj_t place_of(const std::string& bus_id) const {
    const auto device = find(bus_id);
    return device == nullptr ? nullptr : ::hwloc_get_non_io_ancestor_obj(topology, device);
  }

  void add_cpus_near(const std::string& bus_id, std::set<unsigned>& cpus) const {
    const auto* place = place_of(bus_id);
    if (place == nullptr || place->cpuset == nullptr) return;
    for (int cpu = ::hwloc_bitmap_first(place->cpuset); cpu >= 0;
         cpu = ::hwloc_bitmap_next(place->cpuset, cpu)) {
      cpus.insert(static_cast<unsigned>(cpu));
    }
  }
};

namespace {

/// Steps from the root of the tree.
unsigned depth_of(hwloc_obj_t object) {
  unsigned depth = 0;
  for (; object->parent != nullptr; object = object->parent) ++depth;
  return depth;
}

/// Depth of their common ancestor. hwloc's own function does not know the depths of PCI devices.
unsigned common_depth(hwloc_obj_t one, hwloc_obj_t other) {
  auto of_one = depth_of(one);
  auto of_other = depth_of(other);
  for (; of_one > of_other; --of_one) one = one->parent;
  for (; of_other > of_one; --of_other) other = other->parent;
  for (; one != other; --of_one) {
    one = one->parent;
    other = other->parent;
  }
  return of_one;
}

}  // namespace

Topology::Topology() = default;
Topology::~Topology() = default;

std::vector<unsigned> Topology::cpus_near(const std::vector<std::string>& bus_ids) {
  if (bus_ids.empty() || loaded() == nullptr) return {};
  std::set<unsigned> near;
  for (const auto& bus_id : bus_ids) state_->add_cpus_near(bus_id, near);
  const auto allowed = allowed_cpus();
  std::vector<unsigned> cpus;
  std::ranges::copy_if(allowed, std::back_inserter(cpus), [&](unsigned cpu) { return near.contains(cpu); });
  return cpus.size() == allowed.size() ? std::vector<unsigned>() : cpus;
}

Topology::State* Topology::loaded() {
  if (!state_) state_ = std::make_unique<State>();
  return state_->loaded ? state_.get() : nullptr;
}

std::optional<std::uint32_t> Topology::numa_of(const std::string& bus_id) {
  const auto* place = loaded() == nullptr ? nullptr : state_->place_of(bus_id);
  // A device at several nodes, or at all of the machine, is at none.
  if (place == nullptr || place->nodeset == nullptr || ::hwloc_bitmap_weight(place->nodeset) != 1)
    return std::nullopt;
  return static_cast<std::uint32_t>(::hwloc_bitmap_first(place->nodeset));
}

std::vector<std::size_t> Topology::nearest(const std::string& bus_id,
                                           const std::vector<std::string>& others) {
  const auto device = loaded() == nullptr ? nullptr : state_->find(bus_id);
  if (device == nullptr) return {};
  unsigned deepest = 0;
  std::vector<std::size_t> nearest;
  for (std::size_t i = 0; i < others.size(); ++i) {
    const auto other = state_->find(others[i]);
    if (other == nullptr) continue;
    const auto depth = common_depth(device, other);
    if (depth > deepest) nearest.clear();
    deepest = std::max(deepest, depth);
    if (depth == deepest) nearest.push_back(i);
  }
  return nearest;
}

}  // namespace nlaunch::sys
