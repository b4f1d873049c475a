#include "launch/job/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "plan/tolerance.h"
#include "sys/spawn.h"

namespace nlaunch::launch {
namespace {

constexpr std::size_t kMostNodes = 1'000'000;

/// "001-003,7": the texts in the brackets, with leading zeros.
bool expand_ranges(std::string_view ranges, std::vector<std::string>& out) {
  for (const auto& range : text::split(ranges, ',')) {
    const auto dash = range.find('-');
    const auto first = std::string_view(range).substr(0, dash);
    const auto last = dash == std::string::npos ? first : std::string_view(range).substr(dash + 1);
    const auto from = text::whole_number<std::uint64_t>(first);
    const auto to = text::whole_number<std::uint64_t>(last);
    if (!from || !to || *to < *from || *to - *from > kMostNodes || out.size() > kMostNodes) return false;
    for (auto value = *from; value <= *to; ++value) {
      out.push_back(fmt::format("{:0{}}", value, first.size()));
    }
  }
  return true;
}

/// One element of the list: "rack[1-2]n[01-16]".
bool expand_element(std::string_view element, std::vector<std::string>& out) {
  std::vector<std::string> names{""};
  while (!element.empty()) {
    const auto open = element.find('[');
    for (auto& name : names) name += element.substr(0, open);
    if (open == std::string_view::npos) break;
    const auto close = element.find(']', open);
    std::vector<std::string> parts;
    if (close == std::string_view::npos ||
        !expand_ranges(element.substr(open + 1, close - open - 1), parts) ||
        names.size() * parts.size() > kMostNodes)
      return false;
    std::vector<std::string> longer;
    for (const auto& name : names) {
      for (const auto& part : parts) longer.push_back(name + part);
    }
    names = std::move(longer);
    element.remove_prefix(close + 1);
  }
  out.insert(out.end(), names.begin(), names.end());
  return !names.front().empty();
}

/// The smallest number of "8(x4),16".
std::uint32_t fewest(std::string_view counts) {
  std::uint64_t least = 0;
  for (const auto& part : text::split(counts, ',')) {
    const auto value = text::whole_number<std::uint64_t>(std::string_view(part).substr(0, part.find('(')));
    if (value && (least == 0 || *value < least)) least = *value;
  }
  return static_cast<std::uint32_t>(least);
}

}  // namespace

std::optional<std::vector<std::string>> expand_nodelist(std::string_view list) {
  std::vector<std::string> nodes;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    const bool end = i == list.size() || (list[i] == ',' && depth == 0);
    if (!end) {
      depth += list[i] == '[' ? 1 : list[i] == ']' ? -1 : 0;
      if (depth < 0 || depth > 1) return std::nullopt;
      continue;
    }
    if (depth != 0 || i == begin || !expand_element(list.substr(begin, i - begin), nodes))
      return std::nullopt;
    begin = i + 1;
  }
  if (nodes.size() > kMostNodes) return std::nullopt;
  return nodes;
}

namespace {

/// Reads SLURM_JOB_NODELIST and related variables; for a component, those with its suffix.
Result<void> add_nodes(const std::vector<std::string>& environment, const std::string& suffix,
                       Allocation& allocation) {
  const auto value = [&](std::string_view name) {
    return sys::env_value(environment, fmt::format("{}{}", name, suffix));
  };
  const auto list = value("SLURM_JOB_NODELIST");
  auto nodes = expand_nodelist(list);
  if (!nodes) {
    return failure("launch.nodelist",
                   "SLURM_JOB_ID={} is set, but SLURM_JOB_NODELIST{}='{}' is not a list of nodes",
                   allocation.job_id, suffix, text::printable(list));
  }
  const auto count = value("SLURM_JOB_NUM_NODES");
  if (!count.empty() && text::whole_number<std::uint64_t>(count) != nodes->size()) {
    return failure("launch.allocation",
                   "SLURM_JOB_NUM_NODES{0}={1} and SLURM_JOB_NODELIST{0}={2} contradict each other: the list "
                   "has {3}; are variables of another job left in this shell?",
                   suffix, text::printable(count), list, text::count(nodes->size(), "node"));
  }
  allocation.cpus = fewest(value("SLURM_JOB_CPUS_PER_NODE"));
  if (!suffix.empty()) allocation.components.push_back({nodes->size(), allocation.cpus});
  allocation.nodes.insert(allocation.nodes.end(), nodes->begin(), nodes->end());
  return {};
}

}  // namespace

