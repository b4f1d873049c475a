#pragma once
#include <cstdint>

namespace nlaunch::diagnose {

/// What the summary of a run says of the process that wrote a log.
enum class Standing : std::uint8_t {
  unknown,
  failed,   ///< the first to fail
  stopped,  ///< it ended after another one had failed: what it says may be what followed
  asked,    ///< it ended after a person or the scheduler had asked for the end
  well,     ///< it came to a good end: nothing that it says is a failure
};

}  // namespace nlaunch::diagnose
