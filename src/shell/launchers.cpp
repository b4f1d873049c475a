#include "shell/launchers.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "plan/container_tools.h"
#include "shell/mpirun.h"
#include "shell/srun.h"

namespace nlaunch::shell {
namespace {

using Nodes = std::vector<std::uint32_t>;

Nodes nodes_of(const Allocation::Component& component) {
  Nodes nodes(component.nodes);
  std::iota(nodes.begin(), nodes.end(), component.first);
  return nodes;
}

/// For a range, "1-4", the maximum.
std::optional<std::uint32_t> number_of(const std::optional<std::string>& value) {
  return value ? text::whole_number<std::uint32_t>(value->substr(value->rfind('-') + 1)) : std::nullopt;
}

Nodes nodes_of_step(const std::vector<SrunOption>& options, const Allocation::Component& component) {
  Nodes nodes;
  if (const auto list = value_of(options, "nodelist")) {
    nodes = nodes_in(*list);
    // Slurm adds others of the job if the list has fewer than --nodes wants (srun(1), --nodelist).
    const auto wanted = number_of(value_of(options, "nodes")).value_or(0);
    for (const auto node : nodes_of(component))
      if (!nodes.empty() && nodes.size() < wanted && std::ranges::find(nodes, node) == nodes.end())
        nodes.push_back(node);
  } else {
    nodes = nodes_of(component);
    const auto first = number_of(value_of(options, "relative")).value_or(0);
    nodes.erase(nodes.begin(), nodes.begin() + std::min<std::ptrdiff_t>(first, std::ssize(nodes)));
    const auto left_out = nodes_in(value_of(options, "exclude").value_or(""));
    std::erase_if(nodes, [&](auto node) { return std::ranges::find(left_out, node) != left_out.end(); });
  }
  if (const auto most = number_of(value_of(options, "nodes")); most && *most < nodes.size())
    nodes.resize(*most);
  return nodes;
}

/// Distributes tasks by block, srun's default (srun(1), --distribution).
std::vector<Task> tasks_of(const Nodes& nodes, std::uint32_t per_node, std::uint32_t all) {
  constexpr std::uint32_t kMost = 100'000;
  std::vector<Task> tasks;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    for (std::uint32_t local = 0; local < per_node && tasks.size() < std::min(all, kMost); ++local)
      tasks.push_back({static_cast<std::uint32_t>(tasks.size()), local, nodes[i], i});
  }
  return tasks;
}

std::uint32_t shared_out(std::uint32_t tasks, std::size_t nodes) {
  const auto among = static_cast<std::uint32_t>(std::max<std::size_t>(nodes, 1));
  return (tasks + among - 1) / among;
}

/// Several programs in one step, `a : b`, are not taken apart.
bool has_several(const Words& argv) {
  return has(argv, ":") || has(argv, "--multi-prog");
}

Started of_srun(const Words& argv, const Allocation& allocation) {
  if (has_several(argv)) return {};
  const auto options = options_of_srun(argv);
  // Without the option, a step of a heterogeneous job runs in the first component (srun(1), --het-group).
  // Before Slurm 20.02 it was called --pack-group.
  const auto said = value_of(options, "het-group").value_or(value_of(options, "pack-group").value_or("0"));
  const auto group = text::whole_number<std::uint32_t>(said);
  const auto component = group ? allocation.component(*group) : std::nullopt;
  auto nodes = component ? nodes_of_step(options, *component) : Nodes();
  const bool beyond = std::ranges::any_of(nodes, [&](auto node) { return node >= allocation.nodes; });
  if (nodes.empty() || beyond) return {};
  const auto wanted = number_of(value_of(options, "ntasks"));
  auto per_node = number_of(value_of(options, "ntasks-per-node"));
  if (!per_node) per_node = number_of(value_of(options, "tasks-per-node"));  // its former name
  if (wanted && *wanted < nodes.size()) nodes.resize(std::max(1U, *wanted));
  const auto each = per_node.value_or(wanted ? shared_out(*wanted, nodes.size()) : component->tasks_per_node);
  Started started{rest(argv, words_of_srun(argv)),
                  tasks_of(nodes, each, wanted.value_or(each * static_cast<std::uint32_t>(nodes.size())))};
  if (const auto exported = value_of(options, "export")) {
    started.variables = text::split(*exported, ',');
    started.keeps_environment = std::erase(started.variables, "ALL") > 0;
    std::erase_if(started.variables, [](const auto& word) { return word == "NONE" || word == "NIL"; });
  }
  return started;
}

/// As many tasks on each node as it is given, up to `all`.
std::vector<Task> tasks_of(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& nodes,
                           std::uint32_t all) {
  std::vector<Task> tasks;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const auto& [node, count] = nodes[i];
    for (std::uint32_t local = 0; local < count && tasks.size() < all; ++local)
      tasks.push_back({static_cast<std::uint32_t>(tasks.size()), local, node, i});
  }
  return tasks;
}

