#include "launch/job/pyxis.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"

namespace nlaunch::launch {

std::vector<std::string> pyxis_options(const plan::Plan& plan, const Install& install,
                                       const std::string& run_folder) {
  const bool contained = std::ranges::any_of(plan.slurm.srun, [](const std::string& option) {
    return option.starts_with("--container-image") || option.starts_with("--container-name");
  });
  if (!contained) return {};
  std::vector<std::string> mounts;
  const auto add = [&](const std::string& path, std::string_view flags) {
    auto mount = fmt::format("{0}:{0}{1}", path, flags);
    std::error_code error;
    const bool there = !path.empty() && path != "/" && std::filesystem::exists(path, error);
    if (there && std::ranges::find(mounts, mount) == mounts.end()) mounts.push_back(std::move(mount));
  };
  add(install.program, ":ro");
  for (const auto& file : parts_in_containers(install)) add(file, ":ro");
  add(run_folder, "");
  for (const auto& role : plan.roles) {
    add(role.workdir, "");
    add(role.venv, "");
  }
  return {"--container-mounts=" + text::join(mounts, ",")};
}

}  // namespace nlaunch::launch
