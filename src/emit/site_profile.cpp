#include "emit/site_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"

namespace nlaunch::emit {
namespace {

using ProfileLines = std::vector<std::string>;

/// A text that YAML cannot take for anything else; JSON's quotes are YAML's.
std::string quoted(const std::string& text) {
  return json_text(nlohmann::json(text));
}

std::string quoted_list(const std::vector<std::string>& texts) {
  ProfileLines all;
  for (const auto& text : texts) all.push_back(quoted(text));
  return fmt::format("[{}]", text::join(all, ", "));
}

/// Where Slurm is, what it gives by itself.
const SiteFacts::Partition* default_partition(const SiteFacts& facts) {
  const auto found = std::ranges::find_if(facts.partitions, &SiteFacts::Partition::is_default);
  if (found != facts.partitions.end()) return &*found;
  return facts.partitions.empty() ? nullptr : &facts.partitions.front();
}

bool has_nic(const SiteFacts& facts, std::string_view kind) {
  return std::ranges::any_of(facts.nics, [&](const auto& nic) { return nic.kind == kind; });
}

bool all_gpus_are(const SiteFacts& facts, std::string_view name) {
  return facts.gpus.size() > 1 &&
         std::ranges::all_of(facts.gpus, [&](const auto& gpu) { return gpu.name.starts_with(name); });
}

/// The shipped profile that knows most of such a machine.
std::string base_of(const SiteFacts& facts) {
  if (!facts.partitions.empty()) {
    if (has_nic(facts, "cxi")) return "slingshot11";
    if (has_nic(facts, "efa")) return "efa";
    return "common";
  }
  if (all_gpus_are(facts, "NVIDIA H200")) return "h200-nvlink";
  if (all_gpus_are(facts, "NVIDIA H100 80GB HBM3")) return "h100-nvlink";
  return "local";
}

/// hsn of hsn0: NCCL takes a prefix.
std::string prefix_of(const std::string& interface) {
  const auto end = interface.find_last_not_of("0123456789");
  return end == std::string::npos ? interface : interface.substr(0, end + 1);
}

class Writer {
 public:
  Writer(const SiteFacts& facts, const std::string& name)
      : facts_(facts), name_(name), base_(base_of(facts)) {}

  std::string write() {
    head();
    match();
    if (!facts_.partitions.empty()) scheduler();
    node();
    topology();
    modules();
    environment();
    libraries();
    expectations();
    return fmt::format("{}\n", text::join(lines_, "\n"));
  }

 private:
  void line(std::string text) { lines_.push_back(std::move(text)); }

  void head() {
    if (!facts_.schema.empty()) line("# yaml-language-server: $schema=" + facts_.schema);
    line(fmt::format(
        "# Made by `nlaunch sites init` on {} of what was found there. Decide what the comments ask, then:",
        text::printable(facts_.host)));
    line(fmt::format("#   nlaunch sites check {0}.yaml && nlaunch plan EXPERIMENT --site ./{0}.yaml", name_));
    line("version: 1");
    line(fmt::format("name: {}", name_));
    line("description: " +
         quoted(facts_.partitions.empty() ? "the machine " + facts_.host : "the cluster " + facts_.cluster));
    line("# What is not said here is as in that profile: `nlaunch sites " + base_ + "`.");
    line("extends: " + base_);
  }

  void match() {
    line("# Where the profile is taken without --site; all that is given must fit. Without `match`: --site " +
         name_ + ".");
    if (facts_.cluster.empty()) {
      line(fmt::format("match: {{hostname: {}}}", quoted(facts_.host)));
    } else {
      line(
          "# Slurm says the cluster's name within jobs; a `hostname` of the login nodes besides would have "
          "to fit there too.");
      line(fmt::format("match: {{slurm_cluster: {}}}", quoted(facts_.cluster)));
    }
  }

  void scheduler() {
    line("scheduler:");
    line("  kind: slurm");
    line("  # The partitions that sinfo shows: name, time limit, nodes, CPUs and GRES of a node.");
    for (const auto& partition : facts_.partitions) {
      line(fmt::format("  #   {}{} {} {} {}{}", text::printable(partition.name),
                       partition.is_default ? "*" : "", partition.time, partition.nodes, partition.cpus,
                       partition.gres.empty() ? "" : fmt::format(" {}", text::printable(partition.gres))));
    }
    const auto& partition = *default_partition(facts_);
    line("  directives:");
    line("    partition: " + quoted(partition.name));
    line("    exclusive: true  # nlaunch counts on whole nodes");
    if (const auto gpus = gpus_of_gres(partition.gres); gpus > 0)
      line(fmt::format("    gpus-per-node: {}", gpus));
    if (partition.time.find_first_of("0123456789") != std::string::npos) {
      line(fmt::format("    time: {}  # the most that the partition gives", quoted(partition.time)));
    }
    line("    # account: YOURS");
  }