Started of_mpirun(const Words& argv, const Allocation& allocation) {
  const auto call = read_mpirun(argv);
  if (has_several(argv) || !call.unknown.empty() || !call.placed_by.empty()) return {};
  const auto component = allocation.component(0).value_or(Allocation::Component{});
  Nodes nodes = call.hosts.empty() ? nodes_of(component) : Nodes();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> places;  // node, slots
  std::uint32_t slots = 0;
  for (const auto& host : call.hosts) {
    const auto node = Allocation::names_node(host.host)   ? node_of(host.host)
                      : Allocation::names_host(host.host) ? std::optional(component.first)
                                                          : std::nullopt;
    if (!node) return {};
    nodes.push_back(*node);
    places.emplace_back(*node, host.slots.value_or(1));
    slots += places.back().second;
  }
  const auto each = call.per_node;
  const auto size = static_cast<std::uint32_t>(nodes.size());
  const auto all = call.processes.value_or(each             ? *each * size
                                           : places.empty() ? size * component.tasks_per_node
                                                            : slots);
  const auto spread = shared_out(all, nodes.size());
  // Open MPI refuses more than the slots of its hosts, and Hydra goes round.
  if (!each && !places.empty() && call.mapping == Mapping::fill && all > slots) return {};
  // A plan numbers its processes node by node.
  if (!each && call.mapping == Mapping::cyclic && spread > 1 && size > 1) return {};
  Started started;
  if (!each && call.mapping == Mapping::fill && !places.empty() && all <= slots)
    started.tasks = tasks_of(places, all);
  else if (!each && call.mapping == Mapping::fill && places.empty())
    // By default each node is filled before the next one: with the job's tasks, its slots.
    started.tasks = tasks_of(nodes, std::max(spread, component.tasks_per_node), all);
  else
    started.tasks = tasks_of(nodes, each.value_or(spread), all);
  started.argv = call.program;
  started.folder = call.folder;
  started.variables = call.variables;
  return started;
}

/// TACC's: ibrun [-n TASKS] [-o OFFSET] [task_affinity] PROGRAM. The offset counts tasks of the job.
Started of_ibrun(const Words& argv, const Allocation& allocation) {
  static const Options kValued{"-n", "-np", "-o"};
  auto end = program_at(argv, 1, kValued);
  const auto component = allocation.component(0).value_or(Allocation::Component{});
  const auto all =
      tasks_of(nodes_of(component), component.tasks_per_node, component.nodes * component.tasks_per_node);
  auto wanted = number_option(argv, end, "-n", "");
  if (!wanted) wanted = number_option(argv, end, "-np", "");
  const auto offset = std::min<std::size_t>(number_option(argv, end, "-o", "").value_or(0), all.size());
  const auto count = std::min<std::size_t>(wanted.value_or(UINT32_MAX), all.size() - offset);
  while (end < argv.size() && argv[end].ends_with("_affinity")) ++end;
  Started started{rest(argv, end), {}};
  for (std::size_t i = 0; i < count; ++i) {
    const auto& first = all[offset];
    const auto& slot = all[offset + i];
    const auto before = slot.node == first.node ? first.local_rank : 0U;
    started.tasks.push_back({static_cast<std::uint32_t>(i), slot.local_rank - before, slot.node,
                             slot.node_of_step - first.node_of_step});
  }
  return started;
}

/// The image after the options of apptainer, singularity or enroot.
std::size_t image_at(const Words& argv, std::size_t from) {
  const auto name = program_name(argv[0]);
  const auto tools = plan::container_tools();
  const auto tool = std::ranges::find(tools, name, &plan::Tool::name);
  for (auto i = from; i < argv.size(); ++i) {
    if (argv[i] == "--") return i + 1;
    if (argv[i].size() < 2 || argv[i][0] != '-') return i;
    // -B/a:/b has its value attached.
    if (tool != tools.end() && argv[i].find_first_of("=/") == std::string::npos) i += tool->values(argv[i]);
  }
  return argv.size();
}

/// The image after the options of docker, podman or podman-hpc. Those without a value are few: `docker run
/// --help`, podman-run(1), and podman-hpc's own.
std::size_t image_of_docker_at(const Words& argv, std::size_t from) {
  static const Options kFlags{"--detach",
                              "--interactive",
                              "--tty",
                              "--rm",
                              "--init",
                              "--privileged",
                              "--publish-all",
                              "--read-only",
                              "--no-healthcheck",
                              "--sig-proxy",
                              "--quiet",
                              "--disable-content-trust",
                              "--oom-kill-disable",
                              "--replace",
                              "--env-host",
                              "--no-hosts",
                              "--no-hostname",
                              "--http-proxy",
                              "--unsetenv-all",
                              "--rmi",
                              "--passwd",
                              "--tls-verify",
                              "--gpu",
                              "--mpi",
                              "--cuda-mpi",
                              "--nccl",
                              "--openmpi-pmi2",
                              "--openmpi-pmix",
                              "--help",
                              "--latest",
                              "--rootfs",
                              "--read-only-tmpfs"};
  constexpr std::string_view kFlagLetters = "ditPqT";
  for (auto i = from; i < argv.size(); ++i) {
    const std::string_view word = argv[i];
    if (word == "--") return i + 1;
    if (word.size() < 2 || word[0] != '-') return i;
    if (word.starts_with("--")) {
      if (!word.contains('=') && !kFlags.contains(argv[i])) ++i;
      continue;
    }
    // "-it", "-itv /a:/b", "-p8000:8000"
    const auto valued = word.find_first_not_of(kFlagLetters, 1);
    if (valued + 1 == word.size()) ++i;
  }
  return argv.size();
}

