#include "diagnose/times.h"

#include <re2/re2.h>

#include <chrono>

namespace nlaunch::diagnose {

std::optional<double> time_of(std::string_view line) {
  static const re2::RE2 kDate(R"(\b(20\d\d)[-/](\d\d)[-/](\d\d)[T _](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?)",
                              re2::RE2::Latin1);
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  re2::StringPiece part;
  const re2::StringPiece text(line.data(), line.size());
  if (!re2::RE2::PartialMatch(text, kDate, &year, &month, &day, &hour, &minute, &second, &part))
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  constexpr double kMinute = 60;
  constexpr double kHour = 60 * kMinute;
  constexpr double kDay = 24 * kHour;
  double fraction = 0;
  double unit = 0.1;
  for (const char digit : part) {
    fraction += unit * (digit - '0');
    unit /= 10;
  }
  return static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count()) * kDay + hour * kHour +
         minute * kMinute + second + fraction;
}

}  // namespace nlaunch::diagnose