  void node() {
    ProfileLines inner;
    const auto* partition = default_partition(facts_);
    const auto promised = partition == nullptr ? 0 : gpus_of_gres(partition->gres);
    if (!facts_.gpus.empty()) {
      ProfileLines ids;
      for (const auto& gpu : facts_.gpus) ids.push_back(gpu.bus_id);
      if (partition != nullptr) inner.push_back(fmt::format("  gpus: {}", facts_.gpus.size()));
      inner.push_back("  gpu: " + quoted(facts_.gpus.front().name));
      inner.push_back("  bus_ids: " + quoted_list(ids) + "  # the preflight holds every node against these");
    } else if (promised > 0) {
      inner.push_back(
          fmt::format("  gpus: {}  # as the partition's GRES says; there is none on this machine", promised));
      inner.push_back("  # gpu: MODEL, as nvidia-smi -L writes it on a node");
    } else {
      line(fmt::format("# No GPU was found: {}.",
                       facts_.no_gpus.empty() ? "there is none" : text::printable(facts_.no_gpus)));
      if (partition != nullptr) inner.push_back("  # gpus: N  # on each node");
    }
    if (promised == 0 || !facts_.gpus.empty()) {
      inner.push_back("  arch: " + quoted(facts_.arch));
      inner.push_back(fmt::format("  cpus: {}", facts_.cpus));
    }
    if (const auto nics = nic_line(); !nics.empty()) inner.push_back(nics);
    inner.push_back("  scratch: /tmp  # a disk of the node's own, for caches; not a folder that nodes share");
    line("node:");
    for (auto& text : inner) line(std::move(text));
  }

  /// What is known of all GPUs, and what Slurm knows of its nodes.
  void topology() {
    ProfileLines numa;
    ProfileLines nics;
    for (const auto& gpu : facts_.gpus) {
      if (gpu.numa) numa.push_back(std::to_string(*gpu.numa));
      if (!gpu.nic.empty()) nics.push_back(quoted(gpu.nic));
    }
    ProfileLines inner;
    if (const auto plugin = facts_.topology; plugin == "topology/tree" || plugin == "topology/block")
      inner.push_back("  slurm: " + plugin.substr(plugin.find('/') + 1));
    if (!numa.empty() && numa.size() == facts_.gpus.size())
      inner.push_back(fmt::format("  numa: [{}]  # of each GPU", text::join(numa, ", ")));
    if (!nics.empty() && nics.size() == facts_.gpus.size())
      inner.push_back(fmt::format("  nics: [{}]  # the one nearest to each GPU", text::join(nics, ", ")));
    if (inner.empty()) return;
    line("topology:");
    for (auto& text : inner) line(std::move(text));
  }

  [[nodiscard]] std::string nic_line() const {
    if (facts_.nics.empty()) return {};
    const auto& kind = facts_.nics.front().kind;
    const auto count = std::ranges::count(facts_.nics, kind, &SiteFacts::Nic::kind);
    const auto interface = fast_interface();
    return fmt::format("  nics: {{kind: {}, count: {}{}}}", kind, count,
                       interface.empty() ? "" : ", interface: " + quoted(prefix_of(interface)));
  }

  /// Slingshot's and InfiniBand's interfaces have names of their own.
  [[nodiscard]] std::string fast_interface() const {
    for (const auto& interface : facts_.interfaces) {
      if (interface.name.starts_with("hsn") || interface.name.starts_with("ib")) return interface.name;
    }
    return {};
  }

  void modules() {
    if (facts_.modules_init.empty()) return;
    const bool any = !facts_.modules.empty();
    line(
        any ? "# What is loaded in this shell. Leave what a run needs: compilers, CUDA, the network's plugin."
            : "# Modules to load for every run: the network's plugin, CUDA. None is loaded in this shell.");
    const auto text = fmt::format("modules: {{init: {}, load: {}}}", quoted(facts_.modules_init),
                                  any ? quoted_list(facts_.modules) : "[]");
    line(fmt::format("{}{}", any ? "" : "# ", text));
  }

  void environment() {
    if (facts_.partitions.empty() || base_ != "common") return;
    const auto fast = fast_interface();
    const auto interface = fast.empty() ? facts_.default_interface : fast;
    line("env:");
    if (interface.empty()) {
      line(
          "  set: {}  # NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME: no interface was found that leads "
          "anywhere");
      return;
    }
    line("  set:");
    line("    # By which nodes find each other. NCCL takes a prefix, Gloo one whole name. There are:");
    for (const auto& found : facts_.interfaces) {
      line(fmt::format("    #   {} {}{}", text::printable(found.name), found.address,
                       found.name == facts_.default_interface ? " (the default route)" : ""));
    }
    line("    NCCL_SOCKET_IFNAME: " + quoted(fast.empty() ? interface : prefix_of(interface)));
    line("    GLOO_SOCKET_IFNAME: " + quoted(interface));
  }

  void libraries() {
    if (base_ != "common" && base_ != "local") return;
    line("libraries:");
    line("  # For `preload: [nccl]`: the NCCL that PyTorch's wheel brings into the venv.");
    line(
        "  nccl: {path: "
        "\"${env.VIRTUAL_ENV:-.venv}/lib/python*/site-packages/nvidia/nccl/lib/libnccl.so.2\"}");
  }

  void expectations() {
    line(
        "# What the machine must reach for a run to start. Measure it on a healthy one (`nlaunch preflight "
        "--site " +
        name_ + "`), and ask for half:");
    line("# expect:");
    line("#   all_reduce_busbw:");
    line(fmt::format("#   - {{gpus_per_node: {}, nodes: 1, size: 128MiB, min: 1GB/s}}",
                     std::max<std::size_t>(facts_.gpus.size(), 2)));
  }

  const SiteFacts& facts_;
  const std::string& name_;
  std::string base_;
  ProfileLines lines_;
};

}  // namespace

std::uint32_t gpus_of_gres(const std::string& gres) {
  std::uint32_t all = 0;
  for (const auto& part : text::split(gres, ',')) {
    const std::string_view item = std::string_view(part).substr(0, part.find('('));
    if (!item.starts_with("gpu:")) continue;
    const auto digits = item.substr(item.rfind(':') + 1);
    std::uint32_t count = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), count);
    all += count;
  }
  return all;
}

std::string site_profile(const SiteFacts& facts, const std::string& name) {
  return Writer(facts, name).write();
}

}  // namespace nlaunch::emit
