#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

namespace nlaunch::sys {

/// How many processes of this process's memory cgroup the kernel has killed because memory ran out: of the
/// cgroup's limit or of the machine. Linux counts it in memory.events (cgroup v2) or memory.oom_control (v1,
/// since 4.13); see Documentation/admin-guide/cgroup-v2.rst. Nothing where no such file can be read.
std::optional<std::uint64_t> oom_kills(const std::filesystem::path& membership = "/proc/self/cgroup",
                                       const std::filesystem::path& hierarchies = "/sys/fs/cgroup");

}  // namespace nlaunch::sys
