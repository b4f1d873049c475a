#include "probe/container.h"

#include <gnu/libc-version.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "sys/files.h"

namespace nlaunch::probe {
namespace {

/// os-release(5).
std::string name_of_system() {
  constexpr std::string_view kName = "PRETTY_NAME=";
  constexpr std::uint64_t kLimit = 64U << 10U;
  const auto content = sys::read_regular_file("/etc/os-release", kLimit);
  if (!content) return "";
  for (const auto& line : text::split(*content, '\n')) {
    if (!line.starts_with(kName)) continue;
    auto name = std::string(text::trim(line.substr(kName.size())));
    std::erase(name, '"');
    return name;
  }
  return "";
}

}  // namespace

nlohmann::json examine_container(std::span<const std::string> files) {
  nlohmann::json out{{"event", "container"},
                     {"os", name_of_system()},
                     {"glibc", ::gnu_get_libc_version()},
                     {"gpus", ::access("/dev/nvidiactl", F_OK) == 0},
                     {"unreadable", nlohmann::json::object()}};
  for (const auto& file : files) {
    if (::access(file.c_str(), R_OK) != 0) out["unreadable"][file] = std::strerror(errno);
  }
  return out;
}

}  // namespace nlaunch::probe
