#pragma once
#include <memory>

#include "base/diagnostic.h"

namespace nlaunch::probe {

/// Keeps a GPU as busy as one that trains or generates: back-to-back matrix products on a stream of the
/// lowest priority, from now until its destruction.
class GpuLoad {
 public:
  virtual ~GpuLoad() = default;
  /// Stops, waits for the last product, and returns whether there were products all the time.
  virtual Result<void> end() = 0;
};

}  // namespace nlaunch::probe
