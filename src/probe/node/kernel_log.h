#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace nlaunch::probe {

/// A record of /dev/kmsg (Documentation/ABI/testing/dev-kmsg) that the kernel itself wrote.
struct KernelLine {
  double seconds = 0;  ///< since boot
  std::string text;
};
/// Nothing for a line from a program, and for anything that is not a record.
std::optional<KernelLine> parse_kmsg(std::string_view record);

/// Whether it is about a GPU, an NVSwitch, or a hung task.
bool concerns_gpus(std::string_view line);

}  // namespace nlaunch::probe
