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

/// Shared memory that processes leave when they are killed: files of /dev/shm, as shm_open(3) makes them.
/// Folders there, and what was there before, are somebody's data and stay.
class SharedMemory {
 public:
  /// What is in the folder now is from before.
  explicit SharedMemory(std::filesystem::path folder = "/dev/shm");

  /// Notes the new files that these processes have mapped; they are not asked for where there is none. To be
  /// called every now and then: who maps a file may end before the others. After some looks a file is
  /// somebody else's.
  void note(const std::function<ProcessIds()>& processes);
  /// Removes those files that were noted, are this user's, and are mapped by no process any more. Returns
  /// their names.
  std::vector<std::string> remove();

 private:
  using Identity = std::pair<std::string, std::uint64_t>;  ///< device and inode, as /proc has them
  [[nodiscard]] std::map<Identity, std::filesystem::path> files() const;

  std::filesystem::path folder_;
  std::set<Identity> before_;
  std::map<Identity, unsigned> looks_;  ///< at files that none of the processes had mapped
  std::map<Identity, std::filesystem::path> noted_;
};

}  // namespace nlaunch::sys
