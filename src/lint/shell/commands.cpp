#include "lint/shell/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nlaunch::lint {
namespace {

/// Nobody asks whether it succeeds: what stands behind its && runs.
bool is_step(const Command& command) {
  constexpr std::array<std::string_view, 19> kSteps{
      "cd",    "export", "source", ".",    "module", "ml",   "conda", "mamba",  "mkdir",  "set",
      "unset", "ulimit", "pip",    "pip3", "uv",     "eval", "echo",  "python", "python3"};
  if (command.words.empty()) return !command.assignments.empty();  // [[ ]] has neither
  return std::ranges::find(kSteps, command.name()) != kSteps.end();
}

}  // namespace

void ShellReader::read() {
  while (at_ < end_) read_list_item();
  finish_command();
  read_heredocs();  // of a last line without an end
  for (const auto& one : open_) {
    if (one.word != "{" && one.word != "(") say_open(one);
  }
}

Command& ShellReader::command() {
  if (!current_) {
    current_.emplace();
    current_->span = here();
    current_->sure = sure();
    current_->conditional = conditional();
    current_->nested = nested_;
    current_->guarded = guard_;
  }
  return *current_;
}

void ShellReader::finish_command() {
  guard_ = false;
  if (!current_) return;
  if (!current_->words.empty() || !current_->assignments.empty()) {
    script_.commands.push_back(std::move(*current_));
  }
  current_.reset();
}

void ShellReader::read_list_item() {
  const char c = peek();
  if (is_blank(c)) {
    next();
  } else if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
    skip(peek(1) == '\r' ? 3 : 2);
  } else if (c == '\n') {
    if (current_) chained_ = tested_ = false;  // behind && the next line goes on
    finish_command();
    next();
    read_heredocs();
  } else if (c == '#') {
    read_comment();
  } else if (c == '<' || c == '>') {
    read_redirection();
  } else if (is_operator(c)) {
    read_operator();
  } else {
    read_command_word();
  }
}

void ShellReader::read_comment() {
  Comment comment;
  comment.span = here();
  while (at_ < end_ && peek() != '\n') comment.text += next();
  if (comment.text.ends_with('\r')) comment.text.pop_back();
  close(comment.span);
  script_.comments.push_back(std::move(comment));
}

void ShellReader::read_operator() {
  const char c = peek();
  if (c == '(') {
    if (starts("((") && !current_) {  // arithmetic
      const auto span = here();
      const auto last = matching(at_ + 1, '(', ')');
      if (!last) {
        cannot(span, "'((' is not closed");
        skip(2);
        return;
      }
      note_uses(std::string_view(text_).substr(at_, *last - at_));
      skip(*last - at_ + 1);
      return;
    }
    if (current_ && current_->words.size() == 1 && peek(1) == ')') {  // NAME() is a function
      skip(2);
      current_.reset();
      function_ = true;
      return;
    }
    finish_command();
    open("(", here(), true);
    next();
    return;
  }
  if (c == ')') {
    finish_command();
    if (!open_.empty() && open_.back().word == "(") open_.pop_back();
    next();
    return;
  }
  const bool and_or = starts("&&") || starts("||");
  if (and_or && current_) current_->guarded = true;
  if (c == '&' && !and_or && current_) current_->background = true;
  tested_ = and_or && (tested_ || starts("||") || !current_ || !is_step(*current_));
  finish_command();
  if (starts(";;")) {
    skip(2);
    if (peek() == '&') next();
    if (!open_.empty() && open_.back().word == "case") skip_pattern();
    return;
  }
  chained_ = and_or;
  skip(and_or || starts("|&") ? 2 : 1);
}

void ShellReader::read_redirection() {
  if (starts("<<<")) {
    skip(3);
    skip_blanks();
    command().words.push_back(read_word());
    return;
  }
  if (starts("<<") && !starts("<<=")) {
    PendingHeredoc heredoc;
    heredoc.span = here(2);
    skip(2);
    heredoc.tabs = peek() == '-';
    if (heredoc.tabs) next();
    skip_blanks();
    const auto word = read_word();
    heredoc.literal = word.quoted;
    heredoc.delimiter = word.constant().value_or("");
    if (!heredoc.delimiter.empty()) {
      command();
      heredocs_.push_back(std::move(heredoc));
      heredoc_owner_.push_back(script_.commands.size());
    }
    return;
  }
  if (starts("<(") || starts(">(")) {
    skip(2);
    const auto last = matching(at_, '(', ')');
    if (!last) return;
    command();
    read_inner(*last);
    next();
    return;
  }
  while (peek() == '<' || peek() == '>' || peek() == '&' || peek() == '|') next();
  skip_blanks();
  if (at_ < end_ && !is_operator(peek())) read_word();  // the file
}

