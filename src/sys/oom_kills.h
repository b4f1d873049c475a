#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

namespace nlaunch::sys {

/// How many processes of this process's memory cgroup the kernel has killed because memory ran out: that of
/// the cgroup or of the machine. Linux counts them in memory.events (cgroup v2) or memory.oom_control (v1,
/// since 4.13); see Documentation/admin-guide/cgroup-v2.rst. Empty if no such file can be read.
std::optional<std::uint64_t> oom_kills(const std::filesystem::path& membership = "/proc/self/cgroup",
                                       const std::filesystem::path& hierarchies = "/sys/fs/cgroup");

}  // namespace nlaunch::sys
