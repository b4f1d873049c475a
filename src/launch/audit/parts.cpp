#include "launch/audit/parts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "scope/wrapper.h"

namespace nlaunch::launch {
namespace {

nlaunch_kind kind_of(const ObservedProcess& process) {
  std::vector<const char*> argv;
  for (const auto& argument : process.argv) argv.push_back(argument.c_str());
  argv.push_back(nullptr);
  return nlaunch_kind_of(process.executable.c_str(), argv.data());
}

Part part_by_kind(const ObservedProcess& process) {
  switch (kind_of(process)) {
    case NLAUNCH_WRAPPER:
      return Part::wrapper;
    case NLAUNCH_LAUNCHER:
      return Part::launcher;
    case NLAUNCH_PROGRAM:
      break;
  }
  return Part::program;
}

Part part_of_child(Part parent, const ObservedProcess& child) {
  switch (parent) {
    case Part::wrapper:
      return part_by_kind(child);
    case Part::launcher: {
      const auto part = part_by_kind(child);
      return child.rank || part == Part::launcher ? part : Part::launcher_helper;
    }
    case Part::launcher_helper:
      return Part::helper;
    case Part::program:
      return Part::helper;
    case Part::helper:
      return Part::helper;
  }
  return Part::helper;
}

bool is_fork(const ObservedProcess& child, const ObservedProcess& parent) {
  return child.stack_start != 0 && child.stack_start == parent.stack_start &&
         child.executable == parent.executable;
}

}  // namespace

std::string command_text(const ObservedProcess& process) {
  // A process that has set its title pads it with NULs, which read as empty arguments.
  return std::string(text::trim(text::join(process.argv, " ")));
}

const Standing& Parts::of(sys::ProcessId id) {
  const auto known = known_.find(id);
  if (known != known_.end()) return known->second;
  const auto place = find(seen_.at(id));
  return known_.emplace(id, place).first->second;
}

Standing Parts::find(const ObservedProcess& process) {
  const auto parent = seen_.find(process.parent);
  if (parent == seen_.end() || parent->second.owner != process.owner) {
    return {plan_.processes[process.owner].role, process.owner, part_by_kind(process)};
  }
  auto place = of(parent->first);
  const bool fork = is_fork(process, parent->second);
  if (fork) {
    place.forked_from = &parent->second;
  } else {
    place.part = part_of_child(place.part, process);
    place.forked_from = nullptr;
  }
  if (auto spawned = classified(process); spawned && (spawned->role != place.role || !fork)) return *spawned;
  return place;
}

std::optional<Standing> Parts::classified(const ObservedProcess& process) const {
  const auto& spawner = plan_.role_of(plan_.processes[process.owner]).name;
  const auto command = command_text(process);
  for (std::uint32_t role = 0; role < plan_.roles.size(); ++role) {
    const auto& candidate = plan_.roles[role];
    if (std::ranges::find(candidate.spawned_by, spawner) == candidate.spawned_by.end()) continue;
    if (candidate.classify.empty() || !text::glob_match(candidate.classify, command)) continue;
    Standing place{role, std::nullopt, Part::program};
    const auto of_role = [&](const auto& bound) { return plan_.processes[bound.process].role == role; };
    if (std::ranges::count_if(node_.processes, of_role) == 1) {
      place.process = std::ranges::find_if(node_.processes, of_role)->process;
    }
    return place;
  }
  return std::nullopt;
}

}  // namespace nlaunch::launch
