#pragma once
#include <memory>

#include "probe/rank/device_copies.h"

namespace nlaunch::probe {

/// For the GPU that is current in the threads that will use it.
std::unique_ptr<DeviceCopies> make_device_copies();

}  // namespace nlaunch::probe
