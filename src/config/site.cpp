#include "config/site.h"

#include <filesystem>

#include "base/scheduler_traits.h"
#include "base/text.h"
#include "config/document.h"
#include "config/env_block.h"
#include "config/match.h"
#include "config/pools.h"
#include "config/profile.h"

namespace nlaunch::config {
namespace {

using Kind = Node::Kind;

void read_scheduler(const Value& value, Site& site) {
  Keys keys(value);
  if (const auto kind = keys.get("kind")) {
    std::vector<std::string_view> names;
    for (const auto* one : all_schedulers()) names.push_back(one->name);
    if (const auto chosen = kind->choice(names)) site.scheduler = names[*chosen];
  }
  keys.list("submit", site.submit);
  keys.pairs("directives", site.directives);
  keys.list("srun", site.srun);
  keys.number("fan_out", site.fan_out, 0, 4096);
  keys.read("template", site.template_file);
  if (const auto beaker = keys.get("beaker")) site.beaker = read_beaker(*beaker);
  if (const auto bad_nodes = keys.get("bad_nodes")) {
    Keys inner(*bad_nodes);
    inner.read("file", site.bad_nodes_file);
    inner.read("ttl", site.bad_nodes_ttl);
    inner.finish();
  }
  keys.finish();
}

void read_node(const Value& value, Site& site) {
  Keys keys(value);
  keys.number("gpus", site.gpus, 0, 1024);
  keys.read("gpu", site.gpu);
  keys.read("arch", site.arch);
  keys.number("cpus", site.cpus, 1, 1'000'000);
  keys.list("bus_ids", site.bus_ids);
  if (const auto nics = keys.get("nics")) {
    Keys inner(*nics);
    inner.read("kind", site.nics.kind);
    inner.number("count", site.nics.count, 0, 1024);
    inner.read("interface", site.nics.interface);
    inner.finish();
  }
  keys.read("scratch", site.scratch);
  keys.finish();
}

/// Checks for one value per GPU of a node; pools can have nodes with fewer GPUs.
void check_for_each_gpu(const Value& list, std::size_t count, const Site& site) {
  if (!site.gpus || count == 0 || count == site.gpus->value) return;
  auto& problem = list.error("config.topology",
                             fmt::format("'{}' has {}, but a node has {}", list.path(),
                                         text::count(count, "value"), text::count(site.gpus->value, "GPU")));
  problem.notes.push_back({"'node.gpus' is here", site.gpus->span});
  problem.hint = "write one for each GPU, in PCI order";
}

void read_topology(const Value& value, Site& site) {
  constexpr std::uint32_t kMostNumaNodes = 1024;
  auto& topology = site.topology;
  Keys keys(value);
  keys.read("slurm", topology.slurm);
  if (const auto domain = keys.get("domain")) {
    Keys inner(*domain);
    if (inner.require("nodes", "nodes: 18"))
      inner.number("nodes", topology.domain_nodes, 1, kMostNodesOfARun);
    inner.finish();
  }
  if (const auto at_switch = keys.get("switch")) {
    Keys inner(*at_switch);
    if (inner.require("nodes", "nodes: 32"))
      inner.number("nodes", topology.switch_nodes, 1, kMostNodesOfARun);
    inner.finish();
  }
  if (const auto numa = keys.get("numa")) {
    const auto items = numa->items();
    for (const auto& item : items)
      if (const auto number = item.number(0, kMostNumaNodes)) topology.numa.push_back(*number);
    check_for_each_gpu(*numa, items.size(), site);
  }
  if (const auto nics = keys.get("nics")) {
    const auto items = nics->items();
    for (const auto& item : items)
      if (auto name = item.text()) topology.nics.push_back(std::move(*name));
    check_for_each_gpu(*nics, items.size(), site);
  }
  keys.finish();
}

void read_modules(const Value& value, Modules& modules) {
  modules.span = value.span();
  Keys keys(value);
  keys.pairs("set", modules.set);
  keys.list("source", modules.source);
  keys.read("init", modules.init);
  keys.read("reset", modules.reset);
  keys.list("use", modules.use);
  keys.list("load", modules.load);
  keys.finish();
}

void read_libraries(const Value& value, Site& site) {
  for (const auto& [name, item] : value.entries()) {
    Library library;
    Keys keys(item);
    if (keys.require("path", "path: /usr/lib/libnccl.so.2")) keys.read("path", library.path);
    keys.read("version", library.version);
    keys.finish();
    site.libraries.emplace_back(name.value, std::move(library));
  }
}

Expectation read_expectation(const Value& value) {
  Expectation row;
  row.span = value.span();
  Keys keys(value);
  keys.number("gpus_per_node", row.gpus_per_node, 1, 1024);
  keys.read("nodes", row.nodes);
  if (const auto size = keys.require("size", "size: 128MiB")) row.size = size->parsed(parse_size).value_or(0);
  if (const auto min = keys.require("min", "min: 150GB/s")) row.min = min->parsed(parse_rate).value_or(0);
  if (const auto limit = keys.get("limit")) row.limit = limit->parsed(parse_rate).value_or(0);
  keys.finish();
  return row;
}

void read_expect(const Value& value, Site& site) {
  Keys keys(value);
  if (const auto rows = keys.get("all_reduce_busbw")) {
    for (const auto& row : rows->items()) site.all_reduce_busbw.push_back(read_expectation(row));
  }
  if (const auto transport = keys.get("transport")) {
    Keys inner(*transport);
    inner.read("intra_node", site.intra_node);
    inner.read("inter_node", site.inter_node);
    inner.finish();
  }
  keys.finish();
}

std::vector<std::string> library_names(const Site& site) {
  std::vector<std::string> names;
  for (const auto& [name, library] : site.libraries) names.push_back(name);
  return names;
}

/// The environments of all files in turn: entries accumulate, while other keys are replaced.
EnvBlock read_environments(const ProfileChain& chain, const std::vector<std::string>& libraries,
                           Problems& problems) {
  EnvBlock all;
  for (const auto& profile : chain) {
    const auto* env = profile.root.find("env");
    if (env == nullptr) continue;
    const auto block = read_env(Value(*env, "env", problems), EnvForm::block, &libraries);
    all.insert(all.end(), block.begin(), block.end());
  }
  return all;
}

void read_head(Keys& keys, const SiteEntry& entry, Site& site) {
  check_version(keys);
  site.name = {entry.name, {}};
  keys.read("name", site.name);
  keys.read("description", site.comment);
  keys.read("untried", site.untried);
  std::ignore = keys.get("extends");  // already followed when the files were read
  if (const auto match = keys.get("match")) site.match = read_match(*match);
}

void read_body(Keys& keys, const ProfileChain& chain, Site& site) {
  if (const auto scheduler = keys.get("scheduler")) read_scheduler(*scheduler, site);
  if (const auto node = keys.get("node")) read_node(*node, site);
  if (const auto topology = keys.get("topology")) read_topology(*topology, site);
  if (const auto pools = keys.get("pools")) site.pools = read_pools(*pools, true);
  if (const auto modules = keys.get("modules")) read_modules(*modules, site.modules);
  if (const auto libraries = keys.get("libraries")) read_libraries(*libraries, site);
  const auto names = library_names(site);
  if (keys.get("env")) site.env = read_environments(chain, names, keys.value().problems());
  if (const auto overlays = keys.get("overlays")) site.overlays = read_overlays(*overlays, &names);
  if (const auto expect = keys.get("expect")) read_expect(*expect, site);
}

/// The settings for the site, without "site.".
std::vector<Setting> site_settings(const std::vector<Setting>& settings) {
  constexpr std::string_view kPrefix = "site.";
  std::vector<Setting> own;
  for (auto setting : settings) {
    auto& path = setting.path;
    if (!path.value.starts_with(kPrefix)) continue;
    path.span = part_of(path.span, path.value, kPrefix.size(), path.value.size() - kPrefix.size());
    path.value.erase(0, kPrefix.size());
    own.push_back(std::move(setting));
  }
  return own;
}

}  // namespace

Result<Site> load_site(const std::string& name_or_path, const std::vector<std::string>& folders,
                       const std::vector<Setting>& settings) {
  Problems problems;
  const auto chain = read_profiles(name_or_path, folders, site_settings(settings), problems);
  if (!chain) {
    problems.append(chain.error());
    return std::unexpected(problems.take());
  }
  Site site;
  for (const auto& profile : *chain) {
    const bool is_file = !profile.entry.folder.empty() || profile.entry.path.contains('/');
    if (is_file || profile.entry.path.ends_with(".yaml")) {
      site.sources.push_back(std::filesystem::absolute(profile.entry.path).lexically_normal());
    }
  }
  for (auto base = chain->rbegin() + 1; base != chain->rend(); ++base) site.bases.push_back(base->entry.name);
  const auto merged = merge(*chain);
  site.path = chain->back().entry.path;
  Keys keys(Value(merged, "", problems));
  read_head(keys, chain->back().entry, site);
  read_body(keys, *chain, site);
  keys.finish();
  if (problems.any()) return std::unexpected(problems.take());
  return site;
}

}  // namespace nlaunch::config
