#include "preflight/report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "preflight/observations.h"

namespace nlaunch::preflight {

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  return {values.front(), values[values.size() / 2], values.back()};
}

std::string place_of(const Figure& figure) {
  const auto pair = figure.to.empty() ? figure.from : figure.from + " → " + figure.to;
  return figure.host.empty() || figure.host == figure.from ? pair : figure.host + " " + pair;
}

std::string figure_text(double value, std::string_view unit) {
  if (unit == "B/s") return format_rate(value);
  if (unit == "FLOP/s") return fmt::format("{:.1f} TFLOP/s", value / 1e12);
  if (unit == "s") return fmt::format("{}{}", value < 0 ? "-" : "", time_text(std::abs(value)));
  return fmt::format("{:.4g} {}", value, unit);
}

}  // namespace nlaunch::preflight
