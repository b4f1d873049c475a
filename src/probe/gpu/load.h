#pragma once
#include <memory>

#include "base/diagnostic.h"

namespace nlaunch::probe {

/// Keeps a GPU as busy as one that trains or generates: matrix products, one behind the other, on a stream of
/// the lowest priority, from now until its end.
class GpuLoad {
 public:
  virtual ~GpuLoad() = default;
  /// Stops, waits for the last product, and says whether there were products all the time.
  virtual Result<void> end() = 0;
};

}  // namespace nlaunch::probe
