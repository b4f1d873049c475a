#include "plan/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "base/text.h"

namespace nlaunch::plan {
namespace {

void add_members(Group& group, const Plan& plan, std::uint32_t process) {
  for (const auto gpu : plan.processes[process].gpus) group.members.push_back({process, gpu});
}

/// For each GPU, the process that represents it, if several use it in turn: a communicator can use a GPU only
/// once. Roles that train come before roles that generate, and roles that start last before the others.
class Owners {
 public:
  explicit Owners(const Plan& plan) : plan_(plan) {
    for (const auto& process : plan.processes) {
      nodes_ = std::max<std::size_t>(nodes_, process.node + 1);
      for (const auto gpu : process.gpus) width_ = std::max<std::size_t>(width_, gpu + 1);
    }
    owners_.assign(nodes_ * width_, kNobody);
    for (std::uint32_t i = 0; i < plan.processes.size(); ++i) {
      for (const auto gpu : plan.processes[i].gpus) {
        auto& owner = owners_[place(plan.processes[i].node, gpu)];
        if (owner == kNobody || before(i, owner)) owner = i;
      }
    }
  }

  /// Of a GPU that a process uses.
  [[nodiscard]] std::uint32_t of(std::uint32_t node, std::uint16_t gpu) const {
    return owners_[place(node, gpu)];
  }

  /// One member per GPU of the node that a process uses.
  [[nodiscard]] std::vector<Member> on(std::uint32_t node) const {
    std::vector<Member> members;
    for (std::size_t gpu = 0; node < nodes_ && gpu < width_; ++gpu) {
      const auto owner = owners_[place(node, gpu)];
      if (owner != kNobody) members.push_back({owner, static_cast<std::uint16_t>(gpu)});
    }
    return members;
  }

 private:
  static constexpr auto kNobody = std::numeric_limits<std::uint32_t>::max();

  [[nodiscard]] std::size_t place(std::uint32_t node, std::size_t gpu) const { return node * width_ + gpu; }
  [[nodiscard]] auto stage(std::uint32_t role) const {
    const auto found = std::ranges::find_if(
        plan_.stages, [&](const auto& roles) { return std::ranges::find(roles, role) != roles.end(); });
    return found - plan_.stages.begin();  // spawned roles are in no stage: they stay until the end
  }
  [[nodiscard]] bool before(std::uint32_t a, std::uint32_t b) const {
    const auto& one = plan_.processes[a];
    const auto& two = plan_.processes[b];
    return std::pair(plan_.role_of(one).kind, -stage(one.role)) <
           std::pair(plan_.role_of(two).kind, -stage(two.role));
  }

