#include "shell/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace nlaunch::shell {
namespace {

constexpr std::string_view kHost = "rec-node-";
constexpr std::string_view kAddress = "10.77.";
constexpr std::uint32_t kPerByte = 250;

/// The GPUs of "gpu:h100:8", "gpu:8", "h100:8", "8", "gpu".
std::uint32_t gpus_of(const std::string& text) {
  constexpr std::uint32_t kMost = 1024;
  for (const auto& part : text::split(text, ',')) {
    const auto one = part.substr(0, part.find('('));
    if (const auto count = leading_number(std::string_view(one).substr(one.rfind(':') + 1)); count > 0)
      return std::min(count, kMost);
    if (one == "gpu") return 1;
  }
  return 0;
}

/// MiB of "120G" or "4096", as Slurm counts them. Nothing for another text, and for 0: all of the node's.
std::optional<std::uint64_t> mebibytes_of(std::string_view text) {
  constexpr std::uint64_t kMost = 1'000'000'000;
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto value = text::whole_number<std::uint64_t>(text.substr(0, digits)).value_or(0);
  if (text.size() - digits > 1 || value == 0 || value > kMost) return std::nullopt;
  switch (digits == text.size() ? 'M' : text[digits]) {
    case 'K':
      return value / 1024;
    case 'M':
      return value;
    case 'G':
      return value * 1024;
    case 'T':
      return value * 1024 * 1024;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool Allocation::is_port(std::string_view text) {
  const auto number = text::whole_number<std::uint16_t>(text);
  return number && *number >= kFirstPort && *number <= kPortOfTask;
}

std::uint32_t leading_number(std::string_view text) {
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr std::uint32_t kMost = 100'000;
  return std::min(value, kMost);
}

std::vector<std::uint32_t> array_tasks(std::string_view value) {
  constexpr std::size_t kMost = 100'000;
  std::vector<std::uint32_t> ids;
  if (value.empty()) return ids;
  for (const auto& part : text::split(value.substr(0, value.find('%')), ',')) {
    const auto first = leading_number(part);
    const auto dash = part.find('-');
    const auto last =
        dash == std::string::npos ? first : leading_number(std::string_view(part).substr(dash + 1));
    const auto colon = part.find(':');
    const auto step = colon == std::string::npos
                          ? 1
                          : std::max(1U, leading_number(std::string_view(part).substr(colon + 1)));
    for (auto id = first; id <= last && ids.size() < kMost; id += step) ids.push_back(id);
  }
  return ids;
}

AskedFor asked_for(const std::function<std::string(std::string_view option)>& value) {
  AskedFor job;
  const auto per_node =
      std::max(leading_number(value("ntasks-per-node")), leading_number(value("tasks-per-node")));
  const auto tasks = leading_number(value("ntasks"));
  job.nodes = std::max(1U, leading_number(value("nodes")));
  if (value("nodes").empty() && per_node > 0 && tasks > per_node)
    job.nodes = (tasks + per_node - 1) / per_node;
  job.tasks = per_node > 0 ? per_node : tasks > 0 ? std::max(1U, tasks / job.nodes) : 0;
  job.uneven = tasks > 0 && (per_node > 0 ? tasks != per_node * job.nodes : tasks % job.nodes != 0);
  job.gpus = gpus_of(value("gpus-per-node"));
  if (const auto gres = value("gres"); job.gpus == 0 && gres.find("gpu") != std::string::npos)
    job.gpus = gpus_of(gres);
  if (job.gpus == 0) job.gpus = gpus_of(value("gpus")) / job.nodes;
  if (job.tasks == 0) job.tasks = leading_number(value("ntasks-per-gpu")) * job.gpus;
  if (job.gpus == 0) {
    constexpr std::uint32_t kMost = 1024;
    job.gpus = std::min(gpus_of(value("gpus-per-task")) * std::max(1U, job.tasks), kMost);
    job.gpus_of_tasks = job.gpus > 0;
  }
  job.cpus_per_gpu = leading_number(value("cpus-per-gpu"));
  const auto add = [&](const char* name, const auto& what) {
    job.variables.push_back(fmt::format("{}={}", name, what));
  };
  if (job.cpus_per_gpu > 0) add("SLURM_CPUS_PER_GPU", job.cpus_per_gpu);
  if (const auto gpus = value("gpus"); !gpus.empty()) add("SLURM_GPUS", gpus);
  if (const auto gpus = value("gpus-per-task"); !gpus.empty()) add("SLURM_GPUS_PER_TASK", gpus);
  if (const auto size = mebibytes_of(value("mem"))) add("SLURM_MEM_PER_NODE", *size);
  if (const auto size = mebibytes_of(value("mem-per-gpu"))) add("SLURM_MEM_PER_GPU", *size);
  if (const auto size = mebibytes_of(value("mem-per-cpu"))) add("SLURM_MEM_PER_CPU", *size);
  return job;
}

std::string Allocation::host(std::uint32_t node) {
  return fmt::format("{}{}", kHost, node);
}

std::string Allocation::address(std::uint32_t node) {
  return fmt::format("{}{}.{}", kAddress, (node + 1) / kPerByte, (node + 1) % kPerByte);
}

bool Allocation::names_node(std::string_view text) {
  return text.contains("rec-node-") || text.contains("10.77.");
}

bool Allocation::names_host(std::string_view text) {
  return names_node(text) || text.contains("localhost") || text.contains("127.0.0.1") ||
         text.contains("0.0.0.0");
}

std::string Allocation::host_list() const {
  return host_list({0, nodes});
}

std::string Allocation::host_list(const Component& component) {
  if (component.nodes == 1) return host(component.first);
  return fmt::format("{}[{}-{}]", kHost, component.first, component.first + component.nodes - 1);
}

std::optional<Allocation::Component> Allocation::component(std::uint32_t number) const {
  if (components.empty())
    return number == 0 ? std::optional(Component{0, nodes, tasks_per_node, gpus_per_node}) : std::nullopt;
  return number < components.size() ? std::optional(components[number]) : std::nullopt;
}

Allocation::Component Allocation::component_of(std::uint32_t node) const {
  std::uint32_t number = 0;
  while (number + 1 < components.size() && node >= components[number + 1].first) ++number;
  return component(number).value_or(Component{});
}

std::vector<std::uint32_t> nodes_in(std::string_view list) {
  std::string hosts(list);
  std::ranges::replace_if(
      hosts, [](char c) { return c == ' ' || c == '\t' || c == '\n'; }, ',');
  std::vector<std::uint32_t> nodes;
  std::string range;  // "rec-node-[0-3" in a list with commas inside brackets
  for (const auto& part : text::split(hosts, ',')) {
    const auto host = text::trim(part);
    const auto open = range.empty() ? host.find('[') : 0;
    if (open == std::string_view::npos) {
      if (const auto node = node_of(host)) nodes.push_back(*node);
      continue;
    }
    if (range.empty() && host.substr(0, open) != kHost) continue;
    auto numbers = range.empty() ? host.substr(open + 1) : host;
    const bool last = numbers.ends_with(']');
    if (last) numbers.remove_suffix(1);
    range = last ? "" : "[";
    const auto dash = numbers.find('-');
    const auto from = text::whole_number<std::uint32_t>(numbers.substr(0, dash));
    const auto to =
        dash == std::string_view::npos ? from : text::whole_number<std::uint32_t>(numbers.substr(dash + 1));
    constexpr std::uint32_t kMost = 100'000;
    for (auto node = from.value_or(1); from && to && node <= std::min(*to, kMost); ++node)
      nodes.push_back(node);
  }
  return nodes;
}

std::string tasks_per_node(const std::vector<Task>& tasks) {
  std::vector<std::uint32_t> counts;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (i == 0 || tasks[i].node != tasks[i - 1].node) counts.push_back(0);
    ++counts.back();
  }
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < counts.size();) {
    auto end = i;
    while (end < counts.size() && counts[end] == counts[i]) ++end;
    texts.push_back(end - i > 1 ? fmt::format("{}(x{})", counts[i], end - i) : std::to_string(counts[i]));
    i = end;
  }
  return text::join(texts, ",");
}

std::vector<std::string> variables_of_step(const Allocation& allocation, const std::vector<Task>& tasks,
                                           std::size_t step) {
  std::vector<std::string> hosts;
  for (std::size_t i = 0; i < tasks.size(); ++i)
    if (i == 0 || tasks[i].node != tasks[i - 1].node) hosts.push_back(Allocation::host(tasks[i].node));
  const auto nodes = hosts.size();
  const auto per_node = tasks_per_node(tasks);
  std::vector<std::string> all{
      fmt::format("SLURM_STEP_NODELIST={}",
                  nodes == allocation.nodes ? allocation.host_list() : text::join(hosts, ",")),
      fmt::format("SLURM_STEP_TASKS_PER_NODE={}", per_node),
      fmt::format("SLURM_TASKS_PER_NODE={}", per_node)};
  for (const auto* name : {"SLURM_STEP_ID", "SLURM_STEPID"}) all.push_back(fmt::format("{}={}", name, step));
  for (const auto* name : {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"})
    all.push_back(fmt::format("{}={}", name, nodes));
  for (const auto* name : {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"})
    all.push_back(fmt::format("{}={}", name, tasks.size()));
  const auto gpus_there = tasks.empty() ? 0 : allocation.component_of(tasks.front().node).gpus_per_node;
  if (gpus_there > 0) {
    std::vector<std::string> gpus;
    for (std::uint32_t gpu = 0; gpu < gpus_there; ++gpu) gpus.push_back(std::to_string(gpu));
    all.push_back("SLURM_STEP_GPUS=" + text::join(gpus, ","));
  }
  return all;
}

std::optional<std::uint32_t> node_of(std::string_view host) {
  if (host.starts_with(kHost)) {
    const auto number = host.substr(kHost.size());
    return text::whole_number<std::uint32_t>(number.substr(0, number.find('.')));
  }
  if (!host.starts_with(kAddress)) return std::nullopt;
  const auto bytes = text::split(host.substr(kAddress.size()), '.');
  const auto high = bytes.size() == 2 ? text::whole_number<std::uint32_t>(bytes[0]) : std::nullopt;
  const auto low = bytes.size() == 2 ? text::whole_number<std::uint32_t>(bytes[1]) : std::nullopt;
  if (!high || !low || *high * kPerByte + *low == 0) return std::nullopt;
  return *high * kPerByte + *low - 1;
}

std::vector<std::size_t> recorded_for(const std::vector<Task>& tasks, bool all_tasks) {
  constexpr std::size_t kFewNodes = 16;
  std::vector<std::size_t> begins;  // of nodes
  for (std::size_t i = 0; i < tasks.size(); ++i)
    if (i == 0 || tasks[i].node != tasks[i - 1].node) begins.push_back(i);
  const auto nodes = begins.size();
  begins.push_back(tasks.size());
  const auto size_of = [&](std::size_t node) { return begins[node + 1] - begins[node]; };
  std::vector<std::size_t> all;
  for (std::size_t node = 0; node < nodes; ++node) {
    const bool is_between =
        !all_tasks && nodes > kFewNodes && node > 1 && node + 1 < nodes && size_of(node) == size_of(1);
    const auto recorded = is_between ? 1 : node;
    for (std::size_t local = 0; local < size_of(node); ++local) {
      const bool is_last = local + 1 == size_of(node);
      all.push_back(begins[recorded] + (is_last || all_tasks ? local : std::min<std::size_t>(local, 1)));
    }
  }
  return all;
}

}  // namespace nlaunch::shell
