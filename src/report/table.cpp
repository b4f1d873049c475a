#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nlaunch::report {

std::string Paint::wrap(std::string_view code, std::string_view text) const {
  return colours_ && !text.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\x1b') {
      const auto end = text.find('m', at);
      at = end == std::string_view::npos ? text.size() : end + 1;
      continue;
    }
    const auto end = std::min(text.find('\x1b', at), text.size());
    width += text::characters(text.substr(at, end - at)).size();
    at = end;
  }
  return width;
}

std::string fitted(const std::string& text, std::size_t width) {
  const auto characters = text::characters(text);
  if (characters.size() <= width) return text;
  if (width == 0) return "";
  const auto join = [&](std::size_t from, std::size_t to) {
    std::string out;
    for (std::size_t i = from; i < to; ++i) out += characters[i];
    return out;
  };
  const bool is_path = text.starts_with('/') && text.find(' ') == std::string::npos;
  if (!is_path) {
    auto out = join(0, width - 1);
    const bool between_words = characters[width - 1] == " ";
    const auto blank = out.rfind(' ');
    if (!between_words && blank != std::string::npos && blank >= out.size() / 2) out.resize(blank);
    return out + "…";
  }
  const auto behind = (width - 1) * 2 / 3;  // the name of a file tells more than where its tree begins
  return join(0, width - 1 - behind) + "…" + join(characters.size() - behind, characters.size());
}

namespace {

/// A cell without its colours, which `painted` gives back to a part of it.
struct Cell {
  std::string before, text, after;

  explicit Cell(const std::string& cell) : text(cell) {
    if (!cell.starts_with('\x1b')) return;
    const auto begin = cell.find('m');
    const auto end = cell.rfind('\x1b');
    if (begin == std::string::npos || end <= begin) return;
    before = cell.substr(0, begin + 1);
    text = cell.substr(begin + 1, end - begin - 1);
    after = cell.substr(end);
  }
  [[nodiscard]] std::string painted(const std::string& part) const { return before + part + after; }
};

/// Lines of at most `width` characters, broken between words; a word that is longer is shortened.
std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  if (display_width(text) <= width) return {text};
  std::vector<std::string> lines(1);
  for (const auto& word : text::split(text, ' ')) {
    auto& line = lines.back();
    const auto room = line.empty() ? 0 : display_width(line) + 1;
    if (!line.empty() && room + display_width(word) <= width)
      line += " " + word;
    else if (line.empty())
      line = fitted(word, width);
    else
      lines.push_back(fitted(word, width));
  }
  return lines;
}

constexpr std::size_t kGap = 2;

std::size_t total_of(const std::vector<std::size_t>& widths) {
  std::size_t sum = 0;
  for (const auto width : widths) sum += width > 0 ? width + kGap : 0;
  return sum > 0 ? sum - kGap : 0;
}

/// How wide the columns are in so much room: the widest ones give way, down to their heads and a readable
/// least.
std::vector<std::size_t> narrowed(std::vector<std::size_t> widths, const std::vector<std::size_t>& least,
                                  std::size_t room) {
  while (total_of(widths) > room) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (widths[i] > least[i] && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
    if (widest == widths.size()) break;
    --widths[widest];
  }
  return widths;
}

}  // namespace

std::string wrapped_text(std::string_view text, std::size_t width) {
  constexpr std::size_t kIndent = 2;
  if (width == 0) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const auto end = text.find('\n');
    auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const auto first = std::min(line.find_first_not_of(' '), line.size());
    const auto indent = "\n" + std::string(first + kIndent, ' ');
    out += line.substr(0, first);
    line.remove_prefix(first);
    auto used = first;
    if (first + display_width(line) <= width) {
      out += line;
      line = {};
    }
    for (bool begins = true; !line.empty(); begins = false) {
      const auto word = line.substr(0, line.find(' ', 1));  // with the blank before it
      const auto room = display_width(word);
      if (begins || used + room <= width) {
        out += word;
        used += room;
      } else {
        const auto bare = word.substr(std::min(word.find_first_not_of(' '), word.size()));
        out += indent;
        out += bare;
        used = first + kIndent + display_width(bare);
      }
      line.remove_prefix(word.size());
    }
    if (end != std::string_view::npos) out += '\n';
  }
  return out;
}

/// In so much room; 0: any. A width of 0: the column is left out.
std::vector<std::size_t> Table::widths(std::size_t room) const {
  constexpr std::size_t kLeast = 12;
  std::vector<std::size_t> out(head_.size(), 0);
  std::vector<std::size_t> least(head_.size(), 0);
  for (std::size_t column = 0; column < head_.size(); ++column) {
    for (const auto& row : rows_)
      if (column < row.size()) out[column] = std::max(out[column], display_width(row[column]));
    if (out[column] > 0) out[column] = std::max(out[column], display_width(head_[column]));
    least[column] = std::max(kLeast, display_width(head_[column]));
  }
  if (room == 0) return out;
  // A last column that is shortened needs no more than the least.
  const auto needed = [&] {
    auto widths = out;
    if (shortens_last_) widths.back() = std::min(widths.back(), least.back());
    return total_of(widths);
  };
  for (const auto column : optional_)
    if (needed() > room) out[column] = 0;
  if (shortens_last_ && total_of(out) > room)
    out.back() =
        std::max(std::min(out.back(), least.back()), out.back() - std::min(out.back(), total_of(out) - room));
  return narrowed(std::move(out), least, room);
}

std::string Table::lines_of(const std::vector<std::string>& cells,
                            const std::vector<std::size_t>& widths) const {
  std::vector<std::vector<std::string>> columns;
  std::size_t height = 1;
  for (std::size_t column = 0; column < std::min(cells.size(), widths.size()); ++column) {
    const Cell cell(cells[column]);
    auto& parts = columns.emplace_back();
    if (display_width(cells[column]) <= widths[column]) {
      parts.push_back(cells[column]);
    } else if (shortens_last_ && column + 1 == widths.size()) {
      parts.push_back(cell.painted(fitted(cell.text, widths[column])));
    } else {
      for (const auto& part : wrapped(cell.text, widths[column])) parts.push_back(cell.painted(part));
    }
    height = std::max(height, parts.size());
  }
  std::string out;
  for (std::size_t line = 0; line < height; ++line) {
    std::string text;
    std::string gap;
    for (std::size_t column = 0; column < columns.size(); ++column) {
      if (widths[column] == 0) continue;
      const auto part = line < columns[column].size() ? columns[column][line] : std::string();
      text += gap + part;
      gap = std::string(widths[column] - std::min(widths[column], display_width(part)) + kGap, ' ');
    }
    const auto end = text.find_last_not_of(' ');
    out += text.substr(0, end == std::string::npos ? 0 : end + 1) + "\n";
  }
  return out;
}

std::string Table::str(const Paint& paint) const {
  const auto columns = widths(paint.width());
  std::vector<std::string> head = head_;
  for (auto& cell : head) cell = paint.dim(cell);
  const bool headless = std::ranges::all_of(head_, &std::string::empty);
  std::string out = headless ? "" : lines_of(head, columns);
  for (const auto& row : rows_) out += lines_of(row, columns);
  return out;
}

}  // namespace nlaunch::report
