#pragma once
#include <chrono>
#include <compare>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Values with a unit, as users write them. A parse error is a sentence for the user, without a location.
namespace nlaunch {

using Duration = std::chrono::milliseconds;

/// "90s", "10m", "1h30m", "2d", "250ms". A number without a unit is an error.
std::expected<Duration, std::string> parse_duration(std::string_view text);
/// The shortest exact form: "1h30m".
std::string format_duration(Duration duration);

/// A time limit in Slurm's format: "90", "10:30", "24:00:00", "1-12", "7-00:00:00", "UNLIMITED" (the largest
/// value). Empty if it is not one.
std::optional<std::chrono::seconds> parse_time_limit(std::string_view text);
/// The same, in hours, minutes and seconds: "24:00:00".
std::string format_time_limit(std::chrono::seconds limit);

/// Seconds, for short times: "9ms", "0.5ms", "50us", "2s".
std::expected<double, std::string> parse_short_time(std::string_view text);

/// A share: "95%" is 0.95.
std::expected<double, std::string> parse_share(std::string_view text);

/// A share of a whole, above 0 and at most 1: "0.45".
std::expected<double, std::string> parse_fraction(std::string_view text);

/// A factor: "2x" is 2.
std::expected<double, std::string> parse_factor(std::string_view text);

/// Bytes: "8B", "1MiB", "22118400B", "64kB" (1000), "1GiB" (1024³).
std::expected<std::uint64_t, std::string> parse_size(std::string_view text);
std::string format_size(std::uint64_t bytes);

/// Bytes per second: "150GB/s", "400Gb/s" (bits).
std::expected<double, std::string> parse_rate(std::string_view text);
/// In GB/s (10⁹ bytes), the usual unit for bus bandwidth.
std::string format_rate(double bytes_per_second);

/// A dotted version: 2.27.3. Missing parts are zero.
struct Version {
  std::vector<std::uint32_t> parts;
  std::strong_ordering operator<=>(const Version& other) const;
  bool operator==(const Version& other) const { return (*this <=> other) == std::strong_ordering::equal; }
  [[nodiscard]] std::string str() const;
};
std::expected<Version, std::string> parse_version(std::string_view text);
/// NCCL's code, X*10000 + Y*100 + Z since 2.9, X*1000 + Y*100 + Z before (nccl.h, NCCL_VERSION).
Version nccl_version(int code);

/// A comparison such as ">1", ">=2.27", "<2.30", "==2.28.9", "2" (equal), or several joined by a comma.
class VersionRange {
 public:
  static std::expected<VersionRange, std::string> parse(std::string_view text);
  [[nodiscard]] bool contains(const Version& version) const;
  [[nodiscard]] const std::string& str() const { return text_; }
  bool operator==(const VersionRange& other) const { return text_ == other.text_; }

 private:
  enum class Op { less, less_equal, equal, not_equal, greater_equal, greater };
  struct Bound {
    Op op;
    Version version;
  };
  std::vector<Bound> bounds_;
  std::string text_;
};

}  // namespace nlaunch
