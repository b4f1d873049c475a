#pragma once
#include <cstddef>
#include <string>
#include <string_view>

/// Splits a byte stream into lines.
namespace nlaunch::supervise {

/// A longer line is passed on in pieces: a line that never ends must not be kept in memory.
inline constexpr std::size_t kLongestLine = 65536;

/// Splits a stream into lines. `then(line, continued)` gets each line without its newline; `continued` means
/// that it continues the previous piece.
class LineCutter {
 public:
  template <class Then>
  void feed(std::string_view bytes, Then&& then) {
    while (!bytes.empty()) {
      const auto end = bytes.find('\n');
      const auto part = bytes.substr(0, end);
      if (partial_.empty() && end != std::string_view::npos && part.size() <= kLongestLine) {
        hand_on(part, true, then);
      } else {
        keep(part, then);
        if (end != std::string_view::npos) hand_on_partial(true, then);
      }
      if (end == std::string_view::npos) return;
      bytes.remove_prefix(end + 1);
    }
  }

  /// Passes on the last line if it has no newline.
  template <class Then>
  void finish(Then&& then) {
    if (!partial_.empty()) hand_on_partial(true, then);
    continued_ = false;
  }

 private:
  template <class Then>
  void hand_on(std::string_view line, bool whole, Then&& then) {
    then(line, continued_);
    continued_ = !whole;
  }

  template <class Then>
  void hand_on_partial(bool whole, Then&& then) {
    hand_on(partial_, whole, then);
    partial_.clear();
  }

  template <class Then>
  void keep(std::string_view part, Then&& then) {
    while (partial_.size() + part.size() > kLongestLine) {
      const auto room = kLongestLine - partial_.size();
      partial_ += part.substr(0, room);
      part.remove_prefix(room);
      const auto cut = last_character_border(partial_);
      const std::string rest = partial_.substr(cut);
      partial_.resize(cut);
      hand_on_partial(false, then);
      partial_ = rest;
    }
    partial_ += part;
  }

  /// The end of `text`, or the start of the UTF-8 character that is cut off there.
  static std::size_t last_character_border(std::string_view text);

  std::string partial_;
  bool continued_ = false;
};

/// Appends `line` in printable form: UTF-8 and tabs stay; anything that could act on a terminal becomes \xNN.
/// Of a line that was overwritten repeatedly (a progress bar), only the last state is shown.
void append_shown(std::string& out, std::string_view line);

/// The lines of a stream in printable form, for somebody who follows it. What a line that is overwritten
/// again and again (a progress bar) has shown so far is a line as well.
class FollowedLines {
 public:
  /// Appends the lines to `out` and returns their number.
  std::size_t feed(std::string_view bytes, std::string& out);
  std::size_t finish(std::string& out);

 private:
  LineCutter cutter_;
  bool returned_ = false;  ///< the last byte was a carriage return, which may belong to a line end
};

/// Formats the lines of a process for the terminal, with a prefix that names the process.
class LinePrinter {
 public:
  enum class Style { plain, coloured };
  /// `name` is padded to `width` characters; `hue` selects the colour.
  LinePrinter(std::string_view name, std::size_t width, std::size_t hue, Style style);

  /// Appends the complete lines to `out` and returns their number. Pieces that continue a line have ┆ instead
  /// of │.
  std::size_t feed(std::string_view bytes, std::string& out);
  std::size_t finish(std::string& out);

 private:
  void print(std::string_view line, bool continued, std::string& out) const;

  std::string prefix_;
  std::string continued_prefix_;
  LineCutter cutter_;
};

}  // namespace nlaunch::supervise
