#include "supervise/events.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "sys/files.h"

namespace nlaunch::supervise {

std::string utc_now() {
  using namespace std::chrono;
  const auto now = time_point_cast<milliseconds>(system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(system_clock::to_time_t(now)),
                     now.time_since_epoch().count() % 1000);
}

std::string utc_stamp() {
  return fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(std::time(nullptr)));
}

void EventLog::write(std::string_view event, const Json& fields) {
  using namespace std::chrono;
  Json line;
  line["mono_ms"] = duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
  line["time"] = utc_now();
  line["event"] = event;
  line.update(fields);
  // One write for each line: a reader, or a second writer, never sees half of one.
  file_.append(json_text(line) + "\n");
}

Result<std::vector<Json>> read_events(const std::filesystem::path& path) {
  constexpr std::uint64_t kLargest = 1U << 30U;
  const auto content = sys::read_regular_file(path, kLargest);
  if (!content) return std::unexpected(content.error());
  std::vector<Json> events;
  for (const auto& line : text::split(*content, '\n')) {
    auto event = parse_ordered_json(line);
    if (!event.is_object()) continue;
    const auto known = check_format(event, formats::kEvents, path.string());
    if (!known) return std::unexpected(known.error());
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace nlaunch::supervise