void ShellReader::skip_blanks() {
  while (at_ < end_ && is_blank(peek())) next();
}

void ShellReader::read_heredocs() {
  auto pending = std::move(heredocs_);
  heredocs_.clear();
  const auto owners = std::move(heredoc_owner_);
  heredoc_owner_.clear();
  for (std::size_t i = 0; i < pending.size(); ++i) {
    auto& one = pending[i];
    Heredoc heredoc;
    heredoc.literal = one.literal;
    heredoc.span = here();
    bool closed = false;
    while (at_ < end_ && !closed) {
      std::string line;
      while (at_ < end_ && peek() != '\n') line += next();
      if (at_ < end_) next();
      if (line.ends_with('\r')) line.pop_back();
      auto bare = std::string_view(line);
      while (one.tabs && bare.starts_with('\t')) bare.remove_prefix(1);
      closed = bare == one.delimiter;
      if (!closed) heredoc.text += line + "\n";
    }
    if (!closed) {
      cannot(one.span, fmt::format("the text up to '{}' is never closed", one.delimiter));
    }
    if (!heredoc.literal) note_uses(heredoc.text);
    if (owners[i] < script_.commands.size()) {
      script_.commands[owners[i]].heredocs.push_back(std::move(heredoc));
    }
    if (!closed) return;  // what else begins on its line has nothing left to read
  }
}

std::size_t ShellReader::assignment_head(bool& array) const {
  std::size_t length = 0;
  if (!is_name_start(peek())) return 0;
  while (is_name(peek(length))) ++length;
  if (peek(length) == '[') {
    while (peek(length) != ']' && peek(length) != '\n' && peek(length) != '\0') ++length;
    if (peek(length) != ']') return 0;
    ++length;
    array = true;
  }
  if (peek(length) == '+') ++length;
  return peek(length) == '=' ? length + 1 : 0;
}

void ShellReader::read_command_word() {
  // Of a number right before a redirection: a file descriptor.
  std::size_t digits = 0;
  while (peek(digits) >= '0' && peek(digits) <= '9') ++digits;
  if (digits > 0 && (peek(digits) == '<' || peek(digits) == '>')) {
    skip(digits);
    return;
  }
  bool array = false;
  const bool first = !current_ || current_->words.empty();
  // `export A=b` takes assignments as words, with the same rules.
  const bool declares = !first && is_declaration(*current_);
  if (const auto head = first || declares ? assignment_head(array) : 0; head > 0) {
    read_assignment(head, array);
    return;
  }
  const auto span = here();
  auto word = read_word();
  if (first && (!current_ || current_->assignments.empty()) && read_reserved(word)) return;
  if (!current_) {
    command();
    current_->span = span;
  }
  current_->words.push_back(std::move(word));
}

bool ShellReader::is_declaration(const Command& command) {
  constexpr std::array<std::string_view, 5> kWords{"export", "declare", "typeset", "readonly", "local"};
  return std::ranges::find(kWords, command.name()) != kWords.end();
}

void ShellReader::read_assignment(std::size_t head, bool array) {
  Assignment assignment;
  auto& owner = command();
  assignment.span = here(static_cast<std::uint32_t>(head - 1));
  assignment.array = array;
  while (is_name(peek())) assignment.name += next();
  while (peek() != '=') assignment.append = next() == '+';
  next();
  if (peek() == '(') {
    assignment.array = true;
    next();
    read_array(assignment.elements);
  } else {
    assignment.value = read_word();
  }
  owner.assignments.push_back(std::move(assignment));
}

void ShellReader::read_array(std::vector<Word>& elements) {
  while (at_ < end_ && peek() != ')') {
    if (peek() == '#') {
      read_comment();
    } else if (is_blank(peek()) || is_operator(peek())) {
      next();
    } else {
      elements.push_back(read_word());
    }
  }
  if (at_ < end_) next();
}

}  // namespace nlaunch::lint
