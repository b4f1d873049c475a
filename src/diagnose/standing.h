#pragma once
#include <cstdint>

namespace nlaunch::diagnose {

/// What the summary of a run says about the process that wrote a log.
enum class Standing : std::uint8_t {
  unknown,
  failed,   ///< the first to fail
  stopped,  ///< it ended after another one had failed: its output may be a consequence
  asked,    ///< it ended after a person or the scheduler had requested the end
  well,     ///< it succeeded: nothing that it prints is a failure
};

}  // namespace nlaunch::diagnose