/// apptainer exec [OPTIONS] IMAGE PROGRAM; docker run [OPTIONS] IMAGE [PROGRAM].
Started of_container(const Words& argv, const Allocation& /*allocation*/) {
  const auto name = program_name(argv[0]);
  const bool docker = name == "docker" || name.starts_with("podman");
  const auto verb = program_at(argv, 1, {});
  if (verb >= argv.size() || (argv[verb] != "exec" && argv[verb] != "run" && argv[verb] != "start"))
    return {};
  const auto image = docker ? image_of_docker_at(argv, verb + 1) : image_at(argv, verb + 1);
  return {rest(argv, image + 1), {}};
}

/// shifter [OPTIONS] PROGRAM: the image is an option, or the job's.
Started of_shifter(const Words& argv, const Allocation& /*allocation*/) {
  static const Options kValued{"-i", "--image", "-m",         "--module", "-V",       "--volume",
                               "-e", "--env",   "--env-file", "-w",       "--workdir"};
  return {rest(argv, program_at(argv, 1, kValued)), {}};
}

/// ssh [OPTIONS] HOST COMMAND...: a login shell runs the words as one line.
Started of_ssh(const Words& argv, const Allocation& allocation) {
  static const Options kValued{"-b", "-c", "-D", "-E", "-e", "-F", "-I", "-i", "-J", "-L",
                               "-l", "-m", "-O", "-o", "-p", "-Q", "-R", "-S", "-W", "-w"};
  const auto host = program_at(argv, 1, kValued);
  if (host + 1 >= argv.size()) return {};
  auto node = node_of(argv[host].substr(argv[host].rfind('@') + 1));
  if (!node && allocation.other_hosts) node = allocation.nodes - 1;
  if (!node) return {};
  return {{"bash", "-c", text::join(rest(argv, host + 1), " ")}, {{0, 0, *node}}, false, true};
}

/// A program that executes another one: its options that have a value, and how many words precede the other
/// one.
struct Wrapper {
  const char* name;
  Options valued;
  std::size_t words = 0;
};

const std::vector<Wrapper>& wrappers() {
  static const std::vector<Wrapper> kWrappers{
      {"nohup", {}},
      {"setsid", {}},
      {"stdbuf", {"-i", "-o", "-e"}},
      {"nice", {"-n", "--adjustment"}},
      {"ionice", {"-c", "-n", "-p"}},
      {"taskset", {}, 1},
      {"numactl",
       {"-m", "-N", "-C", "-i", "-p", "--membind", "--cpunodebind", "--physcpubind", "--interleave",
        "--preferred"}},
      {"time", {"-f", "-o"}},
      {"timeout", {"-k", "-s", "--kill-after", "--signal"}, 1},
      {"catchsegv", {}},
      {"sudo", {"-u", "-g"}},
  };
  return kWrappers;
}

using Start = Started (*)(const Words&, const Allocation&);
struct LauncherRow {
  const char* name;
  Start start;
};
constexpr LauncherRow kLaunchers[] = {
    {"srun", of_srun},
    {"mpirun", of_mpirun},
    {"ibrun", of_ibrun},
    {"mpiexec", of_mpirun},
    {"orterun", of_mpirun},
    {"apptainer", of_container},
    {"singularity", of_container},
    {"enroot", of_container},
    {"docker", of_container},
    {"podman", of_container},
    {"podman-hpc", of_container},
    {"shifter", of_shifter},
    {"ssh", of_ssh},
};

}  // namespace

std::optional<Started> started_by(const Words& argv, const Allocation& allocation) {
  const auto name = program_name(argv.at(0));
  Started started;
  const auto* row = std::ranges::find(kLaunchers, name, &LauncherRow::name);
  if (row != std::end(kLaunchers)) {
    started = row->start(argv, allocation);
  } else {
    const auto wrapper = std::ranges::find(wrappers(), name, &Wrapper::name);
    if (wrapper == wrappers().end()) return std::nullopt;
    started.argv = rest(argv, program_at(argv, 1, wrapper->valued) + wrapper->words);
  }
  return started.argv.empty() ? std::nullopt : std::optional(started);
}

bool is_container(const std::string& program) {
  const auto* row = std::ranges::find(kLaunchers, program, &LauncherRow::name);
  return row != std::end(kLaunchers) && (row->start == of_container || row->start == of_shifter);
}

std::vector<std::string> names_of_launchers() {
  std::vector<std::string> names;
  for (const auto& row : kLaunchers) names.emplace_back(row.name);
  for (const auto& row : wrappers()) names.emplace_back(row.name);
  return names;
}

}  // namespace nlaunch::shell
