#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "config/experiment.h"

namespace nlaunch::config {

/// Converts byte offsets of a text to locations in its source.
class Places {
 public:
  explicit Places(std::shared_ptr<const SourceFile> file);
  /// `value` must outlive this.
  explicit Places(const Text& value);

  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] SourceSpan at(std::size_t offset, std::size_t bytes) const;

 private:
  std::string_view text_;
  const Text* value_ = nullptr;
  std::shared_ptr<const SourceFile> file_;
  std::vector<std::size_t> lines_;  ///< start of each line
  // Columns are counted from the last location queried: otherwise a line of a megabyte would take quadratic
  // time.
  mutable std::size_t last_offset_ = 0;
  mutable std::size_t last_column_ = 1;
};

}  // namespace nlaunch::config
