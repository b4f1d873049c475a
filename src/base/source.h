#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace nlaunch {

/// A text that a value can come from: a file, or something typed on the command line.
struct SourceFile {
  std::string name;  ///< as the user wrote it: a path, or "--set"
  std::string text;
};

/// A place in a source text. Lines and columns count from 1; a column counts characters, not bytes.
/// A span without a file means "nowhere in particular".
struct SourceSpan {
  std::shared_ptr<const SourceFile> file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t length = 1;

  explicit operator bool() const { return file != nullptr; }
  /// "name:line:column", or "name" when the place within it is not known, or "".
  [[nodiscard]] std::string where() const;
  /// The whole source line, without its end; empty when there is none.
  [[nodiscard]] std::string source_line() const;
};

/// A value that knows where it was written.
template <class T>
struct Located {
  T value{};
  SourceSpan span;
  bool operator==(const Located& other) const { return value == other.value; }
};

/// The place of a part of `value`, which was read from `span`: `offset` and `length` are in bytes of the
/// value. Where the text in the file differs from the value (escapes, block scalars), the whole span.
SourceSpan part_of(const SourceSpan& span, const std::string& value, std::size_t offset, std::size_t length);

}  // namespace nlaunch
