#pragma once
#include <memory>
#include <string>
#include <vector>

#include "config/site.h"
#include "config/yaml.h"

/// The files that a site profile is built from.
namespace nlaunch::config {

/// One parsed file.
struct Profile {
  SiteEntry entry;
  Node root;
};

/// The profile and the profiles that it extends, the most basic first.
using ProfileChain = std::vector<Profile>;

/// The built-in profiles: common.yaml and local.yaml.
std::vector<std::shared_ptr<const SourceFile>> built_in_profiles();

/// Reads a profile and its bases. `settings` (of "site.") are applied to the last one.
Result<ProfileChain> read_profiles(const std::string& name_or_path, const std::vector<std::string>& folders,
                                   const std::vector<Setting>& settings, Problems& problems);

/// Merges all of them into one tree: maps are merged, everything else is replaced, an overlay as a whole.
/// Keys that belong to a single file (name, match, description, extends) come from the last one.
Node merge(const ProfileChain& chain);

/// The tree of one entry of `list_sites`.
Result<Node> read_profile(const SiteEntry& entry, Problems& problems);

}  // namespace nlaunch::config
