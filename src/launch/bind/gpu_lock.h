#pragma once
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "plan/bound.h"
#include "sys/files.h"

namespace nlaunch::launch {

/// Where runs on one machine, of any user, record which GPUs they hold.
std::string lock_folder();
/// Opens a file there for locking; creates directory (with the permissions of /tmp) and file for all users if
/// they do not exist. The user who created the directory can put anything there: a link, a FIFO or a hard
/// link to another file is a failure, and is not followed, waited for or written to.
Result<sys::UniqueFd> open_lock_file(const std::string& folder, const std::string& name);

/// Holds the GPUs of a run on a shared machine. The locks are released when the process exits, however it
/// exits.
class GpuLocks {
 public:
  /// Locks every GPU that the plan's processes on this node use. GPUs held by another run are a failure that
  /// names each GPU, the run, its user and pid. `owner` is what others will read: the run directory.
  static Result<GpuLocks> take(const plan::Plan& plan, const plan::BoundNode& node, const std::string& owner,
                               const std::string& folder = lock_folder());

 private:
  std::vector<sys::UniqueFd> held_;
};

}  // namespace nlaunch::launch
