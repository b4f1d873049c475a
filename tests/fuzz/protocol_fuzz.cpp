// Whatever comes over a connection between a leader and its agents: reading it ends, with a message or with a
// reason, and a message that was read is written as one that can be read. For libFuzzer, or with mutate.cpp
// for a short run of a fixed seed.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fleet/protocol.h"

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                                                             std::size_t size) {
  using namespace nlaunch;
  const auto message = fleet::decode({reinterpret_cast<const char*>(data), size});
  if (!message) {
    if (message.error().first_message().empty()) std::abort();
    return 0;
  }
  const auto line = fleet::encode(*message);
  const auto back = fleet::decode(line);
  if (!back || fleet::encode(*back) != line) std::abort();
  return 0;
}
