#include "launch/install.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "sys/files.h"
#include "sys/proc.h"
#include "sys/spawn.h"

namespace nlaunch::launch {

namespace fs = std::filesystem;

Install find_install() {
  const auto bin = sys::executable_folder();
  const auto prefix = bin.parent_path();
  return {sys::executable(::getpid()), (bin / "nlaunch-probe").string(),
          (prefix / "lib" / "libnlaunch-scope.so").string(),
          (prefix / "share" / "nlaunch" / "sites").string()};
}

std::vector<std::string> parts_in_containers(const Install& install) {
  const auto gloo = fs::path(install.scope_library).parent_path() / "libnlaunch-gloo.so";
  return {install.scope_library, install.probe, gloo.string()};
}

std::vector<std::string> site_folders(const std::vector<std::string>& given,
                                      const std::vector<std::string>& environment, const Install& install) {
  auto folders = given;
  for (const auto& folder : text::split(sys::env_value(environment, "NLAUNCH_SITE_PATH"), ':')) {
    if (!folder.empty()) folders.push_back(folder);
  }
  folders.emplace_back("site-profiles");
  const std::string config(sys::env_value(environment, "XDG_CONFIG_HOME"));
  const std::string home(sys::env_value(environment, "HOME"));
  if (!config.empty() || !home.empty()) {
    folders.push_back((config.empty() ? fs::path(home) / ".config" : fs::path(config)) / "nlaunch" / "sites");
  }
  folders.push_back(install.sites);
  // The same directory may be named twice, for example in the source tree.
  for (auto folder = folders.begin(); folder != folders.end();) {
    const auto same = [&](const std::string& other) {
      std::error_code error;
      return other == *folder || fs::equivalent(other, *folder, error);
    };
    folder = std::any_of(folders.begin(), folder, same) ? folders.erase(folder) : folder + 1;
  }
  return folders;
}

}  // namespace nlaunch::launch
