#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "preflight/ask/inquiries.h"
#include "preflight/checks.h"
#include "preflight/groups/group_outcome.h"
#include "preflight/groups/trials.h"

namespace nlaunch::preflight {

/// A plan on one node: learners under a torch rendezvous with a GPU each, then engines with a GPU each.
struct Machine {
  plan::Plan plan;
  plan::BoundNode node;

  Machine(std::uint32_t learners, std::uint32_t engines, bool gpus = true) {
    plan.node.gpus = gpus ? learners + engines : 0;
    plan.node.arch = "x86_64";
    add_role("learner", RoleKind::learner, learners, Rendezvous::torch);
    add_role("engine", RoleKind::engine, engines, Rendezvous::none);
    for (std::uint32_t gpu = 0; gpus && gpu < learners + engines; ++gpu) {
      node.gpus.push_back({std::to_string(gpu), bus(gpu), uuid(gpu)});
    }
    const auto backend = gpus ? Backend::nccl : Backend::gloo;
    plan.backend = backend;
    plan.weight_syncs.front().backend = backend == Backend::nccl ? SyncBackend::nccl : SyncBackend::gloo;
    add_group("node 0", plan::GroupKind::node, backend, 0, learners + engines);
    if (learners > 1) add_group("learner world", plan::GroupKind::world, backend, 0, learners);
    if (learners == 1 && engines > 0) {
      add_group("weight sync", plan::GroupKind::weight_sync, backend, 0, learners + engines);
    }
  }

  static std::string bus(std::uint32_t gpu) { return fmt::format("00000000:{:02X}:00.0", gpu + 6); }
  static std::string uuid(std::uint32_t gpu) { return fmt::format("GPU-{:08x}-0000", gpu); }

  void add_role(const std::string& name, RoleKind kind, std::uint32_t count, Rendezvous rendezvous) {
    plan::Role role;
    role.name = name;
    role.kind = kind;
    role.count = count;
    role.gpus = 1;
    role.rendezvous = rendezvous;
    plan.roles.push_back(role);
    const bool torch = rendezvous == Rendezvous::torch;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto gpu = static_cast<std::uint16_t>(plan.processes.size());
      plan::Process process;
      process.role = static_cast<std::uint32_t>(plan.roles.size() - 1);
      process.index = i;
      process.rank = torch ? static_cast<std::int32_t>(i) : -1;
      process.local_rank = i;
      process.local_size = count;
      process.gpus = {gpu};
      plan::BoundProcess bound;
      bound.process = gpu;
      bound.name = fmt::format("{}.{}", name, i);
      bound.env = {{"CUDA_VISIBLE_DEVICES", torch ? numbers(gpu - i, count) : std::to_string(gpu)},
                   {"LOCAL_RANK", std::to_string(i)},
                   {"PATH", "/usr/bin:/bin"}};
      bound.workdir = "/";
      plan.processes.push_back(process);
      node.processes.push_back(bound);
    }
  }

  void add_group(const std::string& name, plan::GroupKind kind, Backend backend, std::uint32_t first,
                 std::uint32_t count) {
    plan::Group group{name, kind, backend, {}};
    for (std::uint32_t i = first; i < first + count; ++i)
      group.members.push_back({i, static_cast<std::uint16_t>(i)});
    if (count > 1) plan.groups.push_back(group);
  }

  static std::string numbers(std::uint32_t first, std::uint32_t count) {
    std::string out;
    for (std::uint32_t i = 0; i < count; ++i) out += fmt::format("{}{}", i == 0 ? "" : ",", first + i);
    return out;
  }

  void set(std::size_t process, const std::string& name, const std::string& value) {
    for (auto& entry : node.processes[process].env) {
      if (entry.first == name) {
        entry.second = value;
        return;
      }
    }
    node.processes[process].env.emplace_back(name, value);
  }