  const Plan& plan_;
  std::size_t nodes_ = 0;
  std::size_t width_ = 0;
  std::vector<std::uint32_t> owners_;  ///< by node, by GPU
};

Group world(const Plan& plan, const Owners& owners) {
  Group group{"learner world", GroupKind::world, plan.backend, {}};
  for (std::uint32_t i = 0; i < plan.processes.size(); ++i) {
    const auto& process = plan.processes[i];
    if (plan.role_of(process).kind != RoleKind::learner) continue;
    for (const auto gpu : process.gpus)
      if (owners.of(process.node, gpu) == i) group.members.push_back({i, gpu});
  }
  return group;
}

/// Learner 0 with its first GPU, then all engines that get their weights over the network.
std::vector<Member> usual_sync_members(const Plan& plan) {
  const Owners owners(plan);
  const auto learner = std::ranges::find_if(plan.processes, [&](const Process& process) {
    return plan.role_of(process).kind == RoleKind::learner && !process.gpus.empty() &&
           &plan.processes[owners.of(process.node, process.gpus.front())] == &process;
  });
  if (learner == plan.processes.end()) return {};
  Group group;
  group.members.push_back(
      {static_cast<std::uint32_t>(learner - plan.processes.begin()), learner->gpus.front()});
  for (std::uint32_t i = 0; i < plan.processes.size(); ++i) {
    if (is_in_weight_sync(plan, plan.processes[i].role)) add_members(group, plan, i);
  }
  return std::move(group.members);
}

std::vector<Group> by_node(const Plan& plan, const Owners& owners) {
  std::vector<Group> groups;
  groups.reserve(plan.node.count);
  for (std::uint32_t node = 0; node < plan.node.count; ++node)
    groups.push_back({fmt::format("node {}", node), GroupKind::node, plan.backend,
                      plan.is_borrowed(node) ? std::vector<Member>() : owners.on(node)});
  return groups;
}

}  // namespace

std::vector<Group> make_groups(const Plan& plan) {
  const Owners owners(plan);
  auto groups = by_node(plan, owners);
  groups.push_back(world(plan, owners));
  for (std::uint32_t i = 0; i < plan.processes.size(); ++i) {
    const auto& process = plan.processes[i];
    const auto& role = plan.role_of(process);
    if (role.kind != RoleKind::engine) continue;
    const auto at = in_replica(role, process);
    if (at.rank == 0)
      groups.push_back({fmt::format("{}.{} tensor parallel", role.name, at.index),
                        GroupKind::tensor_parallel,
                        plan.backend,
                        {}});
    add_members(groups.back(), plan, i);
  }
  for (const auto& sync : plan.weight_syncs) {
    if (const auto backend = communicator_of(sync.backend))
      groups.push_back({group_name(sync), GroupKind::weight_sync, *backend, sync_members(plan, sync)});
  }
  // What does not exist yet cannot be tested.
  const auto is_borrowed = [&](const Member& member) {
    return plan.is_borrowed(plan.processes[member.process].node);
  };
  std::erase_if(groups, [&](const Group& group) {
    return group.members.size() < 2 || std::ranges::any_of(group.members, is_borrowed);
  });
  return groups;
}

bool share_gpus(const Role& a, const Role& b) {
  const auto has = [](const Role& role, const std::string& name) {
    return std::ranges::find(role.share_gpus_with, name) != role.share_gpus_with.end();
  };
  return has(a, b.name) || has(b, a.name) ||
         std::ranges::find_first_of(a.share_gpus_with, b.share_gpus_with) != a.share_gpus_with.end();
}

namespace {

using Gpus = std::set<std::pair<std::uint32_t, std::uint16_t>>;

Gpus gpus_of(const Plan& plan, std::size_t role) {
  Gpus gpus;
  for (const auto& process : plan.processes) {
    if (process.role != role) continue;
    for (const auto gpu : process.gpus) gpus.emplace(process.node, gpu);
  }
  return gpus;
}

/// Whether some of their processes use one GPU at the same time.
bool meet_on_a_gpu(const Plan& plan, std::size_t a, std::size_t b) {
  if (!share_gpus(plan.roles[a], plan.roles[b])) return false;
  const auto of_a = gpus_of(plan, a);
  return std::ranges::any_of(gpus_of(plan, b), [&](const auto& gpu) { return of_a.contains(gpu); });
}

}  // namespace

bool is_in_weight_sync(const Plan& plan, std::size_t role) {
  const auto& engine = plan.roles[role];
  if (engine.kind != RoleKind::engine || engine.gpus == 0) return false;
  const auto sender = std::ranges::find(plan.roles, RoleKind::learner, &Role::kind) - plan.roles.begin();
  for (std::size_t i = 0; i < plan.roles.size(); ++i) {
    if (i == role || !meet_on_a_gpu(plan, role, i)) continue;
    if (std::cmp_equal(i, sender)) return false;
    if (plan.roles[i].kind == RoleKind::engine && i < role && is_in_weight_sync(plan, i)) return false;
  }
  return true;
}

namespace {

/// Processes, sorted by role and index.
struct Range {
  std::size_t first = 0;
  std::size_t count = 0;
  bool whole_role = false;
};

/// The processes that a name means: "engine", "engine.2", with replicas all of the third, "engine.2.1". None
/// for an unknown name.
Range named(const Plan& plan, std::string_view name) {
  const auto parts = text::split(name, '.');
  const auto role = std::ranges::find(plan.roles, parts.front(), &Role::name);
  if (role == plan.roles.end() || parts.size() > 3) return {};
  const auto all = std::ranges::equal_range(
      plan.processes, static_cast<std::uint32_t>(role - plan.roles.begin()), {}, &Process::role);
  const auto count = static_cast<std::size_t>(all.size());
  Range range{static_cast<std::size_t>(all.begin() - plan.processes.begin()), count, true};
  if (parts.size() == 1) return range;
  const std::size_t size = replica_size(*role);
  const auto index = text::whole_number<std::uint32_t>(parts[1]);
  const auto rank = parts.size() == 3 ? text::whole_number<std::uint32_t>(parts[2]) : std::optional(0U);
  if (!index || !rank || (parts.size() == 3 && !role->replica) || *index >= count / size || *rank >= size)
    return {};
  return {range.first + *index * size + *rank, parts.size() == 3 ? 1 : size, false};
}

}  // namespace

const Process* find_process(const Plan& plan, std::string_view name) {
  const auto range = named(plan, name);
  return range.count == 0 ? nullptr : &plan.processes[range.first];
}

std::vector<Member> sync_members(const Plan& plan, std::string_view entry) {
  Group group;
  const auto range = named(plan, entry);
  for (std::size_t i = 0; i < range.count; ++i)
    add_members(group, plan, static_cast<std::uint32_t>(range.first + i));
  // For a learner that is named individually, its first GPU.
  const bool one = range.count > 0 && !range.whole_role;
  if (one && plan.role_of(plan.processes[range.first]).kind == RoleKind::learner && group.members.size() > 1)
    group.members.resize(1);
  return std::move(group.members);
}

std::vector<Member> sync_members(const Plan& plan, const WeightSync& sync) {
  std::vector<Member> members;
  for (const auto& entry : sync.order) {
    const auto more = sync_members(plan, entry);
    members.insert(members.end(), more.begin(), more.end());
  }
  if (sync.order.empty()) members = usual_sync_members(plan);
  if (members.size() < 2 || (sync.order.empty() && sync.world_size == 0)) members.clear();
  return members;
}

std::uint32_t weight_sync_size(const Plan& plan, const WeightSync& sync) {
  if (!communicator_of(sync.backend) && sync.backend != SyncBackend::nixl) return 0;
  if (!sync.order.empty()) return static_cast<std::uint32_t>(sync_members(plan, sync).size());
  // A learner without a GPU is a member, too.
  std::uint32_t engines = 0;
  bool learner = false;
  for (std::size_t i = 0; i < plan.roles.size(); ++i) {
    const auto& role = plan.roles[i];
    if (is_in_weight_sync(plan, i)) engines += role.count * role.gpus;
    learner = learner || (role.kind == RoleKind::learner && role.count > 0);
  }
  return learner && engines > 0 ? 1 + engines : 0;
}

std::int64_t sync_rank(const Plan& plan, const WeightSync& sync, const Process& process) {
  if (sync.world_size == 0) return -1;
  if (!sync.order.empty()) {
    const auto members = sync_members(plan, sync);
    const auto found = std::ranges::find_if(
        members, [&](const Member& member) { return &plan.processes[member.process] == &process; });
    return found == members.end() ? -1 : found - members.begin();
  }
  if (plan.role_of(process).kind == RoleKind::learner)
    return process.rank <= 0 && process.index == 0 ? 0 : -1;
  if (!is_in_weight_sync(plan, process.role)) return -1;
  std::int64_t rank = 1;
  for (std::uint32_t role = 0; role < process.role; ++role) {
    if (is_in_weight_sync(plan, role)) rank += std::int64_t{plan.roles[role].count} * plan.roles[role].gpus;
  }
  return rank + std::int64_t{process.index} * plan.roles[process.role].gpus;
}

std::uint32_t sync_node(const Plan& plan, const WeightSync& sync) {
  if (const auto* master = find_process(plan, sync.master)) return master->node;
  if (const auto members = sync_members(plan, sync); !members.empty())
    return plan.processes[members.front().process].node;
  const auto learner = std::ranges::find_if(plan.processes, [&](const Process& process) {
    return plan.role_of(process).kind == RoleKind::learner;
  });
  return learner == plan.processes.end() ? 0 : learner->node;
}

std::string group_name(const WeightSync& sync) {
  return sync.name.empty() ? "weight sync" : fmt::format("weight sync {}", sync.name);
}

}  // namespace nlaunch::plan
