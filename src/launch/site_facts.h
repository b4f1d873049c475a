#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "emit/site_profile.h"
#include "launch/install.h"

/// What `nlaunch sites init` finds on this machine.
namespace nlaunch::launch {

/// The network adapters below `sys` ("/sys"): Slingshot under class/cxi, all others under class/infiniband.
std::vector<emit::SiteFacts::Nic> find_nics(const std::filesystem::path& sys);

/// The interface of the default route in the text of /proc/net/route; empty if there is none.
std::string default_interface(std::string_view routes);

/// The lines of `sinfo --noheader --format=%P|%l|%D|%c|%G`. A partition with different nodes has several
/// lines: the one with the most nodes counts.
std::vector<emit::SiteFacts::Partition> parse_sinfo(std::string_view lines);

/// Queries the probe, the kernel, the caller's environment (modules) and Slurm. Anything that does not answer
/// is left out.
emit::SiteFacts find_site_facts(const Install& install, const std::vector<std::string>& environment);

}  // namespace nlaunch::launch
