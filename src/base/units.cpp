#include "base/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/text.h"

namespace nlaunch {
namespace {

constexpr double kMostMilliseconds = 3.2e11;  // ten years: anything longer is a typo

/// Removes a number from the front of `text`.
std::optional<double> take_number(std::string_view& text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// Removes letters from the front of `text`.
std::string_view take_unit(std::string_view& text) {
  const auto end = text.find_first_of("0123456789. ");
  const auto unit = text.substr(0, end);
  text.remove_prefix(unit.size());
  return unit;
}

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array kDurations{Unit{"ms", 1}, Unit{"s", 1e3}, Unit{"m", 6e4}, Unit{"h", 3.6e6},
                                Unit{"d", 8.64e7}};
constexpr std::array kShortTimes{Unit{"us", 1e-6}, Unit{"µs", 1e-6}, Unit{"ms", 1e-3}, Unit{"s", 1}};
constexpr std::array kShares{Unit{"%", 0.01}};
constexpr std::array kFactors{Unit{"x", 1}};
constexpr std::array kSizes{Unit{"B", 1},        Unit{"kB", 1e3},     Unit{"MB", 1e6},
                            Unit{"GB", 1e9},     Unit{"TB", 1e12},    Unit{"KiB", 0x1p10},
                            Unit{"MiB", 0x1p20}, Unit{"GiB", 0x1p30}, Unit{"TiB", 0x1p40}};
constexpr std::array kRates{Unit{"B/s", 1},        Unit{"kB/s", 1e3},     Unit{"MB/s", 1e6},
                            Unit{"GB/s", 1e9},     Unit{"TB/s", 1e12},    Unit{"KiB/s", 0x1p10},
                            Unit{"MiB/s", 0x1p20}, Unit{"GiB/s", 0x1p30}, Unit{"Mb/s", 1.25e5},
                            Unit{"Gb/s", 1.25e8}};

template <std::size_t N>
std::optional<double> factor_of(const std::array<Unit, N>& units, std::string_view name) {
  const auto found = std::ranges::find(units, name, &Unit::name);
  return found == units.end() ? std::nullopt : std::optional(found->factor);
}

template <std::size_t N>
std::expected<double, std::string> parse_quantity(std::string_view text, const std::array<Unit, N>& units,
                                                  std::string_view what, std::string_view example) {
  const auto whole = text;
  const auto number = take_number(text);
  if (!number || *number < 0)
    return std::unexpected(fmt::format("'{}' is not a {}: write {}", whole, what, example));
  text = text::trim(text);
  if (text.empty()) return std::unexpected(fmt::format("'{}' has no unit: write {}", whole, example));
  const auto factor = factor_of(units, text);
  if (!factor)
    return std::unexpected(fmt::format("'{}' is not a unit of a {}: write {}", text, what, example));
  return *number * *factor;
}

}  // namespace

std::expected<Duration, std::string> parse_duration(std::string_view text) {
  const auto whole = text;
  double total = 0;
  do {
    const auto number = take_number(text);
    text = text::trim(text);
    const auto unit = take_unit(text);
    if (!number || *number < 0 || text.starts_with(' ')) {
      return std::unexpected(fmt::format("'{}' is not a duration: write 30s, 10m or 1h30m", whole));
    }
    if (unit.empty()) return std::unexpected(fmt::format("'{0}' has no unit: write {0}s or {0}m", whole));
    const auto factor = factor_of(kDurations, unit);
    if (!factor) {
      return std::unexpected(fmt::format("'{}' is not a unit of time: write ms, s, m, h or d", unit));
    }
    total += *number * *factor;
  } while (!text.empty());
  if (total > kMostMilliseconds) return std::unexpected(fmt::format("'{}' is longer than ten years", whole));
  return Duration(std::llround(total));
}

std::string format_duration(Duration duration) {
  auto rest = duration.count();
  if (rest == 0) return "0s";
  std::string out = rest < 0 ? "-" : "";
  rest = std::abs(rest);
  for (auto unit = kDurations.rbegin(); unit != kDurations.rend(); ++unit) {
    const auto size = static_cast<Duration::rep>(unit->factor);
    if (rest / size > 0) out += fmt::format("{}{}", rest / size, unit->name);
    rest %= size;
  }
  return out;
}

std::optional<std::chrono::seconds> parse_time_limit(std::string_view text) {
  using std::chrono::seconds;
  const auto word = text::lower(text);
  if (word == "unlimited" || word == "infinite") return seconds::max();
  std::uint64_t days = 0;
  const auto dash = text.find('-');
  const bool with_days = dash != std::string_view::npos;
  if (with_days) {
    const auto value = text::whole_number<std::uint32_t>(text.substr(0, dash));
    if (!value) return std::nullopt;
    days = *value;
    text.remove_prefix(dash + 1);
  }
  std::vector<std::uint64_t> parts;
  for (const auto& part : text::split(text, ':')) {
    const auto value = text::whole_number<std::uint32_t>(part);
    if (!value || parts.size() == 3) return std::nullopt;
    parts.push_back(*value);
  }
  // With days, or with three parts, the first is hours; else minutes.
  if (!with_days && parts.size() < 3) parts.insert(parts.begin(), 0);
  parts.resize(3);
  const seconds limit(((days * 24 + parts[0]) * 60 + parts[1]) * 60 + parts[2]);
  return limit == seconds(0) ? seconds::max() : limit;
}

std::string format_time_limit(std::chrono::seconds limit) {
  const std::chrono::hh_mm_ss parts(limit);
  return fmt::format("{:02}:{:02}:{:02}", parts.hours().count(), parts.minutes().count(),
                     parts.seconds().count());
}

std::expected<double, std::string> parse_short_time(std::string_view text) {
  return parse_quantity(text, kShortTimes, "time", "9ms or 50us");
}

std::expected<double, std::string> parse_share(std::string_view text) {
  return parse_quantity(text, kShares, "share", "95%");
}

std::expected<double, std::string> parse_fraction(std::string_view text) {
  auto rest = text;
  const auto number = take_number(rest);
  if (number && text::trim(rest).empty() && *number > 0 && *number <= 1) return *number;
  return std::unexpected(fmt::format("'{}' must be above 0 and at most 1: write 0.45", text));
}

std::expected<double, std::string> parse_factor(std::string_view text) {
  return parse_quantity(text, kFactors, "factor", "2x");
}

std::expected<std::uint64_t, std::string> parse_size(std::string_view text) {
  const auto bytes = parse_quantity(text, kSizes, "size", "64MiB or 1GB");
  if (!bytes) return std::unexpected(bytes.error());
  if (*bytes > 0x1p60) return std::unexpected(fmt::format("'{}' is more than any machine has", text));
  return static_cast<std::uint64_t>(std::llround(*bytes));
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::array<std::pair<std::uint64_t, std::string_view>, 4> kBinary{
      {{1ULL << 40U, "TiB"}, {1ULL << 30U, "GiB"}, {1ULL << 20U, "MiB"}, {1ULL << 10U, "KiB"}}};
  for (const auto& [size, name] : kBinary) {
    if (bytes >= size && bytes % size == 0) return fmt::format("{}{}", bytes / size, name);
  }
  return fmt::format("{}B", bytes);
}

std::expected<double, std::string> parse_rate(std::string_view text) {
  return parse_quantity(text, kRates, "rate", "150GB/s");
}

std::string format_rate(double bytes_per_second) {
  return fmt::format("{:.1f} GB/s", bytes_per_second / 1e9);
}

std::strong_ordering Version::operator<=>(const Version& other) const {
  const auto size = std::max(parts.size(), other.parts.size());
  for (std::size_t i = 0; i < size; ++i) {
    const auto mine = i < parts.size() ? parts[i] : 0U;
    const auto theirs = i < other.parts.size() ? other.parts[i] : 0U;
    if (mine != theirs) return mine <=> theirs;
  }
  return std::strong_ordering::equal;
}

std::string Version::str() const {
  return fmt::format("{}", fmt::join(parts, "."));
}

std::expected<Version, std::string> parse_version(std::string_view text) {
  Version version;
  for (const auto& part : text::split(text, '.')) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (part.empty() || error != std::errc() || end != part.data() + part.size()) {
      return std::unexpected(fmt::format("'{}' is not a version: write 2.27.3", text));
    }
    version.parts.push_back(number);
  }
  return version;
}

Version nccl_version(int code) {
  const auto value = static_cast<std::uint32_t>(std::max(code, 0));
  const std::uint32_t major_step = value < 10000 ? 1000 : 10000;
  return {{value / major_step, value % major_step / 100, value % 100}};
}

std::expected<VersionRange, std::string> VersionRange::parse(std::string_view text) {
  using enum Op;
  constexpr std::array<std::pair<std::string_view, Op>, 7> kOps{{{">=", greater_equal},
                                                                 {"<=", less_equal},
                                                                 {"==", equal},
                                                                 {"!=", not_equal},
                                                                 {">", greater},
                                                                 {"<", less},
                                                                 {"=", equal}}};
  VersionRange range;
  range.text_ = text;
  for (const auto& part : text::split(text, ',')) {
    auto rest = text::trim(part);
    auto op = equal;
    for (const auto& [sign, meaning] : kOps) {
      if (!rest.starts_with(sign)) continue;
      op = meaning;
      rest.remove_prefix(sign.size());
      break;
    }
    auto version = parse_version(text::trim(rest));
    if (!version)
      return std::unexpected(fmt::format("'{}' is not a range: write \">=2.27\" or \">1\"", text));
    range.bounds_.push_back({op, std::move(*version)});
  }
  return range;
}

bool VersionRange::contains(const Version& version) const {
  return std::ranges::all_of(bounds_, [&](const Bound& bound) {
    const auto order = version <=> bound.version;
    switch (bound.op) {
      case Op::less:
        return order < 0;
      case Op::less_equal:
        return order <= 0;
      case Op::equal:
        return order == 0;
      case Op::not_equal:
        return order != 0;
      case Op::greater_equal:
        return order >= 0;
      case Op::greater:
        return order > 0;
    }
    return false;
  });
}

}  // namespace nlaunch
