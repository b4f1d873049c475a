#include "launch/bind/modules.h"

#include <fmt/ranges.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/text.h"
#include "sys/command.h"
#include "sys/files.h"

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;

// Lmod on a cold network file system can take half a minute.
constexpr Duration kDeadlineOfModules = std::chrono::minutes(3);
constexpr std::uint64_t kLargestDump = 16U << 20U;

constexpr const char* kUsualPlaces[] = {"/usr/share/lmod/lmod/init/bash", "/opt/cray/pe/lmod/lmod/init/bash",
                                        "/opt/apps/lmod/lmod/init/bash",  "/usr/share/modules/init/bash",
                                        "/usr/share/Modules/init/bash",   "/etc/profile.d/modules.sh",
                                        "/etc/profile.d/lmod.sh"};

/// Runs each step in the same shell and dumps the environment after it. Names are passed as arguments, so
/// nothing needs quoting.
constexpr const char* kScript = R"(
folder=$1 init=$2 reset=$3 files=$4 folders=$5; shift 5
env_program=$(type -P env)
dump() { "$env_program" -0 > "$folder/$1"; }
dump before
step=0
while [ "$step" -lt "$files" ]; do
  . "$1" || { echo "sourcing $1 failed" >&2; exit 1; }
  dump "file-$step"
  step=$((step + 1)); shift
done
[ -n "$init" ] || exit 0
. "$init" || { echo "sourcing $init failed" >&2; exit 1; }
type module > /dev/null 2>&1 || { echo "$init defines no 'module'" >&2; exit 1; }
dump init
if [ "$reset" = 1 ]; then module reset || { echo "module reset failed" >&2; exit 1; }; fi
dump reset
step=0
while [ "$step" -lt "$folders" ]; do
  module use "$1" || { echo "module use $1 failed" >&2; exit 1; }
  dump "use-$step"
  step=$((step + 1)); shift
done
step=0
for name in "$@"; do
  module load "$name" || { echo "module load $name failed" >&2; exit 1; }
  dump "$step"
  step=$((step + 1))
done
)";

Result<plan::Environment> read_dump(const fs::path& file) {
  const auto content = sys::read_regular_file(file, kLargestDump);
  if (!content) return std::unexpected(content.error());
  auto environment = plan::to_environment(text::split(*content, '\0'));
  for (const char* shells_own : {"_", "SHLVL", "PWD", "OLDPWD"}) environment.erase(shells_own);
  return environment;
}

std::vector<plan::EnvOp> own_variables(const plan::Modules& modules) {
  std::vector<plan::EnvOp> operations;
  for (const auto& [name, value] : modules.set) {
    operations.push_back(
        {plan::EnvOp::Kind::set, name, value, plan::Layer::modules, "modules.set, " + modules.origin, {}});
  }
  return operations;
}

Result<std::vector<plan::EnvOp>> read_steps(const fs::path& folder, const std::string& init,
                                            const plan::Modules& modules) {
  std::vector<std::pair<std::string, std::string>> steps;
  for (std::size_t i = 0; i < modules.source.size(); ++i) {
    steps.emplace_back(fmt::format("file-{}", i), modules.source[i]);
  }
  if (!init.empty()) steps.insert(steps.end(), {{"init", init}, {"reset", "module reset"}});
  for (std::size_t i = 0; i < modules.use.size(); ++i)
    steps.emplace_back(fmt::format("use-{}", i), "module use " + modules.use[i]);
  for (std::size_t i = 0; i < modules.load.size(); ++i) {
    steps.emplace_back(std::to_string(i), "module " + modules.load[i]);
  }
  auto before = read_dump(folder / "before");
  if (!before) return std::unexpected(before.error());
  auto operations = own_variables(modules);
  for (const auto& [file, origin] : steps) {
    auto after = read_dump(folder / file);
    if (!after) return std::unexpected(after.error());
    const auto changes = plan::difference(*before, *after, plan::Layer::modules, origin);
    operations.insert(operations.end(), changes.begin(), changes.end());
    before = std::move(after);
  }
  return operations;
}

/// A name template; in /tmp if TMPDIR is not a directory: a job may have inherited that of a login node.
std::string folder_for_dumps() {
  std::error_code error;
  const auto temporary = fs::temp_directory_path(error);
  return ((error ? fs::path("/tmp") : temporary) / "nlaunch-modules-XXXXXX").string();
}

}  // namespace

std::string find_modules_init(const plan::Environment& base) {
  std::error_code error;
  if (const auto home = base.find("MODULESHOME"); home != base.end()) {
    const auto init = home->second + "/init/bash";
    if (fs::exists(init, error)) return init;
  }
  for (const char* place : kUsualPlaces) {
    if (fs::exists(place, error)) return place;
  }
  return {};
}

Result<std::vector<plan::EnvOp>> load_modules(const plan::Modules& modules, const plan::Environment& base) {
  if (!modules.any()) return std::vector<plan::EnvOp>();
  auto init = modules.init;
  if (init.empty() && modules.loads()) init = find_modules_init(base);
  if (init.empty() && modules.loads()) {
    return failure("launch.modules", "no environment modules on this machine: looked for {}",
                   fmt::join(kUsualPlaces, ", "));
  }
  auto folder = folder_for_dumps();
  if (::mkdtemp(folder.data()) == nullptr) {
    return failure("launch.modules", "cannot create the directory {}: {}; set TMPDIR to create it elsewhere",
                   folder, std::strerror(errno));
  }

  sys::SpawnRequest request;
  request.argv = {"bash",
                  "--noprofile",
                  "--norc",
                  "-c",
                  kScript,
                  "modules",
                  folder,
                  init,
                  modules.reset ? "1" : "0",
                  std::to_string(modules.source.size()),
                  std::to_string(modules.use.size())};
  for (const auto* words : {&modules.source, &modules.use, &modules.load})
    request.argv.insert(request.argv.end(), words->begin(), words->end());
  request.env = plan::to_entries(plan::apply(base, own_variables(modules), {}));
  const auto result = sys::run_command(std::move(request), kDeadlineOfModules);
  Result<std::vector<plan::EnvOp>> operations;
  if (!result) {
    operations = std::unexpected(result.error());
  } else if (result->timed_out) {
    operations = failure("launch.modules", "loading modules did not finish within {}",
                         format_duration(kDeadlineOfModules));
  } else if (!result->status.ok()) {
    operations = failure("launch.modules", "loading modules failed ({}): {}", modules.origin,
                         text::join(text::split(text::trim(result->err), '\n'), " / "));
  } else {
    operations = read_steps(folder, init, modules);
  }
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return operations;
}

}  // namespace nlaunch::launch
