#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "plan/plan.h"

namespace re2 {
class RE2;
}

namespace nlaunch::supervise {

/// A complete checkpoint.
struct SavedCheckpoint {
  std::string path;
  std::optional<std::uint64_t> step;  ///< empty: the path does not name one
};

/// The directory to which the learners save, observed from outside: each call reads it again.
class CheckpointFolder {
 public:
  /// Incomplete checkpoints that exist now belong to a run that was cut off, as long as nothing in them
  /// changes.
  CheckpointFolder(const plan::Checkpoint& how, const std::filesystem::path& run_folder);
  ~CheckpointFolder();

  /// The complete checkpoint with the highest step; empty if there is none.
  [[nodiscard]] std::optional<SavedCheckpoint> newest() const;
  /// The name of the checkpoint that is being written: one newer than every complete one. Empty if there is
  /// none.
  [[nodiscard]] std::string in_flight() const;

 private:
  struct Found {
    std::string name;
    std::uint64_t step = 0;
    bool complete = false;
    std::filesystem::file_time_type changed{};
  };
  [[nodiscard]] std::vector<Found> look() const;

  plan::Checkpoint how_;
  std::filesystem::path folder_;
  std::unique_ptr<re2::RE2> name_;
  std::unique_ptr<re2::RE2> partial_;                            ///< null: none
  std::map<std::string, std::filesystem::file_time_type> left_;  ///< incomplete when this object was created
};

/// The checkpoint with which an attempt starts: the newest in the checkpoint directory; without a directory,
/// the last one that the learners' output named according to the run's events, if it still exists.
std::optional<SavedCheckpoint> checkpoint_to_resume(const plan::Plan& plan,
                                                    const std::filesystem::path& run_folder);

}  // namespace nlaunch::supervise
