#include "import/inner_scripts.h"

#include <fmt/format.h>

#include "import/single_commands.h"

namespace nlaunch::import {
namespace {

/// "${NAME}": a script that the caller has.
bool is_variable_alone(const std::string& text) {
  return text.starts_with("${") && text.find('}') == text.size() - 1 && text.find(' ') == std::string::npos;
}

std::string words_of_eval(const Launch& launch, const Values& values) {
  std::string text;
  for (std::size_t i = 1; i < launch.words.size(); ++i) {
    const auto* word = launch.words[i].word;
    text += fmt::format("{} ", word == nullptr ? launch.words[i].known() : values.inner_script(*word));
  }
  return text;
}

}  // namespace

std::optional<InnerScript> inner_script(const Launch& launch, const lint::Command& command,
                                        std::uint32_t offset, const Values& values) {
  if (launch.program == "eval") return InnerScript{words_of_eval(launch, values), launch.line - 1};
  if (launch.program != "bash" && launch.program != "sh") return std::nullopt;
  for (std::size_t i = 1; i < launch.words.size(); ++i) {
    const auto text = launch.words[i].known();
    if (!text.starts_with('-') && !text.starts_with('+')) break;
    if (text.starts_with("--") || text.find('c') == std::string::npos) continue;
    if (i + 1 >= launch.words.size()) return std::nullopt;
    const auto& script = launch.words[i + 1];
    const auto line =
        script.word == nullptr || !script.word->span ? launch.line : script.word->span.line + offset;
    const auto written = script.word == nullptr ? script.known() : values.inner_script(*script.word);
    if (is_variable_alone(written)) return std::nullopt;
    return InnerScript{written, line - 1};
  }
  if (command.heredocs.empty()) return std::nullopt;
  const auto& heredoc = command.heredocs.front();
  return InnerScript{heredoc.text, heredoc.span.line - 1 + offset};
}

bool evaluates_output(const InnerScript& script) {
  return script.text.find("$(") != std::string::npos;
}

const lint::Command* last_program(const lint::Script& script) {
  const lint::Command* last = nullptr;
  for (const auto& command : script.commands) {
    const auto name = command.name();
    const bool other = command.nested || command.words.empty() || is_syntax(name) || is_left_out(name) ||
                       name == "export" || name == "source" || name == "cd";
    if (!other) last = &command;
  }
  return last;
}

}  // namespace nlaunch::import
