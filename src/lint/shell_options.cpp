#include "lint/shell_options.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "lint/script_text.h"
#include "shell/traps.h"

namespace nlaunch::lint {

std::optional<bool> sets_option(const ScriptCommand& command, const ShellOption& option) {
  const auto& words = command.words;
  if (words[0] != "set") return std::nullopt;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto& word = words[i];
    const auto& before = words[i - 1];
    if (word == "--") break;
    const auto has_letters = [](const std::string& one) {
      return one.size() > 1 && (one[0] == '-' || one[0] == '+') && one[1] != '-';
    };
    // `set -eou pipefail`: the name follows the letters, wherever the o is.
    if (word == option.name && has_letters(before) && before.find('o') != std::string::npos)
      return before[0] == '-';
    if (has_letters(word) && option.letter != '\0' && word.find(option.letter) != std::string::npos)
      return word[0] == '-';
  }
  return std::nullopt;
}

bool shebang_sets(const Script& script, const ShellOption& option) {
  if (script.comments.empty() || script.comments.front().span.line != 1 || option.letter == '\0')
    return false;
  const auto& first = script.comments.front().text;
  return first.starts_with("#!") &&
         std::ranges::any_of(text::split(first, ' '), [&](const std::string& word) {
           return word.starts_with('-') && !word.starts_with("--") &&
                  word.find(option.letter) != std::string::npos;
         });
}

bool OptionByShell::after(const ScriptCommand& command) {
  auto& state = in(command.shell);
  state = sets_option(command, option_).value_or(state);
  return state;
}

bool& OptionByShell::in(int shell) {
  const auto [entry, is_new] = states_.emplace(shell, first_);
  const auto above = script_.shells_above.find(shell);
  if (is_new && above != script_.shells_above.end()) entry->second = in(above->second);
  return entry->second;
}

bool has_exit_trap(const Script& script) {
  return std::ranges::any_of(script.commands, [](const ScriptCommand& command) {
    return shell::sets_trap(command.words, "EXIT") || shell::sets_trap(command.words, "ERR");
  });
}

bool follows_test(const SourceSpan& from, const SourceSpan& to) {
  const SourceLines lines(from.file);
  // The lines of a text in quotes are not the script's own.
  const auto opens_quote = [](std::string_view line) {
    return (std::ranges::count(line, '"') - std::ranges::count(line, '\'')) % 2 != 0;
  };
  for (auto at = from; at.line < to.line; ++at.line) {
    const auto line = at.source_line();
    const auto end = opens_quote(line) ? lines.end_of_command(at.line) : at.line;
    if (end > at.line && end < to.line) {
      const auto last = lines.line(end);
      if (last.find("||") != std::string_view::npos || last.find("&&") != std::string_view::npos) return true;
      at.line = end;
    }
    const auto text = text::trim(line);
    if (text.starts_with("if ") || text.starts_with("while ") || text.starts_with("until ") ||
        text.starts_with("! ") || line.find("||") != std::string::npos ||
        line.find("&&") != std::string::npos)
      return true;
  }
  return false;
}

}  // namespace nlaunch::lint