  /// What a healthy machine of two H200 or more shows, before the probes.
  [[nodiscard]] NodeObservations of_node(const std::string& version = "2.28.9") const {
    NodeObservations out{.plan = plan, .node = node};
    out.machine.arch = "x86_64";
    out.machine.nofile = 65536;
    out.machine.shm_free = std::uint64_t{64} << 30U;
    for (std::uint32_t gpu = 0; gpu < node.gpus.size(); ++gpu) {
      out.machine.gpus.push_back({bus(gpu), uuid(gpu), "NVIDIA H200", std::uint64_t{140} << 30U, 0});
    }
    out.ranks = make_ranks(plan, node);
    if (out.has_gpus()) {
      for (std::uint32_t role = 0; role < plan.roles.size(); ++role) {
        out.libraries[role] = wheel(version);
      }
    }
    return out;
  }

  [[nodiscard]] static LibraryFact wheel(const std::string& version) {
    return {"/venv/libnccl.so.2", version, "NCCL wheel", ""};
  }

  /// The same as the job has it. `versions` of NCCL by role.
  [[nodiscard]] Observations observations(const std::vector<std::string>& versions = {"2.28.9",
                                                                                      "2.28.9"}) const {
    Observations out{.plan = plan};
    out.ranks = make_ranks(plan, node);
    for (auto& rank : out.ranks) {
      if (rank.device >= 0) rank.library = wheel(versions.at(plan.processes[rank.process].role));
      rank.slow = slow_settings(node.processes[rank.bound]);
    }
    out.groups = make_trials(out);
    return out;
  }

  /// The same after probes that all went well.
  [[nodiscard]] Observations healthy() const {
    auto out = observations();
    out.reports.resize(out.ranks.size());
    out.went = true;
    for (std::size_t i = 0; i < out.ranks.size(); ++i) {
      out.reports[i].identity = identity(static_cast<std::uint32_t>(i), !node.gpus.empty());
      out.reports[i].done = true;
    }
    for (const auto& group : out.groups) {
      for (const auto rank : group.members) complete(out, group, rank);
    }
    return out;
  }

  [[nodiscard]] static Identity identity(std::uint32_t gpu, bool has_gpu) {
    Identity one{"vm/boot", "hostname and boot id", std::to_string(gpu), 0, "", "", ""};
    if (has_gpu) {
      one.bus_id = bus(gpu);
      one.uuid = one.nvml_uuid = uuid(gpu);
    }
    return one;
  }

  static void complete(Observations& out, const GroupTrial& group, std::size_t rank) {
    auto& progress = out.reports[rank].groups[group.name];
    progress.joining = progress.joined = true;
    for (const auto bytes : group.sizes) {
      const auto seconds = static_cast<double>(bytes) / 200e9 + 2e-5;
      progress.results.push_back(
          {bytes, bytes / 4, 0, 0, 0, 0, -1, seconds, static_cast<double>(bytes) / seconds});
    }
    if (group.transport) progress.pairs = {{0, 1, "P2P"}, {1, 0, "P2P"}};
  }
};

/// "fail | learner rank 1 (GPU 1) | value | expected | fix | user"
inline std::string line(const Row& row) {
  return fmt::format("{} | {} | {} | {} | {} | {}", name_of(row.status), row.subject, row.value, row.expected,
                     row.fix, name_of(row.responsible));
}
inline std::vector<std::string> lines(const std::vector<Row>& rows) {
  std::vector<std::string> out;
  for (const auto& row : rows) out.push_back(line(row));
  return out;
}
/// Only the rows that are not *pass*.
inline std::vector<std::string> faults(const std::vector<Row>& rows) {
  std::vector<std::string> out;
  for (const auto& row : rows) {
    if (row.status != Status::pass) out.push_back(line(row));
  }
  return out;
}

using Lines = std::vector<std::string>;

/// What a check of a node measured.
inline std::vector<Figure> figures_of(std::string_view check, const NodeObservations& observations) {
  const auto all = node_checks();
  return (*std::ranges::find(all, check, &NodeCheck::name))->figures(observations);
}
inline const Inquiry& inquiry_of(std::string_view name) {
  const auto all = inquiries();
  return **std::ranges::find(all, name, &Inquiry::name);
}

}  // namespace nlaunch::preflight
