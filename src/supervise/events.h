#pragma once
#include <ctime>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "supervise/log_file.h"

namespace nlaunch::supervise {

using Json = nlohmann::ordered_json;

/// events.jsonl: one JSON object per line, in chronological order, so that the file retells the run. The
/// first event is "run", which has the format version; each job that continues the run adds another. Every
/// event has "mono_ms" (CLOCK_MONOTONIC in milliseconds, so that differences are exact), "time" (UTC, ISO
/// 8601) and "event".
class EventLog {
 public:
  /// Writes nothing.
  EventLog() = default;
  /// Appends to `path`. The first write failure is reported to `trouble`, once.
  EventLog(std::filesystem::path path, AppendedFile::Trouble trouble)
      : file_(std::move(path), std::move(trouble)) {}

  void write(std::string_view event, const Json& fields = Json::object());
  /// Detects that the file has been removed. Called every other second while processes run.
  void check() {
    file_.check();
    if (at_check_) at_check_();
  }
  /// Called with each event from now on, after it was written.
  void observe(std::function<void(std::string_view event, const Json& fields)> observer) {
    observer_ = std::move(observer);
  }
  /// Called at each check() from now on.
  void at_check(std::function<void()> call) { at_check_ = std::move(call); }

 private:
  AppendedFile file_;
  std::function<void(std::string_view event, const Json& fields)> observer_;
  std::function<void()> at_check_;
};

/// The current time: "2026-01-31T12:00:00.123Z".
std::string utc_now();
/// The same for seconds since 1970.
std::string utc_of(std::time_t seconds);
/// Seconds since 1970 of such a time; empty for any other text.
std::optional<double> parse_utc(std::string_view text);
/// The same in a form for directory names: "20260131T120000Z".
std::string utc_stamp();

/// The events of a run that may still be running: an incomplete last line is left out. Events of a newer
/// format are a failure [format.newer].
Result<std::vector<Json>> read_events(const std::filesystem::path& path);

}  // namespace nlaunch::supervise
