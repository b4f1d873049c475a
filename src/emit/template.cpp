#include "emit/template.h"

#include <algorithm>

#include "base/text.h"

namespace nlaunch::emit {
namespace {

constexpr std::string_view kOpen = "{{";
constexpr std::string_view kClose = "}}";

std::string braced(std::string_view name) {
  return fmt::format("{}{}{}", kOpen, name, kClose);
}

std::vector<std::string> known(std::span<const TemplateName> names) {
  std::vector<std::string> out;
  for (const auto& entry : names) out.push_back(entry.name);
  return out;
}

/// Finds the names, line by line.
class Parser {
 public:
  Parser(const std::shared_ptr<const SourceFile>& file, std::span<const TemplateName> names)
      : file_(file), names_(known(names)) {}

  std::vector<Template::Use> run() {
    std::size_t start = 0;
    for (const auto& line : text::split(file_->text, '\n')) {
      ++number_;
      read_line(line, start);
      start += line.size() + 1;
    }
    return std::move(uses_);
  }
  [[nodiscard]] Diagnostics& diagnostics() { return diagnostics_; }

 private:
  void read_line(std::string_view line, std::size_t start) {
    for (auto open = line.find(kOpen); open != std::string_view::npos;) {
      const auto close = line.find(kClose, open + kOpen.size());
      if (close == std::string_view::npos) {
        diagnostics_
            .error("emit.unclosed-name", place(line, open, kOpen.size()), "'{{' is not closed on its line")
            .hint = "write a name as {{NAME}}; the names are " + text::join(names_, ", ");
        return;
      }
      const auto end = close + kClose.size();
      const std::string name(line.substr(open + kOpen.size(), close - open - kOpen.size()));
      uses_.push_back({name, start + open, end - open, place(line, open, end - open)});
      check(uses_.back());
      open = line.find(kOpen, end);
    }
  }

  void check(const Template::Use& use) {
    if (std::ranges::find(names_, use.name) != names_.end()) return;
    const auto near = text::nearest(text::trim(use.name), names_);
    auto& error = diagnostics_.error("emit.unknown-name", use.span,
                                     fmt::format("'{}' is not a name of this template", braced(use.name)));
    error.hint =
        near ? fmt::format("did you mean {}?", braced(*near)) : "the names are " + text::join(names_, ", ");
  }

  [[nodiscard]] SourceSpan place(std::string_view line, std::size_t offset, std::size_t length) const {
    const auto width = [](std::string_view part) {
      return static_cast<std::uint32_t>(text::characters(part).size());
    };
    return {file_, number_, width(line.substr(0, offset)) + 1, width(line.substr(offset, length))};
  }

  const std::shared_ptr<const SourceFile>& file_;
  std::vector<std::string> names_;
  std::uint32_t number_ = 0;
  std::vector<Template::Use> uses_;
  Diagnostics diagnostics_;
};

}  // namespace

Result<Template> Template::parse(std::shared_ptr<const SourceFile> file,
                                 std::span<const TemplateName> names) {
  Template made(std::move(file));
  Parser parser(made.file_, names);
  made.uses_ = parser.run();
  auto& diagnostics = parser.diagnostics();
  // A misspelled name may be the one that is missing.
  if (diagnostics.has_errors()) return std::unexpected(std::move(diagnostics));
  for (const auto& entry : names) {
    if (!entry.required || made.uses(entry.name)) continue;
    diagnostics.error("emit.missing-name", {made.file_, 0, 0, 1},
                      fmt::format("the template does not use {}, which is required", braced(entry.name)));
  }
  if (diagnostics.has_errors()) return std::unexpected(std::move(diagnostics));
  return made;
}

bool Template::uses(std::string_view name) const {
  return std::ranges::find(uses_, name, &Use::name) != uses_.end();
}

std::string Template::fill(const std::map<std::string, std::string>& values) const {
  std::string out;
  std::size_t at = 0;
  for (const auto& use : uses_) {
    out.append(file_->text, at, use.offset - at);
    out += values.at(use.name);
    at = use.offset + use.length;
  }
  return out.append(file_->text, at);
}

}  // namespace nlaunch::emit
