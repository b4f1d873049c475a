#include "emit/slurm_template.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "base/text.h"

namespace nlaunch::emit {
namespace {

/// In the order of templates/README.md.
const std::array kNames{TemplateName{"DIRECTIVES", true},
                        TemplateName{"COMMAND", true},
                        TemplateName{"NAME"},
                        TemplateName{"SITE"},
                        TemplateName{"EXPERIMENT"},
                        TemplateName{"PLAN"},
                        TemplateName{"NLAUNCH"}};

constexpr std::string_view kDirectives = "{{DIRECTIVES}}";
constexpr std::string_view kLastLine = "exec {{COMMAND}}";

struct Line {
  std::uint32_t number = 0;
  std::string text;
  [[nodiscard]] bool is_command() const {
    const auto content = text::trim(text);
    return !content.empty() && content.front() != '#' && content != kDirectives;
  }
};

/// What sbatch takes as directives, its own and those of other schedulers.
bool is_directive(std::string_view line) {
  constexpr std::array<std::string_view, 4> kWords{"#SBATCH", "#SLURM", "#PBS", "#BSUB"};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return line.starts_with(word); });
}

class Checker {
 public:
  explicit Checker(const Template& checked) : template_(checked) {
    for (const auto& text : text::split(checked.file()->text, '\n')) {
      lines_.push_back({static_cast<std::uint32_t>(lines_.size()) + 1, text});
    }
    const auto first = std::ranges::find_if(lines_, &Line::is_command);
    if (first != lines_.end()) first_command_ = first->number;
    for (const auto& line : lines_) {
      if (line.is_command()) last_command_ = line.number;
    }
  }

  Diagnostics run() && {
    check_line_ends();
    if (diagnostics_.has_errors()) return std::move(diagnostics_);
    check_first_line();
    for (const auto& line : lines_) check_line(line);
    for (const auto& use : template_.uses()) check_use(use);
    check_last_line();
    return std::move(diagnostics_);
  }

 private:
  void check_first_line() {
    if (lines_.front().text.starts_with("#!")) return;
    error("emit.first-line", whole(lines_.front()), "a batch script starts with #! and its interpreter",
          "#!/bin/bash");
  }

  void check_line_ends() {
    const auto line = std::ranges::find_if(lines_, [](const Line& any) { return any.text.contains('\r'); });
    if (line == lines_.end()) return;
    error("emit.line-ends", whole(*line), "the line has a DOS line ending (CRLF), which sbatch rejects",
          fmt::format("sed -i 's/\\r$//' {}", text::shell_quote(template_.file()->name)));
  }

  void check_line(const Line& line) {
    if (!is_directive(line.text)) return;
    error("emit.directive", whole(line), "directives are not allowed in a template",
          "put it under `scheduler: {directives: ...}` in the profile, where it is checked");
  }

  void check_use(const Template::Use& use) {
    const auto& line = lines_[use.span.line - 1];
    const bool in_head = use.span.line < first_command_;
    if (use.name == "COMMAND") {
      if (use.span.line == last_command_) return;
      error("emit.misplaced-name", use.span, "{{COMMAND}} is allowed only on the last line",
            std::string(kLastLine));
    } else if (use.name == "DIRECTIVES") {
      if (in_head && line.text == kDirectives) return;
      error("emit.misplaced-name", use.span,
            "{{DIRECTIVES}} must be alone on its line, above the first command",
            "sbatch ignores directives after a command");
    } else if (!in_head || !line.text.starts_with("# ")) {
      error("emit.misplaced-name", use.span,
            fmt::format("{{{{{}}}}} is allowed only in a comment above the first command", use.name),
            "start the line with '# '; in the script's own commands, use Slurm's variables instead: "
            "$SLURM_JOB_NAME");
    }
  }

  void check_last_line() {
    if (last_command_ == 0) return;
    const auto& last = lines_[last_command_ - 1];
    if (last.text == kLastLine) return;
    error("emit.last-line", whole(last), fmt::format("the last command must be '{}'", kLastLine),
          "Slurm sends its signals to this shell: it must exec nlaunch, or nlaunch never receives them");
  }

  void error(std::string id, SourceSpan span, std::string message, std::string hint) {
    diagnostics_.error(std::move(id), std::move(span), std::move(message)).hint = std::move(hint);
  }

  [[nodiscard]] SourceSpan whole(const Line& line) const {
    return {template_.file(), line.number, 1,
            static_cast<std::uint32_t>(std::max<std::size_t>(1, text::characters(line.text).size()))};
  }

  const Template& template_;
  std::vector<Line> lines_;
  std::uint32_t first_command_ = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t last_command_ = 0;  ///< 0: none
  Diagnostics diagnostics_;
};

}  // namespace

Result<Template> read_slurm_template(std::shared_ptr<const SourceFile> file) {
  auto read = Template::parse(std::move(file), kNames);
  if (!read) return read;
  auto diagnostics = Checker(*read).run();
  if (diagnostics.has_errors()) return std::unexpected(std::move(diagnostics));
  return read;
}

}  // namespace nlaunch::emit
