#include "launch/bind/wrap.h"

#include <algorithm>
#include <filesystem>

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;
using plan::Mount;

bool is_within(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder.ends_with('/') ? folder : folder + "/");
}

/// Directories first: everything inside them is included.
void add(std::vector<Mount>& mounts, const std::string& path, bool writable) {
  std::error_code error;
  const bool there =
      std::ranges::any_of(mounts, [&](const Mount& mount) { return is_within(path, mount.path); });
  if (path.empty() || path == "/" || there || !fs::exists(path, error)) return;
  mounts.push_back({path, writable});
}

}  // namespace

Result<plan::Words> wrap(const plan::Words& wrapper, const plan::BoundProcess& process,
                         const std::string& venv, const std::vector<std::string>& folders,
                         const RunPaths& paths, const Install& install) {
  if (!plan::is_container(wrapper)) return wrapper;
  std::vector<Mount> mounts;
  for (const auto& folder : {process.workdir, paths.folder.string()}) add(mounts, folder, true);
  for (const auto& folder : folders) add(mounts, folder, true);
  add(mounts, venv, true);
  for (const auto& library : process.preload) add(mounts, library, false);
  for (const auto& file : parts_in_containers(install)) add(mounts, file, false);
  for (const auto& mount : mounts) {
    if (plan::can_mount(wrapper, mount.path)) continue;
    return failure(
        "launch.mount",
        "'{}' cannot be mounted into the container: {} treats a character in it as the end of the path",
        mount.path, wrapper.front());
  }
  return plan::with_mounts(wrapper, mounts);
}

plan::Variables given_by(std::span<const plan::EnvOp> operations, const plan::ConditionFacts& facts,
                         const plan::Environment& host, const plan::Environment& environment) {
  plan::Variables given;
  for (const auto& [name, value] : plan::apply({}, operations, facts)) {
    const auto before = host.find(name);
    if (before == host.end() || before->second != environment.at(name)) given.emplace_back(name, value);
  }
  return given;
}

}  // namespace nlaunch::launch