Result<std::optional<Allocation>> find_allocation(const std::vector<std::string>& environment) {
  const auto value = [&](std::string_view name) { return sys::env_value(environment, name); };
  Allocation allocation;
  allocation.job_id = value("SLURM_JOB_ID");
  if (allocation.job_id.empty()) return std::nullopt;
  constexpr std::uint32_t kMostComponents = 1024;
  const auto size = text::whole_number<std::uint32_t>(value("SLURM_HET_SIZE")).value_or(0);
  if (size < 2) {
    if (const auto added = add_nodes(environment, "", allocation); !added)
      return std::unexpected(added.error());
  }
  for (std::uint32_t i = 0; size >= 2 && i < std::min(size, kMostComponents); ++i) {
    if (const auto added = add_nodes(environment, fmt::format("_HET_GROUP_{}", i), allocation); !added)
      return std::unexpected(added.error());
  }
  // Slurm reports this only for the first component.
  const auto gpus = value("SLURM_GPUS_PER_NODE");
  const auto known = text::whole_number<std::uint64_t>(gpus.substr(gpus.rfind(':') + 1));
  if (known && allocation.components.empty()) allocation.gpus = static_cast<std::uint32_t>(*known);
  return allocation;
}

namespace {

/// Both have the same number of components: those of the plan are the job's, in order.
bool correspond(const plan::Plan& plan, const Allocation& allocation) {
  return !plan.slurm.components.empty() && plan.slurm.components.size() == allocation.components.size();
}

}  // namespace

std::string misfit(const plan::Plan& plan, const Allocation& allocation) {
  if (correspond(plan, allocation)) {
    for (std::size_t i = 0; i < allocation.components.size(); ++i) {
      const auto& wanted = plan.slurm.components[i];
      const auto there = allocation.components[i].nodes;
      if (there < wanted.nodes) {
        return fmt::format("component {} of job {} has {}, but the plan uses {} there ({})", i,
                           allocation.job_id, text::count(there, "node"), wanted.nodes,
                           text::join(wanted.pools, ", "));
      }
    }
    return "";
  }
  if (!allocation.components.empty()) {
    return fmt::format(
        "job {} has {}, but the plan asks for {}", allocation.job_id,
        text::count(allocation.components.size(), "component"),
        plan.slurm.components.empty() ? "nodes of one kind" : std::to_string(plan.slurm.components.size()));
  }
  if (allocation.nodes.size() < plan.node.count) {
    return fmt::format("job {} has {}, but the plan uses {}", allocation.job_id,
                       text::count(allocation.nodes.size(), "node"), plan.node.count);
  }
  auto gpus = plan.pools.empty() ? plan.node.gpus : 0;
  for (const auto& pool : plan.pools) gpus = std::max(gpus, pool.elastic ? 0 : pool.node.gpus);
  if (!plan.node.cpu_slots && allocation.gpus && *allocation.gpus < gpus) {
    return fmt::format("job {} has {} per node (SLURM_GPUS_PER_NODE), but the plan uses {}",
                       allocation.job_id, text::count(*allocation.gpus, "GPU"), gpus);
  }
  return "";
}

