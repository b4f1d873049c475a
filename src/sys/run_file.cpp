#include "sys/run_file.h"

#include "base/json.h"
#include "sys/files.h"

namespace nlaunch::sys {

Result<std::optional<nlohmann::ordered_json>> read_run_file(const std::filesystem::path& path,
                                                            const Format& format) {
  constexpr std::uint64_t kLargest = 256U << 20U;
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, error))) return std::nullopt;
  const auto content = read_regular_file(path, kLargest, Links::refused);
  if (!content) return std::unexpected(content.error());
  auto json = parse_ordered_json(*content);
  if (auto good = check_format(json, format, path.string()); !good) return std::unexpected(good.error());
  return json;
}

}  // namespace nlaunch::sys
