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

/// A checkpoint that is complete.
struct SavedCheckpoint {
  std::string path;
  std::optional<std::uint64_t> step;  ///< nothing: it does not say
};

/// The folder in which the learners save, looked at from outside: each call reads it.
class CheckpointFolder {
 public:
  /// What is incomplete there now is of a run that was cut off, as long as nothing in it changes.
  CheckpointFolder(const plan::Checkpoint& how, const std::filesystem::path& run_folder);
  ~CheckpointFolder();

  /// The complete one with the highest step; nothing: there is none.
  [[nodiscard]] std::optional<SavedCheckpoint> newest() const;
  /// The name of one that is being written: later than all that are complete. Empty: there is none.
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
  std::unique_ptr<re2::RE2> partial_;                            ///< null: there is none
  std::map<std::string, std::filesystem::file_time_type> left_;  ///< incomplete when this was made
};

/// The checkpoint that an attempt begins with: the newest in the folder; without a folder the last that the
/// learners' output named before, by the run's events, where it is still there.
std::optional<SavedCheckpoint> checkpoint_to_resume(const plan::Plan& plan,
                                                    const std::filesystem::path& run_folder);

}  // namespace nlaunch::supervise
