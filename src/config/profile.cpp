#include "config/profile.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/text.h"
#include "config/document.h"
#include "config/setting.h"

namespace nlaunch::config {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBuiltIn = "built in";
constexpr std::string_view kSuffix = ".yaml";

std::vector<SiteEntry> in_folder(const std::string& folder) {
  std::vector<SiteEntry> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != kSuffix) continue;
    found.push_back({at->path().stem().string(), at->path().string(), folder, false});
  }
  std::ranges::sort(found, {}, &SiteEntry::name);
  return found;
}

bool is_path(const std::string& name) {
  return name.contains('/') || name.ends_with(kSuffix);
}

/// The directories for a name in `from`: its own one first.
std::vector<std::string> folders_for(const SiteEntry* from, std::vector<std::string> folders) {
  if (from != nullptr && !from->folder.empty()) {
    std::erase(folders, from->folder);
    folders.insert(folders.begin(), from->folder);
  }
  return folders;
}

/// The candidates for a name: a built-in profile refers to built-in ones, whatever directories there are.
std::vector<SiteEntry> candidates(const SiteEntry* from, const std::vector<std::string>& folders) {
  if (from == nullptr || from->path != kBuiltIn) return list_sites(folders_for(from, folders));
  auto sites = list_sites({});
  for (auto& site : list_sites(folders)) sites.push_back(std::move(site));
  return sites;
}

/// "searched ./sites, /opt/sites (does not exist) and the built-in profiles; ..."
std::string where_it_searched(const std::vector<std::string>& folders) {
  std::vector<std::string> places;
  for (const auto& folder : folders) {
    std::error_code error;
    places.push_back(folder + (fs::is_directory(folder, error) ? "" : " (does not exist)"));
  }
  return fmt::format(
      "searched {}{}the built-in profiles; --site-dir DIRECTORY and NLAUNCH_SITE_PATH add directories",
      text::join(places, ", "), places.empty() ? "" : " and ");
}

Diagnostics not_found(const Text& name, const std::vector<SiteEntry>& sites,
                      const std::vector<std::string>& folders) {
  std::vector<std::string> names;
  for (const auto& site : sites) {
    if (!site.shadowed) names.push_back(site.name);
  }
  Diagnostics problems;
  auto& problem =
      problems.error("site.not-found", name.span, fmt::format("site profile '{}' not found", name.value));
  problem.notes.push_back({where_it_searched(folders), {}});
  const auto file = name.value + std::string(kSuffix);
  std::error_code error;
  if (fs::is_regular_file(file, error)) {
    problem.hint = fmt::format("write '{}' for the file in the current directory", file);
    return problems;
  }
  problem.hint = suggest(name.value, names);
  if (text::nearest(name.value, names))
    problem.hint += fmt::format(" available: {}", text::join(names, ", "));
  return problems;
}

/// The profile that `from` refers to by this name, or that was requested if `from` is null.
Result<SiteEntry> find_profile(const Text& name, const SiteEntry* from,
                               const std::vector<std::string>& folders) {
  const auto own_folder = from == nullptr ? std::string() : from->folder;
  const fs::path path = name.value;
  if (is_path(name.value)) {
    const auto full = path.is_absolute() || own_folder.empty() ? path : fs::path(own_folder) / path;
    const auto folder = full.has_parent_path() ? full.parent_path() : fs::path(".");
    return SiteEntry{path.stem().string(), full.string(), folder.string(), false};
  }
  const auto sites = candidates(from, folders);
  const auto found = std::ranges::find(sites, name.value, &SiteEntry::name);
  if (found != sites.end()) return *found;
  return std::unexpected(not_found(name, sites, folders_for(from, folders)));
}

/// The location of `extends` in a profile, with its name as text.
std::optional<Text> base_of(const Node& root, Problems& problems) {
  const auto* node = root.find("extends");
  if (node == nullptr) return std::nullopt;
  const auto name = Value(*node, "extends", problems).text();
  return name ? std::optional(Text{*name, node->span}) : std::nullopt;
}

