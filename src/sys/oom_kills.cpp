#include "sys/oom_kills.h"

#include <fstream>
#include <string>
#include <string_view>

#include "base/text.h"

namespace nlaunch::sys {
namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> count_in(const fs::path& file) {
  std::ifstream lines(file);
  std::string key;
  std::uint64_t value = 0;
  while (lines >> key >> value) {
    if (key == "oom_kill") return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> oom_kills(const fs::path& membership, const fs::path& hierarchies) {
  std::ifstream lines(membership);
  std::string line;
  std::optional<std::uint64_t> count;
  while (!count && std::getline(lines, line)) {
    // hierarchy:controllers:path
    const auto fields = text::split(line, ':');
    constexpr std::size_t kFields = 3;
    if (fields.size() < kFields) continue;
    const auto path = fs::path(fields[2]).relative_path();
    if (fields[1].empty()) {
      count = count_in(hierarchies / path / "memory.events");
    } else if (fields[1] == "memory") {
      count = count_in(hierarchies / "memory" / path / "memory.oom_control");
    }
  }
  return count;
}

}  // namespace nlaunch::sys
