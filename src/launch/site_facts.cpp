#include "launch/site_facts.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/text.h"
#include "launch/bind/modules.h"
#include "launch/machine.h"
#include "plan/environment.h"
#include "sys/addresses.h"
#include "sys/command.h"
#include "sys/files.h"
#include "sys/nics.h"
#include "sys/topology.h"

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestFact = 1U << 20U;
/// A program that does not answer in this time is considered missing.
constexpr Duration kPatienceWithSite = std::chrono::seconds(10);

std::string first_line(const fs::path& file) {
  const auto text = sys::read_regular_file(file, kLargestFact);
  return text ? std::string(text::trim(*text)) : "";
}

std::string ask(std::vector<std::string> words, const std::vector<std::string>& environment) {
  sys::SpawnRequest request;
  request.argv = std::move(words);
  request.env = environment;
  const auto said = sys::run_command(std::move(request), kPatienceWithSite);
  return said && said->status.ok() ? said->out : "";
}

/// A value in `scontrol show config`; empty without it.
std::string setting_of(std::string_view config, std::string_view name) {
  for (const auto& line : text::split(config, '\n')) {
    if (!line.starts_with(name)) continue;
    return std::string(text::trim(line.substr(line.find('=') + 1)));
  }
  return "";
}

/// Counts each core once, by the kernel's list of thread siblings.
std::uint32_t count_cores(const fs::path& sys) {
  std::set<std::string> cores;
  for (const auto& name : sys::names_in(sys / "devices" / "system" / "cpu")) {
    const auto siblings =
        first_line(sys / "devices" / "system" / "cpu" / name / "topology" / "thread_siblings_list");
    if (!siblings.empty()) cores.insert(siblings);
  }
  return static_cast<std::uint32_t>(std::max<std::size_t>(cores.size(), 1));
}

void ask_slurm(emit::SiteFacts& facts, const std::vector<std::string>& environment) {
  facts.partitions = parse_sinfo(ask({"sinfo", "--noheader", "--format=%P|%l|%D|%c|%G"}, environment));
  if (facts.partitions.empty()) return;
  const auto config = ask({"scontrol", "show", "config"}, environment);
  facts.cluster = setting_of(config, "ClusterName");
  facts.topology = setting_of(config, "TopologyPlugin");
}

/// A GPU with its nearest devices.
emit::SiteFacts::Gpu described(const Machine::Gpu& gpu, const std::vector<sys::Nic>& nics,
                               sys::Topology& topology) {
  emit::SiteFacts::Gpu out{gpu.name, gpu.bus_id, topology.numa_of(gpu.bus_id), ""};
  std::vector<std::string> bus_ids;
  for (const auto& nic : nics) bus_ids.push_back(nic.bus_id);
  const auto nearest = topology.nearest(gpu.bus_id, bus_ids);
  if (nearest.size() == 1) out.nic = nics[nearest.front()].name;
  return out;
}

}  // namespace

std::vector<emit::SiteFacts::Nic> find_nics(const fs::path& sys) {
  std::vector<emit::SiteFacts::Nic> nics;
  for (const auto& nic : sys::find_nics(sys, "/dev")) nics.push_back({nic.name, nic.kind});
  return nics;
}

std::string default_interface(std::string_view routes) {
  for (const auto& line : text::split(routes, '\n')) {
    const auto fields = text::split(line, '\t');
    if (fields.size() > 1 && fields[1] == "00000000") return fields[0];
  }
  return "";
}

std::vector<emit::SiteFacts::Partition> parse_sinfo(std::string_view lines) {
  std::vector<emit::SiteFacts::Partition> partitions;
  for (const auto& line : text::split(lines, '\n')) {
    const auto fields = text::split(line, '|');
    if (fields.size() != 5 || fields[0].empty()) continue;
    emit::SiteFacts::Partition partition{fields[0], fields[1], fields[3],
                                         fields[4], 0,         fields[0].ends_with('*')};
    if (partition.is_default) partition.name.pop_back();
    if (partition.gres == "(null)") partition.gres.clear();
    std::from_chars(fields[2].data(), fields[2].data() + fields[2].size(), partition.nodes);
    const auto known = std::ranges::find(partitions, partition.name, &emit::SiteFacts::Partition::name);
    if (known == partitions.end()) {
      partitions.push_back(std::move(partition));
    } else if (known->nodes < partition.nodes) {
      *known = std::move(partition);
    }
  }
  return partitions;
}

emit::SiteFacts find_site_facts(const Install& install, const std::vector<std::string>& environment) {
  emit::SiteFacts facts;
  const auto host = this_host();
  facts.host = host.host;
  facts.arch = host.arch;
  facts.cpus = count_cores("/sys");
  if (const auto machine = discover(install.probe)) {
    const auto nics = sys::find_nics("/sys", "/dev");
    sys::Topology topology;
    for (const auto& gpu : machine->gpus) facts.gpus.push_back(described(gpu, nics, topology));
    facts.no_gpus = machine->nvml_error;
  } else {
    facts.no_gpus = machine.error().first_message();
  }
  facts.nics = find_nics("/sys");
  for (const auto& address : sys::ipv4_addresses()) {
    if (!address.loopback) facts.interfaces.push_back({address.interface, address.address});
  }
  facts.default_interface =
      default_interface(sys::read_regular_file("/proc/net/route", kLargestFact).value_or(""));
  facts.modules_init = find_modules_init(plan::to_environment(environment));
  for (auto& name : text::split(sys::env_value(environment, "LOADEDMODULES"), ':')) {
    if (!name.empty()) facts.modules.push_back(std::move(name));
  }
  ask_slurm(facts, environment);
  const auto schema = fs::path(install.sites).parent_path() / "schema" / "site.json";
  std::error_code error;
  if (fs::exists(schema, error)) facts.schema = schema;
  return facts;
}

}  // namespace nlaunch::launch
