#include "config/places.h"

#include <algorithm>

#include "base/text.h"

namespace nlaunch::config {

Places::Places(std::shared_ptr<const SourceFile> file)
    : text_(file->text), file_(std::move(file)), lines_{0} {
  for (std::size_t at = 0; (at = text_.find('\n', at)) != std::string_view::npos;) lines_.push_back(++at);
}

Places::Places(const Text& value) : text_(value.value), value_(&value) {}

SourceSpan Places::at(std::size_t offset, std::size_t bytes) const {
  offset = std::min(offset, text_.size());
  bytes = std::min(bytes, text_.size() - offset);
  if (value_ != nullptr) return part_of(value_->span, value_->value, offset, bytes);
  const auto line = std::ranges::upper_bound(lines_, offset) - 1;
  if (offset < last_offset_ || *line > last_offset_) {
    last_offset_ = *line;
    last_column_ = 1;
  }
  last_column_ += text::characters(text_.substr(last_offset_, offset - last_offset_)).size();
  last_offset_ = offset;
  const auto length = text::characters(text_.substr(offset, bytes)).size();
  return {file_, static_cast<std::uint32_t>(line - lines_.begin() + 1),
          static_cast<std::uint32_t>(last_column_),
          static_cast<std::uint32_t>(std::max<std::size_t>(1, length))};
}

}  // namespace nlaunch::config
