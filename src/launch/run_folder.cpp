#include "launch/run_folder.h"

#include <unistd.h>

#include <ctime>
#include <vector>

#include "base/text.h"
#include "sys/files.h"

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;

std::string new_run_id() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &local);
  return fmt::format("{}-{}", text, ::getpid());
}

bool is_run(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "plan.json", error);
}

}  // namespace

Result<RunPaths> make_run_folder(const fs::path& runs, const std::string& name) {
  RunPaths paths{new_run_id(), {}, {}};
  paths.folder = fs::absolute(runs / name / paths.id);
  if (const auto made = sys::make_private_folder(paths.folder); !made) return std::unexpected(made.error());
  // A link is replaced in one step, so that it always points somewhere.
  std::error_code error;
  const auto latest = paths.folder.parent_path() / "latest";
  const auto temporary = paths.folder.parent_path() / fmt::format(".latest-{}", paths.id);
  fs::create_directory_symlink(paths.id, temporary, error);
  if (!error) fs::rename(temporary, latest, error);
  if (error)
    return failure("launch.latest", "cannot point '{}' at the run: {}", latest.string(), error.message());
  return paths;
}

Result<void> make_attempt_folder(RunPaths& paths, unsigned attempt) {
  paths.attempt = paths.folder / fmt::format("attempt-{}", attempt);
  for (const auto& folder : {paths.attempt, paths.attempt / "logs", paths.attempt / "nccl"}) {
    if (const auto made = sys::make_private_folder(folder); !made) return std::unexpected(made.error());
  }
  return {};
}

Result<fs::path> find_run(const fs::path& runs, const std::string& run) {
  if (is_run(run)) return fs::absolute(run);
  std::error_code error;
  if (is_run(runs / run / "latest")) return fs::canonical(runs / run / "latest", error);
  std::vector<std::string> names;
  for (const auto& name : fs::directory_iterator(runs, error)) {
    if (is_run(name.path() / run)) return fs::canonical(name.path() / run, error);
    names.push_back(name.path().filename().string());
  }
  return failure("launch.run", "no run '{}' in '{}': it is no path, id or name of a run there{}", run,
                 runs.string(), names.empty() ? "" : fmt::format(" (names: {})", text::join(names, ", ")));
}

}  // namespace nlaunch::launch
