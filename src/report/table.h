#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace nlaunch::report {

/// Text with or without colours, and how much room there is for a line of it.
class Paint {
 public:
  /// `width` in characters; 0: any, as in a file or a pipe.
  explicit Paint(bool colours, std::size_t width = 0) : colours_(colours), width_(width) {}
  [[nodiscard]] bool on() const { return colours_; }
  [[nodiscard]] std::size_t width() const { return width_; }
  [[nodiscard]] std::string bold(std::string_view text) const { return wrap("1", text); }
  [[nodiscard]] std::string dim(std::string_view text) const { return wrap("2", text); }
  [[nodiscard]] std::string red(std::string_view text) const { return wrap("1;31", text); }
  [[nodiscard]] std::string green(std::string_view text) const { return wrap("32", text); }
  [[nodiscard]] std::string yellow(std::string_view text) const { return wrap("33", text); }

 private:
  [[nodiscard]] std::string wrap(std::string_view code, std::string_view text) const;
  bool colours_;
  std::size_t width_;
};

/// Rows of text, each column as wide as its widest cell; the last one is not padded. Cells may be coloured.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : head_(std::move(head)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// Columns that are left out, the first one first, where the table is wider than the terminal.
  void leave_out(std::vector<std::size_t> columns) { optional_ = std::move(columns); }
  /// The last column is shortened to one line, not wrapped.
  void shorten_last() { shortens_last_ = true; }
  /// Lines that end in a newline; a column without any text is omitted. Where the table is still wider than
  /// the terminal, its widest columns are wrapped between words, and paths are shortened in the middle.
  [[nodiscard]] std::string str(const Paint& paint) const;

 private:
  [[nodiscard]] std::vector<std::size_t> widths(std::size_t room) const;
  [[nodiscard]] std::string lines_of(const std::vector<std::string>& cells,
                                     const std::vector<std::size_t>& widths) const;

  std::vector<std::size_t> optional_;
  bool shortens_last_ = false;
  std::vector<std::string> head_;
  std::vector<std::vector<std::string>> rows_;
};

/// A text in at most `width` characters, with … for what is left out: at the end, or in the middle of a path.
std::string fitted(const std::string& text, std::size_t width);

/// Lines of a text that are wider than `width` are broken between words, and go on below their first word,
/// two characters further to the right. Words are not cut. 0: any width.
std::string wrapped_text(std::string_view text, std::size_t width);

/// Width on a terminal: the number of characters, without colour sequences.
std::size_t display_width(std::string_view text);

}  // namespace nlaunch::report
