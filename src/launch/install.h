#pragma once
#include <string>
#include <vector>

namespace nlaunch::launch {

/// Where nlaunch's own parts are: next to this executable, in a build directory and when installed.
struct Install {
  std::string program;        ///< nlaunch itself
  std::string probe;          ///< nlaunch-probe
  std::string scope_library;  ///< libnlaunch-scope.so
  std::string sites;  ///< the installed profiles, or a link to those of the source tree; may not exist
};
Install find_install();

/// The parts that a role needs in its container: libnlaunch-scope.so, nlaunch-probe and the probe's Gloo,
/// which is expected next to libnlaunch-scope.so.
std::vector<std::string> parts_in_containers(const Install& install);

/// The directories in which profiles are looked up; the first match wins: `given` (--site-dir),
/// $NLAUNCH_SITE_PATH, ./site-profiles, $XDG_CONFIG_HOME/nlaunch/sites, the installed share directory. Each
/// once, whether it exists or not.
std::vector<std::string> site_folders(const std::vector<std::string>& given,
                                      const std::vector<std::string>& environment, const Install& install);

}  // namespace nlaunch::launch
