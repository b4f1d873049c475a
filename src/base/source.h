#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace nlaunch {

/// Where a value can come from: a file, or an option on the command line.
struct SourceFile {
  std::string name;  ///< as the user wrote it: a path, or "--set"
  std::string text;
};

/// A location in a source. Lines and columns count from 1; a column counts characters, not bytes. A span
/// without a file means "nowhere in particular".
struct SourceSpan {
  std::shared_ptr<const SourceFile> file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t length = 1;

  explicit operator bool() const { return file != nullptr; }
  /// "name:line:column", or "name" if the position is not known, or "".
  [[nodiscard]] std::string where() const;
  /// The whole source line, without its line end; empty if there is none.
  [[nodiscard]] std::string source_line() const;
};

/// A value with the location where it was written.
template <class T>
struct Located {
  T value{};
  SourceSpan span;
  bool operator==(const Located& other) const { return value == other.value; }
};

/// The location of a part of `value`, which was read from `span`: `offset` and `length` are in bytes of the
/// value. If the text in the file differs from the value (escapes, block scalars), the whole span.
SourceSpan part_of(const SourceSpan& span, const std::string& value, std::size_t offset, std::size_t length);

}  // namespace nlaunch