std::optional<std::vector<std::string>> first_nodes(const plan::Plan& plan, const Allocation& allocation,
                                                    const std::set<std::string>& out) {
  std::vector<std::string> chosen;
  std::size_t first = 0;
  const auto take = [&](std::size_t from, std::size_t wanted) {
    const auto before = chosen.size();
    for (auto at = first; at < first + from && chosen.size() < before + wanted; ++at) {
      if (!out.contains(allocation.nodes[at])) chosen.push_back(allocation.nodes[at]);
    }
    first += from;
    return chosen.size() == before + wanted;
  };
  if (!correspond(plan, allocation)) {
    if (take(allocation.nodes.size(), plan.node.count)) return chosen;
    return std::nullopt;
  }
  for (std::size_t i = 0; i < allocation.components.size(); ++i) {
    if (!take(allocation.components[i].nodes, plan.slurm.components[i].nodes)) return std::nullopt;
  }
  return chosen;
}

namespace {

std::vector<std::string> step_options(const plan::Plan& plan, const Allocation& allocation,
                                      const std::vector<std::string>& nodes, std::uint32_t cpus,
                                      const std::string& input) {
  std::vector<std::string> out{"--jobid=" + allocation.job_id, fmt::format("--nodes={}", nodes.size()),
                               fmt::format("--ntasks={}", nodes.size()), "--ntasks-per-node=1",
                               "--nodelist=" + text::join(nodes, ","), "--overlap",
                               // Otherwise the exit of one agent kills all.
                               fmt::format("--kill-on-bad-exit={}", plan::outlives_nodes(plan) ? 0 : 1),
                               "--wait=0", "--cpu-bind=none", "--gpu-bind=none", "--mem=0", input};
  if (plan::outlives_nodes(plan)) out.emplace_back("--no-kill");
  if (cpus > 0) out.push_back(fmt::format("--cpus-per-task={}", cpus));
  out.insert(out.end(), plan.slurm.srun.begin(), plan.slurm.srun.end());
  return out;
}

}  // namespace

std::vector<std::string> srun_command(const plan::Plan& plan, const Allocation& allocation,
                                      const std::vector<std::string>& nodes,
                                      const std::vector<std::string>& command, const std::string& input) {
  std::vector<std::string> out{"srun"};
  const auto add = [&](const std::vector<std::string>& words) {
    out.insert(out.end(), words.begin(), words.end());
  };
  if (allocation.components.empty()) {
    add(step_options(plan, allocation, nodes, allocation.cpus, input));
    add(command);
    return out;
  }
  std::size_t first = 0;
  for (std::size_t i = 0; i < allocation.components.size(); ++i) {
    const auto& component = allocation.components[i];
    const std::set<std::string> own(
        allocation.nodes.begin() + static_cast<std::ptrdiff_t>(first),
        allocation.nodes.begin() + static_cast<std::ptrdiff_t>(first + component.nodes));
    first += component.nodes;
    std::vector<std::string> here;
    std::ranges::copy_if(nodes, std::back_inserter(here),
                         [&](const auto& node) { return own.contains(node); });
    if (here.empty()) continue;
    if (out.size() > 1) out.emplace_back(":");
    out.push_back(fmt::format("--het-group={}", i));
    add(step_options(plan, allocation, here, component.cpus, input));
    add(command);
  }
  return out;
}

std::vector<std::string> srun_environment(std::vector<std::string> environment) {
  // srun takes these as options. SLURM_JOB_* and SLURM_CONF name the job and the cluster, and without
  // SLURM_HET_SIZE srun does not see the components of the job.
  constexpr std::string_view kNotOptions[] = {
      "SLURM_JOB_", "SLURM_JOBID=", "SLURM_HET_SIZE=", "SLURM_CONF=", "SLURM_CLUSTER_NAME=", "SLURM_SUBMIT_"};
  std::erase_if(environment, [&](const std::string& entry) {
    const bool option = entry.starts_with("SRUN_") || entry.starts_with("SLURM_");
    return option &&
           std::ranges::none_of(kNotOptions, [&](auto prefix) { return entry.starts_with(prefix); });
  });
  return environment;
}

}  // namespace nlaunch::launch
