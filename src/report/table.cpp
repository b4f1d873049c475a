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

std::string Table::str(const Paint& paint) const {
  std::vector<std::size_t> widths(head_.size(), 0);
  for (std::size_t column = 0; column < head_.size(); ++column) {
    for (const auto& row : rows_) {
      if (column < row.size()) widths[column] = std::max(widths[column], display_width(row[column]));
    }
    if (widths[column] > 0) widths[column] = std::max(widths[column], display_width(head_[column]));
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out;
    std::string gap;
    for (std::size_t column = 0; column < std::min(cells.size(), widths.size()); ++column) {
      if (widths[column] == 0) continue;
      out += gap + cells[column];
      gap = std::string(widths[column] - display_width(cells[column]) + 2, ' ');
    }
    const auto end = out.find_last_not_of(' ');
    return out.substr(0, end == std::string::npos ? 0 : end + 1) + "\n";
  };
  std::vector<std::string> head = head_;
  for (auto& cell : head) cell = paint.dim(cell);
  const bool headless = std::ranges::all_of(head_, &std::string::empty);
  std::string out = headless ? "" : line(head);
  for (const auto& row : rows_) out += line(row);
  return out;
}

}  // namespace nlaunch::report
