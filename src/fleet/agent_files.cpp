#include "base/exit_code.h"
#include "base/json.h"
#include "fleet/agent.h"
#include "plan/json.h"
#include "sys/files.h"

// An agent's own run directory, if the nodes share no directory.
namespace nlaunch::fleet {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLargestFileOfRun = 1U << 30U;

}  // namespace

/// If nodes share no directory, this one creates its own at the same path. Returns why it could not.
std::optional<std::string> Agent::make_folders() {
  if (options_.runs.empty()) return std::nullopt;
  const auto& paths = assignment_.paths;
  const auto own = options_.runs / worker_.plan().name / paths.folder.filename();
  if (paths.folder != own || paths.attempt.parent_path() != own || paths.attempt.filename() == "..") {
    return fmt::format("the run is in {}, not in {}", paths.attempt.string(), options_.runs.string());
  }
  auto made = sys::make_private_folder(own);
  for (const auto& folder :
       {paths.attempt, paths.attempt / "logs", paths.attempt / "log-times", paths.attempt / "nccl"}) {
    if (made) made = sys::make_private_folder(folder);
  }
  if (made) made = sys::write_file_atomically(own / "plan.json", plan::to_text(worker_.plan(), 2) + "\n");
  if (made && !caller_.console.quiet && index_ > 0) {  // the leader has printed it for its own node
    caller_.console.say(fmt::format("nlaunch agent on {}: node {} of {}, run {} in {}\n", options_.host,
                                    index_, worker_.plan().node.count, paths.id, own.string()));
  }
  return made ? std::nullopt : std::optional(made.error().first_message());
}

/// A file that all nodes have in common.
void Agent::on(const message::Keep& keep) {
  const auto path = launch::common_file(assignment_.paths, keep.file);
  if (options_.runs.empty() || !path)
    return on_leader_lost(fmt::format("nlaunch sent an unexpected file '{}'", keep.file));
  auto kept = sys::make_private_folder(path->parent_path());
  if (kept) kept = sys::write_file_atomically(*path, keep.text);
  if (!kept) give_up(kept.error().first_message());
}

/// Files of this node that processes of other nodes may read.
std::map<std::string, std::string> Agent::files_for_all() const {
  std::map<std::string, std::string> files;
  for (const char* folder : {"addrs", "env"}) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(assignment_.paths.attempt / folder, error)) {
      const auto text = sys::read_regular_file(entry.path(), kLargestFileOfRun);
      if (text) files[fmt::format("{}/{}", folder, entry.path().filename().string())] = *text;
    }
  }
  return files;
}

/// The run's own summary, which has more information, will not arrive any more.
void Agent::write_own_summary(const std::string& why) {
  const json summary{
      {"run", assignment_.paths.id},
      {"name", worker_.plan().name},
      {"site", worker_.plan().site},
      {"exit_code", exit_code::internal},
      {"outcome", "killed"},
      {"sentence", fmt::format("{}: {}; the processes here were stopped", options_.host, why)}};
  const auto wrote =
      sys::write_file_atomically(assignment_.paths.folder / "summary.json", json_text(summary, 2) + "\n");
  if (!wrote) give_up(wrote.error().first_message());
}

}  // namespace nlaunch::fleet
