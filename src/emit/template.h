#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/source.h"

namespace nlaunch::emit {

/// A name that a template may use, or must.
struct TemplateName {
  std::string name;
  bool required = false;
};

/// A text with `{{NAME}}` where a value goes.
class Template {
 public:
  struct Use {
    std::string name;
    std::size_t offset = 0;  ///< of the first brace in the text, in bytes
    std::size_t length = 0;  ///< with all braces
    SourceSpan span;
  };

  /// A name that is unknown, not closed, or required and not there is an error at its place; all are found
  /// in one pass.
  static Result<Template> parse(std::shared_ptr<const SourceFile> file, std::span<const TemplateName> names);

  [[nodiscard]] const std::shared_ptr<const SourceFile>& file() const { return file_; }
  [[nodiscard]] const std::vector<Use>& uses() const { return uses_; }
  [[nodiscard]] bool uses(std::string_view name) const;

  /// The text with the values, which are put in as they are: the caller quotes them for their language. It
  /// has one for every name that is used.
  [[nodiscard]] std::string fill(const std::map<std::string, std::string>& values) const;

 private:
  explicit Template(std::shared_ptr<const SourceFile> file) : file_(std::move(file)) {}

  std::shared_ptr<const SourceFile> file_;
  std::vector<Use> uses_;
};

}  // namespace nlaunch::emit
