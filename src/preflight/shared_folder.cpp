#include "preflight/shared_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "plan/groups.h"
#include "sys/files.h"

namespace nlaunch::preflight {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenLooks{20};

/// True once it exists.
bool wait_for(const fs::path& file, Clock::time_point until) {
  std::error_code error;
  while (!fs::exists(file, error)) {
    if (Clock::now() >= until) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return true;
}

class Trial {
 public:
  Trial(const std::string& tag, SharedFolder& found) : folder_(found.path), tag_(tag), found_(found) {}

  /// Answers each of the other nodes, while they may ask.
  void write(const std::set<std::uint32_t>& readers) {
    if (!make_folder()) return;
    const auto until = Clock::now() + 2 * kToSeeAFile;  // the others may start later
    auto left = readers;
    std::error_code error;
    while (!left.empty() && Clock::now() < until) {
      std::erase_if(left, [&](std::uint32_t node) {
        return fs::exists(asks(node), error) &&
               sys::write_file_atomically(answers(node), "seen\n").has_value();
      });
      if (!left.empty()) std::this_thread::sleep_for(kBetweenLooks);
    }
    found_.silent = left.size();
  }

  void read(std::uint32_t node) {
    if (!make_folder()) return;
    const auto begin = Clock::now();
    std::error_code error;
    fs::remove(answers(node), error);  // of a trial that was interrupted
    if (const auto asked = sys::write_file_atomically(asks(node), "seen?\n"); !asked) {
      found_.error = asked.error().first_message();
    } else if (!wait_for(answers(node), begin + kToSeeAFile)) {
      found_.error = fmt::format("no file from {}'s node is seen here after {}", found_.writer,
                                 format_duration(kToSeeAFile));
    }
    found_.seen = std::chrono::duration_cast<Duration>(Clock::now() - begin);
    fs::remove(answers(node), error);
    fs::remove(asks(node), error);
  }

 private:
  bool make_folder() {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) found_.error = fmt::format("cannot create the directory: {}", error.message());
    return !error;
  }
  [[nodiscard]] fs::path asks(std::uint32_t node) const { return file("asks", node); }
  [[nodiscard]] fs::path answers(std::uint32_t node) const { return file("answers", node); }
  /// In the directory itself: a subdirectory for the trial would be removed by one node while another is
  /// about to use it.
  [[nodiscard]] fs::path file(std::string_view what, std::uint32_t node) const {
    return folder_ / fmt::format(".nlaunch-{}.{}.{}", tag_, what, node);
  }

  fs::path folder_;
  const std::string& tag_;
  SharedFolder& found_;
};

}  // namespace

std::vector<SharedFolder> try_shared_folders(const plan::Plan& plan, const plan::BoundNode& node,
                                             std::uint32_t index, const std::string& tag) {
  std::vector<SharedFolder> out;
  const auto writer = std::ranges::find_if(plan.processes, [&](const plan::Process& process) {
    return plan.role_of(process).kind == RoleKind::learner;
  });
  if (writer == plan.processes.end()) return out;
  std::set<std::uint32_t> readers;
  for (const auto& process : plan.processes) {
    if (plan.role_of(process).kind == RoleKind::engine && process.node != writer->node)
      readers.insert(process.node);
  }
  const bool writes = index == writer->node;
  if (!writes && !readers.contains(index)) return out;
  for (std::size_t i = 0; i < plan.weight_syncs.size() && i < node.weight_paths.size(); ++i) {
    if (plan.weight_syncs[i].backend != SyncBackend::disk) continue;
    auto& found = out.emplace_back(SharedFolder{plan::group_name(plan.weight_syncs[i]), node.weight_paths[i],
                                                plan.name_of(*writer), writes, readers.size()});
    Trial trial(tag, found);
    if (writes)
      trial.write(readers);
    else
      trial.read(index);
  }
  return out;
}

}  // namespace nlaunch::preflight
