#include "base/source.h"

#include <fmt/format.h>

#include "base/text.h"

namespace nlaunch {

std::string SourceSpan::where() const {
  if (!file) return {};
  return line == 0 ? file->name : fmt::format("{}:{}:{}", file->name, line, column);
}

std::string SourceSpan::source_line() const {
  if (!file || line == 0) return {};
  std::size_t start = 0;
  for (std::uint32_t at = 1; at < line; ++at) {
    start = file->text.find('\n', start);
    if (start == std::string::npos) return {};
    ++start;
  }
  auto text = file->text.substr(start, file->text.find('\n', start) - start);
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

SourceSpan part_of(const SourceSpan& span, const std::string& value, std::size_t offset, std::size_t length) {
  const auto line = span.source_line();
  const auto characters = text::characters(line);
  if (span.column == 0 || span.column > characters.size()) return span;
  const auto start = static_cast<std::size_t>(characters[span.column - 1].data() - line.data());
  const std::size_t quote = line[start] == '"' || line[start] == '\'' ? 1 : 0;
  if (line.compare(start + quote, value.size(), value) != 0) return span;
  SourceSpan part = span;
  const auto before = text::characters(std::string_view(value).substr(0, offset)).size();
  part.column += static_cast<std::uint32_t>(quote + before);
  part.length =
      static_cast<std::uint32_t>(text::characters(std::string_view(value).substr(offset, length)).size());
  return part;
}

}  // namespace nlaunch
