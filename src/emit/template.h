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

/// A name that a template may or must use.
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
    std::size_t length = 0;  ///< including all braces
    SourceSpan span;
  };

  /// An unknown, unclosed or missing required name is an error at its place; all are reported in one pass.
  static Result<Template> parse(std::shared_ptr<const SourceFile> file, std::span<const TemplateName> names);

  [[nodiscard]] const std::shared_ptr<const SourceFile>& file() const { return file_; }
  [[nodiscard]] const std::vector<Use>& uses() const { return uses_; }
  [[nodiscard]] bool uses(std::string_view name) const;

  /// The text with the values inserted unchanged: the caller quotes them for their language and has one for
  /// every name that is used.
  [[nodiscard]] std::string fill(const std::map<std::string, std::string>& values) const;

 private:
  explicit Template(std::shared_ptr<const SourceFile> file) : file_(std::move(file)) {}

  std::shared_ptr<const SourceFile> file_;
  std::vector<Use> uses_;
};

}  // namespace nlaunch::emit