Diagnostics cycle(const ProfileChain& chain, std::size_t first, const Text& last) {
  std::vector<std::string> names;
  for (std::size_t i = first; i < chain.size(); ++i) names.push_back(chain[i].entry.name);
  names.push_back(chain[first].entry.name);
  Diagnostics problems;
  auto& problem =
      problems.error("site.extends-cycle", last.span,
                     fmt::format("profiles extend each other in a cycle: {}", text::join(names, " → ")));
  for (std::size_t i = first; i + 1 < chain.size(); ++i) {
    problem.notes.push_back(
        {fmt::format("'{}' extends '{}' here", chain[i].entry.name, chain[i + 1].entry.name),
         chain[i].root.find("extends")->span});
  }
  problem.hint = "remove one 'extends'";
  return problems;
}

bool same_file(const SiteEntry& a, const SiteEntry& b) {
  if (a.path == kBuiltIn || b.path == kBuiltIn) return a.path == b.path && a.name == b.name;
  std::error_code error;
  return a.path == b.path || fs::equivalent(a.path, b.path, error);
}

/// An overlay is replaced as a whole: half of the base's with half of another would make no sense, also
/// because the `env` of one can be plain and that of the other a block.
bool is_whole(std::string_view path) {
  constexpr std::string_view kOverlays = "overlays.";
  return path.starts_with(kOverlays) && !path.substr(kOverlays.size()).contains('.');
}

void merge_into(Node& base, const Node& over, const std::string& path) {
  if (base.kind != Node::Kind::map || over.kind != Node::Kind::map || is_whole(path)) {
    base = over;
    return;
  }
  for (const auto& entry : over.entries) {
    if (auto* below = base.find(entry.key.value)) {
      merge_into(*below, entry.value, path.empty() ? entry.key.value : path + "." + entry.key.value);
    } else {
      base.entries.push_back(entry);
    }
  }
}

}  // namespace

std::vector<SiteEntry> list_sites(const std::vector<std::string>& folders) {
  std::vector<SiteEntry> all;
  for (const auto& folder : folders) {
    const auto found = in_folder(folder);
    all.insert(all.end(), found.begin(), found.end());
  }
  for (const auto& file : built_in_profiles()) {
    all.push_back({fs::path(file->name).stem().string(), std::string(kBuiltIn), "", false});
  }
  for (auto site = all.begin(); site != all.end(); ++site) {
    site->shadowed = std::ranges::find(all.begin(), site, site->name, &SiteEntry::name) != site;
  }
  return all;
}

Result<Node> read_profile(const SiteEntry& entry, Problems& problems) {
  if (entry.path != kBuiltIn) return read_document(entry.path, problems);
  for (const auto& file : built_in_profiles()) {
    if (fs::path(file->name).stem() == entry.name) return read_document(file, problems);
  }
  return failure("site.not-found", "built-in profile '{}' not found", entry.name);
}

Result<ProfileChain> read_profiles(const std::string& name_or_path, const std::vector<std::string>& folders,
                                   const std::vector<Setting>& settings, Problems& problems) {
  ProfileChain chain;  // the most basic last, reversed at the end
  std::optional<Text> wanted = Text{name_or_path, {}};
  while (wanted) {
    const auto entry = find_profile(*wanted, chain.empty() ? nullptr : &chain.back().entry, folders);
    if (!entry) return std::unexpected(entry.error());
    const auto again =
        std::ranges::find_if(chain, [&](const Profile& p) { return same_file(p.entry, *entry); });
    if (again != chain.end()) {
      return std::unexpected(cycle(chain, static_cast<std::size_t>(again - chain.begin()), *wanted));
    }
    auto root = read_profile(*entry, problems);
    if (!root) return std::unexpected(root.error());
    for (const auto& setting : settings) {
      if (chain.empty()) apply_setting(*root, setting, problems);
    }
    chain.push_back({*entry, std::move(*root)});
    wanted = base_of(chain.back().root, problems);
  }
  std::ranges::reverse(chain);
  return chain;
}

Node merge(const ProfileChain& chain) {
  constexpr std::array<std::string_view, 6> kOwn{"version", "name",    "description",
                                                 "untried", "extends", "match"};
  const auto is_own = [&](const Entry& entry) {
    return std::ranges::find(kOwn, entry.key.value) != kOwn.end();
  };
  Node merged = chain.front().root;
  for (std::size_t i = 1; i < chain.size(); ++i) {
    std::erase_if(merged.entries, is_own);
    merge_into(merged, chain[i].root, "");
  }
  merged.span = chain.back().root.span;
  return merged;
}

}  // namespace nlaunch::config
