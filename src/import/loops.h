#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// The loops of the script, as far as its lines say what they do: how long one waits, how often one starts
/// something.
namespace nlaunch::import {

/// What a word stands for, a number or a variable; 0: no number.
using NumberIn = std::function<std::uint32_t(std::string)>;

/// The number that a text begins with; 0: none.
std::uint32_t number_at_start(std::string_view text);
/// The largest number that something is compared with on the line or shortly before it; 0: none.
std::uint32_t bound_before(const std::vector<std::string>& lines, std::uint32_t line,
                           const NumberIn& number_in);
/// The time that the loop around a line waits: "180s"; empty where it has no limit, or that cannot be read.
std::string patience_near(const std::vector<std::string>& lines, std::uint32_t line,
                          const NumberIn& number_in);

/// A word of a line where a command begins; its column from 1, in bytes.
struct FirstWord {
  std::string_view text;
  std::uint32_t column = 0;
};
/// Quotes are not looked at: a word in them is another one.
std::vector<FirstWord> first_words(std::string_view line);

/// A loop of the script.
struct Loop {
  std::uint32_t first = 0, last = 0;  ///< lines: its own, that of its `done`
  std::uint32_t last_column = 0;      ///< of its `done`, in bytes from 1
  std::string variable;               ///< of a `for`; of others empty
  std::string words;                  ///< as they are written; of `for ((...))` what the parentheses hold

  /// A command that begins there is in it.
  [[nodiscard]] bool holds(std::uint32_t line, std::uint32_t column) const {
    return first <= line && (line < last || (line == last && column < last_column));
  }
};
/// In the order in which they begin. `for` and `done` count where a command begins.
std::vector<Loop> loops_in(const std::vector<std::string>& lines);
/// The words of a loop, where they are constants, `{0..3}`, `$(seq 4)` or counted; else none.
std::vector<std::string> rounds_of(const Loop& loop, const NumberIn& number_in);
/// What a person has to know of a launch in a loop, whose first round is taken over. `together`: its rounds
/// run side by side. Empty where there is one round.
std::string loop_remark(const Loop& loop, const NumberIn& number_in, bool together);

/// The variables that `((i++))`, `((i += 2))` and `let i=3` of a line change.
std::vector<std::string> counted_in(const std::string& line);

}  // namespace nlaunch::import
