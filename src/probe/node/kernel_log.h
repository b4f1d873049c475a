#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace nlaunch::probe {

/// A record of /dev/kmsg (Documentation/ABI/testing/dev-kmsg) as the kernel itself wrote it.
struct KernelLine {
  double seconds = 0;  ///< since boot
  std::string text;
};
/// Nothing for a line that came from a program, and for what is no record.
std::optional<KernelLine> parse_kmsg(std::string_view record);

/// Whether it tells of a GPU, an NVSwitch, or a task that hangs.
bool concerns_gpus(std::string_view line);

}  // namespace nlaunch::probe
