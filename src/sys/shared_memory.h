#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sys/sweep.h"

namespace nlaunch::sys {

/// Shared memory that processes leave when they are killed: files in /dev/shm, as created by shm_open(3).
/// Directories there, and files that existed before, are someone's data and stay.
class SharedMemory {
 public:
  /// What is in the directory now existed before.
  explicit SharedMemory(std::filesystem::path folder = "/dev/shm");

  /// Records the new files that these processes have mapped; `processes` is not called if there are none.
  /// Call it now and then: a process that maps a file may exit before the others. After some scans an
  /// unmapped file counts as someone else's.
  void note(const std::function<ProcessIds()>& processes);
  /// Removes the recorded files that belong to this user and are no longer mapped by any process. Returns
  /// their names.
  std::vector<std::string> remove();

 private:
  using Identity = std::pair<std::string, std::uint64_t>;  ///< device and inode, as in /proc
  [[nodiscard]] std::map<Identity, std::filesystem::path> files() const;

  std::filesystem::path folder_;
  std::set<Identity> before_;
  std::map<Identity, unsigned> looks_;  ///< scans of files that none of the processes had mapped
  std::map<Identity, std::filesystem::path> noted_;
};

}  // namespace nlaunch::sys
