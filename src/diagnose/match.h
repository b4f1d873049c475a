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

/// A line of what was read.
struct LogPosition {
  std::uint32_t file = 0;  ///< index of the stream in the order of reading
  std::uint64_t line = 0;  ///< from 1
  auto operator<=>(const LogPosition&) const = default;
};

/// A signature that was found. The views are valid during the call that it is given to.
struct Match {
  const Signature* signature = nullptr;
  LogPosition position;
  std::string_view line;      ///< the line, or of a long one what is near
  std::string_view before;    ///< the part of it before the match
  std::uint64_t offset = 0;   ///< of the line, in the stream
  std::string_view previous;  ///< the line before it, where that is still at hand
  Level level = Level::unsaid;
  /// Said as information or as a warning, or after an orderly end was asked for: no failure by itself.
  bool aside = false;
  std::vector<std::pair<std::string_view, std::string_view>> groups;  ///< the named ones that matched
  Origin origin;
  std::optional<double>
      time;  ///< seconds since 1970, where the line tells a date, in the clock that it tells

  /// The text of a group; empty where it did not match.
  [[nodiscard]] std::string_view operator[](std::string_view group) const;
};

/// A line within a window that somebody asked for.
struct Line {
  LogPosition position;
  std::string_view text;
};

/// What the scanner tells of what it reads.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void on_match(const Match& match) = 0;
  /// Lines that follow `on_match`, as long as `lines_wanted()` says so.
  virtual void on_line(const Line& line) = 0;
  /// How many of the next lines are wanted; asked after each match.
  [[nodiscard]] virtual std::size_t lines_wanted() const = 0;
};

}  // namespace nlaunch::diagnose
