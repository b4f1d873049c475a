#include "base/source.h"

#include <fmt/format.h>

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

}  // namespace nlaunch
