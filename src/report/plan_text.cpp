#include "report/plan_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nlaunch::report {
namespace {

using plan::Plan;

/// "8", "4 replicas of 2 × 1": of two nodes, with one on each
std::string processes_of(const plan::Role& role) {
  if (!role.replica) return std::to_string(role.count);
  return fmt::format("{} of {} × {}", text::count(plan::replicas(role), "replica"), role.replica->nodes,
                     role.replica->per_node);
}

/// The pools, if the experiment has any.
std::string pool_table(const Plan& plan, const Paint& paint) {
  if (plan.pools.empty()) return "";
  Table table({"pool", "nodes", "GPUs", "model", "requested with"});
  for (const auto& pool : plan.pools) {
    const auto& jobs = pool.elastic ? plan.slurm.borrowed : plan.slurm.components;
    const auto component = std::ranges::find_if(
        jobs, [&](const auto& one) { return std::ranges::find(one.pools, pool.name) != one.pools.end(); });
    std::vector<std::string> options;
    if (component != jobs.end()) {
      for (const auto& option : component->directives)
        options.push_back(option.value.empty() ? option.name
                                               : fmt::format("{}={}", option.name, option.value));
    }
    const auto last = pool.first + pool.node.count - 1;
    const auto nodes =
        pool.node.count == 1 ? std::to_string(pool.first) : fmt::format("{}-{}", pool.first, last);
    table.add({paint.bold(pool.name),
               pool.elastic ? fmt::format("{}, borrowed, initially {}", nodes, pool.elastic->min) : nodes,
               std::to_string(pool.node.gpus), pool.node.cpu_slots ? "CPU slots" : pool.node.gpu_model,
               text::join(options, " ")});
  }
  return table.str(paint) + "\n";
}

std::string role_table(const Plan& plan, const Paint& paint) {
  Table table({"role", "kind", "processes", "GPUs each", "shared with", "memory", "pool", "nodes",
               "rendezvous", "preload", "spawned by"});
  for (std::uint32_t i = 0; i < plan.roles.size(); ++i) {
    const auto& role = plan.roles[i];
    std::vector<std::uint32_t> nodes;
    for (const auto& process : plan.processes) {
      if (process.role == i && (nodes.empty() || nodes.back() != process.node)) nodes.push_back(process.node);
    }
    std::ranges::sort(nodes);
    nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
    const auto preload = role.preload.empty()
                             ? std::string()
                             : fmt::format("{} ({})", text::join(role.preload, ", "), name_of(role.scope));
    table.add({paint.bold(role.name), std::string(name_of(role.kind)), processes_of(role),
               std::to_string(role.gpus), text::join(role.share_gpus_with, ", "),
               role.gpu_memory ? fmt::format("{:g}", *role.gpu_memory) : "", text::join(role.pools, ", "),
               ranges(nodes),
               role.rendezvous == Rendezvous::none ? "" : std::string(name_of(role.rendezvous)), preload,
               text::join(role.spawned_by, ", ")});
  }
  return table.str(paint);
}

/// What is near each GPU, according to the profile: "NUMA 0, mlx5_0". Empty if the profile does not say.
std::vector<std::string> near_row(const Plan& plan) {
  const auto& [slurm, domain, at_switch, numa, nics] = plan.topology;
  const auto of_all_gpus = [&](const auto& list) { return list.size() == plan.node.gpus; };
  if (plan.node.gpus == 0 || plan.node.cpu_slots || (!of_all_gpus(numa) && !of_all_gpus(nics))) return {};
  std::vector<std::string> row{"near"};
  for (std::size_t gpu = 0; gpu < plan.node.gpus; ++gpu) {
    std::vector<std::string> near;
    if (of_all_gpus(numa)) near.push_back(fmt::format("NUMA {}", numa[gpu]));
    if (of_all_gpus(nics)) near.push_back(nics[gpu]);
    row.push_back(text::join(near, ", "));
  }
  row.emplace_back();
  return row;
}

std::string node_table(const Plan& plan, const Paint& paint, std::uint32_t most_nodes) {
  const auto shown = std::min(plan.all_nodes(), most_nodes);
  std::vector<std::string> head{"node"};
  for (std::uint32_t gpu = 0; gpu < plan.node.gpus; ++gpu) {
    head.push_back(fmt::format("{} {}", plan.node.cpu_slots ? "slot" : "GPU", gpu));
  }
  head.emplace_back("no GPU");
  Table table(head);
  if (auto near = near_row(plan); !near.empty()) table.add(std::move(near));
  std::vector<std::vector<std::string>> rows(shown, std::vector<std::string>(head.size()));
  for (std::uint32_t node = 0; node < shown; ++node) rows[node][0] = std::to_string(node);
  for (const auto& process : plan.processes) {
    if (process.node >= shown) continue;
    auto& row = rows[process.node];
    const auto add = [&](std::string& cell) {
      if (!cell.empty()) cell += ' ';
      cell += plan.name_of(process);
    };
    for (const auto gpu : process.gpus) add(row[gpu + 1U]);
    if (process.gpus.empty()) add(row.back());
  }
  for (const auto& gpu : plan.idle_gpus) {
    if (gpu.node < shown) rows[gpu.node][gpu.gpu + 1U] = paint.yellow("idle");
  }
  for (auto& row : rows) table.add(std::move(row));
  auto out = table.str(paint);
  if (shown < plan.all_nodes()) out += fmt::format("… and {} more nodes\n", plan.all_nodes() - shown);
  return out;
}

std::string group_lines(const Plan& plan) {
  Table table({"", "", ""});
  std::size_t of_engines = 0;
  std::size_t of_nodes = 0;
  std::size_t engine_size = 0;
  std::size_t node_size = 0;
  for (const auto& group : plan.groups) {
    const auto size = group.members.size();
    if (group.kind == plan::GroupKind::tensor_parallel) {
      ++of_engines;
      engine_size = size;
    } else if (group.kind == plan::GroupKind::node) {
      ++of_nodes;
      node_size = std::max(node_size, size);
    } else {
      table.add({"group", group.name,
                 fmt::format("{} over {}", text::count(size, "rank"), name_of(group.backend))});
    }
  }
  const auto many = [&](std::size_t number, std::size_t size, std::string_view what) {
    if (number == 0) return;
    table.add({"group", std::string(what),
               fmt::format("{} of {} over {}", text::count(number, "group"), text::count(size, "rank"),
                           name_of(plan.backend))});
  };
  many(of_engines, engine_size, "engine tensor parallel");
  many(of_nodes, node_size, "each node");
  return table.str(Paint(false));
}

std::string stage_line(const Plan& plan) {
  std::vector<std::string> stages;
  for (const auto& stage : plan.stages) {
    std::vector<std::string> roles;
    for (const auto role : stage) roles.push_back(plan.roles[role].name);
    stages.push_back(text::join(roles, ", "));
  }
  return fmt::format("start  {}\n", text::join(stages, "  then  "));
}

std::string wrapper_lines(const Plan& plan) {
  std::string out;
  for (const auto& role : plan.roles) {
    if (!role.wrapper.empty())
      out += fmt::format("wrapper  {}: {}\n", role.name, text::shell_join(role.wrapper));
  }
  return out;
}

}  // namespace

