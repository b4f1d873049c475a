#include "supervise/events.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
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

std::string utc_of(std::time_t seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.000Z", fmt::gmtime(seconds));
}

std::optional<double> parse_utc(std::string_view text) {
  constexpr double kThousand = 1000;
  const std::string whole(text);
  std::tm time{};
  const char* rest = ::strptime(whole.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (rest == nullptr) return std::nullopt;
  unsigned milliseconds = 0;
  if (*rest == '.') {
    constexpr std::size_t kDigits = 3;
    const auto digits = std::string_view(rest + 1).substr(0, kDigits);
    const auto number = text::whole_number<unsigned>(digits);
    if (!number || digits.size() < kDigits) return std::nullopt;
    milliseconds = *number;
    rest += 1 + kDigits;
  }
  if (std::string_view(rest) != "Z") return std::nullopt;
  return static_cast<double>(::timegm(&time)) + milliseconds / kThousand;
}

std::string utc_stamp() {
  return fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(std::time(nullptr)));
}

void EventLog::write(std::string_view event, const Json& fields) {
  using namespace std::chrono;
  const auto now = duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
  const auto rest = json_text(fields);  // {...}
  // One write per line: a reader or a second writer never sees half a line.
  file_.append(fmt::format(R"({{"mono_ms":{},"time":"{}","event":"{}"{}{}{})", now, utc_now(), event,
                           fields.empty() ? "" : ",", std::string_view(rest).substr(1), "\n"));
  if (observer_) observer_(event, fields);
}

namespace {

/// The types of these keys in every event. nlaunch writes no others, but a file may be damaged or from
/// another program.
constexpr auto kTexts = std::to_array<std::string_view>({"event", "time", "name", "id", "site", "host", "job",
                                                         "process", "how", "reason", "outcome", "what", "why",
                                                         "signal", "verdict", "child", "waited"});
constexpr auto kNumbers =
    std::to_array<std::string_view>({"mono_ms", "nodes", "pid", "start_ticks", "number", "attempt",
                                     "restarts", "after_ms", "exit_code", "guardian", "supervisor"});

/// What is wrong with the types of an event, or empty.
std::string mistyped(const Json& event) {
  for (const auto& [key, value] : event.items()) {
    const bool text = std::ranges::find(kTexts, key) != kTexts.end();
    const bool number = std::ranges::find(kNumbers, key) != kNumbers.end();
    const bool fits = (!text || value.is_string()) && (!number || value.is_number_integer());
    if (!fits)
      return fmt::format("'{}' must be a {}, found: {}", key, text ? "string" : "whole number",
                         value.type_name());
  }
  return {};
}

}  // namespace

Result<std::vector<Json>> read_events(const std::filesystem::path& path) {
  constexpr std::uint64_t kLargest = 1U << 30U;
  const auto content = sys::read_regular_file(path, kLargest, sys::Links::refused);
  if (!content) return std::unexpected(content.error());
  std::vector<Json> events;
  std::size_t number = 0;
  for (const auto& line : text::split(*content, '\n')) {
    ++number;
    auto event = parse_ordered_json(line);
    if (!event.is_object()) continue;
    if (const auto problem = mistyped(event); !problem.empty())
      return failure("run.damaged", "{}:{}: {}", path.string(), number, problem);
    const auto known = check_format(event, formats::kEvents, path.string());
    if (!known) return std::unexpected(known.error());
    for (const auto key : kTexts) {
      // A name with a line break would be a separate row in `nlaunch ps`.
      if (const auto text = event.find(key); text != event.end())
        *text = text::printable(text->get_ref<const std::string&>());
    }
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace nlaunch::supervise
