#include "diagnose/level.h"

#include <re2/re2.h>

namespace nlaunch::diagnose {
namespace {

using re2::RE2;

/// "WARNING 11-23 10:00:01 [core.py:1] ", "[2026-11-23 10:00:01,123] [INFO] ", "INFO:     ", "2026-11-23
/// 10:00:01 | ERROR    | "
const RE2& word() {
  static const RE2 regex(
      R"((?:^|[\s\[(|:\]-])(?:(DEBUG|TRACE|INFO|NOTICE)|(WARN|WARNING)|(ERROR|CRITICAL|FATAL))(?:[\s:|\])]|$))",
      RE2::Latin1);
  return regex;
}

/// "W1123 10:00:01.123 4711 file.py:1] " of glog, "[W1123 10:00:01 file.cpp:1] " of PyTorch, and "[2026-11-23
/// 10:00:01,123 W 1 1] " of Ray
const RE2& letter() {
  static const RE2 regex(
      R"((?:(?:^|[\s\[:])(?:(I)|(W)|([EF]))\d{4} \d\d:\d\d:\d\d|\d\d:\d\d:\d\d[.,]\d+ (?:(I)|(W)|([EFC])) \d+ \d+\]))",
      RE2::Latin1);
  return regex;
}

/// "/path/file.py:12: UserWarning: "
const RE2& python_warning() {
  static const RE2 regex(R"(:\d+: (?:[A-Z]\w*)?Warning: )", RE2::Latin1);
  return regex;
}

template <std::size_t Groups>
Level first_level(const RE2& regex, std::string_view text) {
  re2::StringPiece groups[1 + Groups];
  const re2::StringPiece whole(text.data(), text.size());
  if (!regex.Match(whole, 0, whole.size(), RE2::UNANCHORED, groups, 1 + Groups)) return Level::unsaid;
  for (std::size_t i = 1; i <= Groups; ++i) {
    if (groups[i].data() == nullptr || groups[i].empty()) continue;
    constexpr Level kLevels[] = {Level::info, Level::warning, Level::error};
    return kLevels[(i - 1) % std::size(kLevels)];
  }
  return Level::unsaid;
}

}  // namespace

Level level_of(std::string_view before) {
  if (before.find("NCCL ") != std::string_view::npos) return Level::unsaid;
  if (const auto level = first_level<3>(word(), before); level != Level::unsaid) return level;
  if (const auto level = first_level<6>(letter(), before); level != Level::unsaid) return level;
  return RE2::PartialMatch(re2::StringPiece(before.data(), before.size()), python_warning()) ? Level::warning
                                                                                             : Level::unsaid;
}

}  // namespace nlaunch::diagnose