std::string ranges(const std::vector<std::uint32_t>& numbers) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!out.empty()) out += ',';
    out += last == i ? std::to_string(numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return out;
}

std::string plan_text(const Plan& plan, const Paint& paint, std::uint32_t most_nodes) {
  const auto& node = plan.node;
  const auto gpus = node.gpus == 0 || !plan.pools.empty()
                        ? std::string()
                        : fmt::format(" × {}{}", text::count(node.gpus, node.cpu_slots ? "CPU slot" : "GPU"),
                                      node.gpu_model.empty() || node.cpu_slots ? "" : " " + node.gpu_model);
  auto out = fmt::format("{} on {} ({}): {}{}\n\n", paint.bold(plan.name), paint.bold(plan.site),
                         plan.site_path, text::count(node.count, "node"), gpus);
  out += pool_table(plan, paint);
  out += role_table(plan, paint) + "\n" + node_table(plan, paint, most_nodes) + "\n";
  out += group_lines(plan) + stage_line(plan) + wrapper_lines(plan);
  for (const auto& warning : plan.warnings) out += fmt::format("{} {}\n", paint.yellow("warning:"), warning);
  return out;
}

std::string placement_line(const Plan& plan) {
  std::vector<std::string> parts;
  for (std::uint32_t i = 0; i < plan.roles.size(); ++i) {
    std::vector<std::uint32_t> gpus;
    for (const auto& process : plan.processes) {
      if (process.role == i) gpus.insert(gpus.end(), process.gpus.begin(), process.gpus.end());
    }
    std::ranges::sort(gpus);
    const auto where = gpus.empty() || plan.node.count > 1
                           ? std::string()
                           : fmt::format(" on {} {}", plan.node.cpu_slots ? "slot" : "GPU", ranges(gpus));
    parts.push_back(fmt::format("{} × {}{}", plan::replicas(plan.roles[i]), plan.roles[i].name, where));
  }
  return text::join(parts, " · ");
}

}  // namespace nlaunch::report
