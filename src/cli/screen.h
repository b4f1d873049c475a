#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "report/top.h"

namespace nlaunch::cli {

enum class Key { character, enter, escape, backspace, up, down, page_up, page_down, first, last, resized };
struct KeyPress {
  Key key = Key::character;
  char character = 0;  ///< ASCII; 0 for other keys
};

/// The whole terminal, until it is destroyed: then the terminal is as it was. ncurses is seen by screen.cpp
/// alone.
class TerminalScreen {
 public:
  /// Nothing where standard input or output is no terminal, or the terminal is one that cannot be drawn on
  /// (TERM=dumb, or unknown here).
  static std::unique_ptr<TerminalScreen> open();
  ~TerminalScreen();
  TerminalScreen(const TerminalScreen&) = delete;
  TerminalScreen& operator=(const TerminalScreen&) = delete;

  [[nodiscard]] report::Screen size() const;
  void draw(const std::vector<report::ScreenLine>& lines);
  /// Nothing when the time is over.
  std::optional<KeyPress> wait(std::chrono::milliseconds time);
  /// Runs a program on the terminal, as the shell would, and comes back when it has exited.
  void hand_over(const std::vector<std::string>& argv);

 private:
  explicit TerminalScreen(void* screen) : screen_(screen) {}
  void* screen_;  ///< SCREEN of ncurses
};

}  // namespace nlaunch::cli
