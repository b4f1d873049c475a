#include "supervise/error_file.h"

#include <re2/re2.h>
#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "sys/files.h"

namespace nlaunch::supervise {
namespace {

using nlohmann::json;

constexpr std::size_t kLargestErrorFile = 1U << 20U;
constexpr std::size_t kLongestMessage = 2000;
/// The kernel's time of a file lags behind its clock by up to a tick (10 ms at 100 Hz).
constexpr Duration kTick = std::chrono::milliseconds(10);
/// The timestamp is taken just before the file is written.
constexpr Duration kToWrite = std::chrono::seconds(2);

const json* member_of(const json& from, const char* key) {
  const auto found = from.is_object() ? from.find(key) : from.end();
  return found == from.end() ? nullptr : &*found;
}

std::string text_in(const json& from, const char* key) {
  const auto* found = member_of(from, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

/// Since 1970. PyTorch writes it as text or as a number.
std::optional<Duration> timestamp_in(const json& from) {
  constexpr std::int64_t kLatest = std::int64_t{1} << 40U;
  const auto* found = member_of(from, "timestamp");
  if (found == nullptr) return std::nullopt;
  std::optional<std::int64_t> seconds;
  if (found->is_string()) seconds = text::whole_number<std::int64_t>(found->get<std::string>());
  if (found->is_number_integer()) seconds = found->get<std::int64_t>();
  if (!seconds || *seconds <= 0 || *seconds > kLatest) return std::nullopt;
  return std::chrono::seconds(*seconds);
}

std::string shortened(std::string message) {
  if (message.size() <= kLongestMessage) return message;
  message.resize(kLongestMessage);
  // A character may have been cut in two.
  if (const auto cut = text::first_invalid_utf8(message); cut && *cut + 4 > kLongestMessage)
    message.resize(*cut);
  return message;
}

void set_time(RecordedError& error, std::optional<Duration> timestamp, Duration written) {
  error.at = written;
  if (!timestamp || (written + kTick >= *timestamp && written < *timestamp + kToWrite)) return;
  error.at = *timestamp;
  error.within = std::chrono::seconds(1);
}

}  // namespace

std::optional<RecordedError> parse_error(std::string_view text, Duration written, const Masker& masker) {
  static const re2::RE2 kTyped(R"((?s)([A-Za-z_][\w.]{0,200}): ?(.*))", re2::RE2::Latin1);
  const auto read = parse_json(text);
  const auto* recorded = member_of(read, "message");
  if (recorded == nullptr) return std::nullopt;
  const bool is_plain = recorded->is_string();
  const auto whole = is_plain ? recorded->get<std::string>() : text_in(*recorded, "message");
  if (whole.empty()) return std::nullopt;
  const auto* more = is_plain ? &read : member_of(*recorded, "extraInfo");
  RecordedError error;
  const auto message = masker.mask(whole);
  if (!re2::RE2::FullMatch(message, kTyped, &error.type, &error.message)) error.message = message;
  error.message = shortened(std::move(error.message));
  error.traceback = more == nullptr ? "" : masker.mask(text_in(*more, "py_callstack"));
  if (error.traceback.empty()) error.traceback = message;
  if (!error.traceback.ends_with('\n')) error.traceback += '\n';
  set_time(error, more == nullptr ? std::nullopt : timestamp_in(*more), written);
  return error;
}

std::optional<RecordedError> read_error(const std::filesystem::path& file, const Masker& masker) {
  const auto fd = sys::open_regular_file(file, sys::Links::refused);
  struct stat info {};
  if (!fd || ::fstat(fd->get(), &info) != 0 || info.st_size <= 0 ||
      static_cast<std::uint64_t>(info.st_size) > kLargestErrorFile)
    return std::nullopt;
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  text.resize(sys::read_up_to(fd->get(), text));
  const auto written =
      std::chrono::seconds(info.st_mtim.tv_sec) + std::chrono::nanoseconds(info.st_mtim.tv_nsec);
  return parse_error(text, std::chrono::duration_cast<Duration>(written), masker);
}

}  // namespace nlaunch::supervise
