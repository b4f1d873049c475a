#pragma once
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "plan/bound.h"
#include "sys/files.h"

namespace nlaunch::launch {

/// Where runs of one machine tell each other, whoever's they are, which GPUs they hold.
std::string lock_folder();
/// Opens a file there, to be locked; makes both for everybody (the folder as /tmp is) where they are not
/// there. Who made the folder can put there what he likes: a link, a FIFO or another name of a file elsewhere
/// is a failure, and is neither followed nor waited for nor written to.
Result<sys::UniqueFd> open_lock_file(const std::string& folder, const std::string& name);

/// Holds the GPUs of a run on a box that people share. The locks go when the process ends, however it ends.
class GpuLocks {
 public:
  /// Takes every GPU that the plan's processes on this node use. GPUs that another run holds are a failure
  /// that names each one, the run, its user and pid. `owner` is what others will read: the run's folder.
  static Result<GpuLocks> take(const plan::Plan& plan, const plan::BoundNode& node, const std::string& owner,
                               const std::string& folder = lock_folder());

 private:
  std::vector<sys::UniqueFd> held_;
};

}  // namespace nlaunch::launch
