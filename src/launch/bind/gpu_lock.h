#pragma once
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "launch/bind/ports.h"
#include "plan/bound.h"
#include "sys/files.h"

namespace nlaunch::launch {

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
