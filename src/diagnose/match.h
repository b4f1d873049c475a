#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/level.h"
#include "diagnose/origin.h"
#include "diagnose/signature.h"

namespace nlaunch::diagnose {

/// A line of the input.
struct LogPosition {
  std::uint32_t file = 0;  ///< index of the stream in the order of reading
  std::uint64_t line = 0;  ///< from 1
  auto operator<=>(const LogPosition&) const = default;
};

/// A matched signature. The views are valid during the call that receives it.
struct Match {
  const Signature* signature = nullptr;
  LogPosition position;
  std::string_view line;      ///< the line, or for a long one the surroundings
  std::string_view before;    ///< the part of it before the match
  std::uint64_t offset = 0;   ///< of the line, in the stream
  std::string_view previous;  ///< the line before it, if it is still in memory
  Level level = Level::unsaid;
  /// Logged as information or as a warning, or after an orderly exit was requested: not a failure by itself.
  bool aside = false;
  std::vector<std::pair<std::string_view, std::string_view>> groups;  ///< the named ones that matched
  Origin origin;
  std::optional<double> time;  ///< seconds since 1970, if the line has a date, in that clock

  /// The text of a group; empty if it did not match.
  [[nodiscard]] std::string_view operator[](std::string_view group) const;
};

constexpr std::size_t kLinesAfter = 400;

/// A line after a match.
struct Line {
  LogPosition position;
  std::string_view text;
};

/// What the scanner reports about its input.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void on_match(const Match& match) = 0;
  /// Each of the kLinesAfter lines after the match of a signature that an analysis reads on from.
  virtual void on_line(const Line& line) = 0;
};

}  // namespace nlaunch::diagnose
