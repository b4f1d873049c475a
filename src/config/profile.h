#pragma once
#include <memory>
#include <string>
#include <vector>

#include "config/site.h"
#include "config/yaml.h"

/// The files that a site profile is made from.
namespace nlaunch::config {

/// One file, read.
struct Profile {
  SiteEntry entry;
  Node root;
};

/// The profile and those that it extends, the most basic first.
using ProfileChain = std::vector<Profile>;

/// What is compiled in: common.yaml and local.yaml.
std::vector<std::shared_ptr<const SourceFile>> built_in_profiles();

/// Reads a profile and all below it. `settings` (of "site.") are put into the last.
Result<ProfileChain> read_profiles(const std::string& name_or_path, const std::vector<std::string>& folders,
                                   const std::vector<Setting>& settings, Problems& problems);

/// One tree of them all: maps merge, everything else is replaced, an overlay whole. What belongs to a file
/// alone (name, match, description, extends) is the last one's.
Node merge(const ProfileChain& chain);

/// The tree of one entry of `list_sites`.
Result<Node> read_profile(const SiteEntry& entry, Problems& problems);

}  // namespace nlaunch::config
