#include "report/html.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"

namespace nlaunch::report {

std::string html(std::string_view text) {
  std::string out;
  for (const char c : text::printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string rate_text(double bytes_per_second) {
  constexpr std::pair<double, std::string_view> kUnits[] = {{1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}};
  for (const auto& [size, unit] : kUnits) {
    const auto value = bytes_per_second / size;
    if (value >= 100) return fmt::format("{:.0f} {}", value, unit);
    if (value >= 0.9995) return fmt::format("{:.3g} {}", value, unit);
  }
  return fmt::format("{:.3g} B/s", bytes_per_second);
}

std::string thousands(std::size_t number) {
  const auto digits = std::to_string(number);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

}  // namespace nlaunch::report
