#include "launch/run_folder.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <tuple>

#include "base/text.h"
#include "sys/files.h"

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;

bool is_run(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "plan.json", error);
}

/// By time, then by pid.
auto age(const fs::path& folder) {
  constexpr std::size_t kTime = sizeof("20260131-120000") - 1;
  const auto id = folder.filename().string();
  return std::tuple(id.substr(0, kTime), id.size(), id);
}

std::unexpected<Diagnostics> not_found(const fs::path& runs, const std::string& run,
                                       const std::vector<std::string>& names) {
  const auto where = fs::absolute(runs).string();
  std::error_code error;
  const auto message =
      !fs::is_directory(runs, error)
          ? fmt::format("no run '{}': there is no folder '{}'", run, where)
          : fmt::format("no run '{}' in '{}': it is no path, id or name of a run there{}", run, where,
                        names.empty() ? "" : fmt::format(" (names: {})", text::join(names, ", ")));
  return std::unexpected(
      Diagnostics({Severity::error,
                   "launch.run",
                   message,
                   {},
                   {},
                   "give the run's path, or --runs-dir with the folder that it was made in"}));
}

}  // namespace

std::string new_run_id() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &local);
  return fmt::format("{}-{}", text, ::getpid());
}

Result<RunPaths> make_run_folder(const fs::path& runs, const std::string& name, const std::string& id) {
  RunPaths paths{id, {}, {}};
  paths.folder = fs::absolute(runs / name / paths.id);
  if (const auto made = sys::make_private_folder(paths.folder); !made) {
    auto problem = made.error().items().front();
    problem.hint = "--runs-dir DIR puts run directories elsewhere";
    return std::unexpected(Diagnostics(std::move(problem)));
  }
  return paths;
}

Result<void> point_link(const fs::path& link, const std::string& target) {
  std::error_code error;
  const auto temporary = link.parent_path() / fmt::format(".{}-{}", link.filename().string(), target);
  fs::create_symlink(target, temporary, error);
  if (!error) fs::rename(temporary, link, error);
  if (error)
    return failure("launch.link", "cannot point '{}' at '{}': {}", link.string(), target, error.message());
  return {};
}

Result<void> point_latest(const RunPaths& paths) {
  return point_link(paths.folder.parent_path() / "latest", paths.id);
}

unsigned next_attempt(const RunPaths& paths) {
  unsigned attempt = 0;
  std::error_code error;
  while (fs::exists(paths.folder / fmt::format("attempt-{}", attempt), error)) ++attempt;
  return attempt;
}

Result<void> make_attempt_folder(RunPaths& paths, unsigned attempt) {
  paths.attempt = paths.folder / fmt::format("attempt-{}", attempt);
  for (const auto& folder : {paths.attempt, paths.attempt / "logs", paths.attempt / "nccl"}) {
    if (const auto made = sys::make_private_folder(folder); !made) return std::unexpected(made.error());
  }
  return {};
}

std::vector<fs::path> runs_of(const fs::path& folder_of_name) {
  std::vector<fs::path> runs;
  std::error_code error;
  for (const auto& run : fs::directory_iterator(folder_of_name, error)) {
    if (!run.is_symlink(error) && is_run(run.path())) runs.push_back(run.path());
  }
  std::ranges::sort(runs, std::greater(), age);
  return runs;
}

Result<fs::path> find_run(const fs::path& runs, const std::string& run,
                          const std::function<bool(const fs::path&)>& alive) {
  if (is_run(run)) return fs::absolute(run);
  std::error_code error;
  if (const auto named = runs_of(runs / run); !named.empty()) {
    const auto live = std::ranges::find_if(named, alive);
    if (live != named.end()) return fs::canonical(*live, error);
    return fs::canonical(is_run(runs / run / "latest") ? runs / run / "latest" : named.front(), error);
  }
  std::vector<std::string> names;
  for (const auto& name : fs::directory_iterator(runs, error)) {
    if (is_run(name.path() / run)) return fs::canonical(name.path() / run, error);
    names.push_back(name.path().filename().string());
  }
  std::ranges::sort(names);
  return not_found(runs, run, names);
}

}  // namespace nlaunch::launch
