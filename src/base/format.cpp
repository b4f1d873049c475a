#include "base/format.h"

#include "base/version.h"

namespace nlaunch {

Result<void> check_format(std::int64_t version, const Format& format, std::string_view file) {
  if (version <= format.version) return {};
  return std::unexpected(
      Diagnostics({Severity::error,
                   "format.newer",
                   fmt::format("'{}' has version {} of the format '{}'; this nlaunch ({}) knows {}", file,
                               version, format.name, nlaunch::version(), format.version),
                   {},
                   {},
                   "update nlaunch, or use the one that wrote it"}));
}

}  // namespace nlaunch
