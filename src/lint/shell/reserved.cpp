#include "lint/shell/reader.h"

#include <algorithm>

namespace nlaunch::lint {

void ShellReader::skip_pattern() {
  while (at_ < end_) {
    while (at_ < end_ && (is_blank(peek()) || peek() == '\n')) next();
    if (peek() != '#') break;
    read_comment();
  }
  if (starts("esac") && !is_name(peek(4))) return;
  if (peek() == '(') next();
  while (at_ < end_ && peek() != ')') {
    if (peek() == '\'' || peek() == '"') {
      Word ignored;
      peek() == '"' ? read_double_quotes(ignored) : read_single_quotes(ignored, false);
    } else {
      next();
    }
  }
  if (at_ < end_) next();
}

bool ShellReader::read_reserved(const Word& word) {
  const auto text = word.constant();
  if (!text || word.quoted) return false;
  const auto condition = [&](const char* kind) {
    open(kind, word.span, false, true);
    chained_ = false;
  };
  const auto shut = [&](std::initializer_list<std::string_view> kinds) {
    if (!open_.empty() && std::ranges::find(kinds, open_.back().word) != kinds.end()) open_.pop_back();
  };
  if (*text == "if" || *text == "while" || *text == "until") {
    condition(*text == "if" ? "if" : "do");
    guard_ = true;
  } else if (*text == "elif") {
    guard_ = true;
  } else if (*text == "then" || *text == "else" || *text == "do" || *text == "time") {
    // what follows is a command
  } else if (*text == "!") {
    guard_ = true;
  } else if (*text == "fi") {
    shut({"if"});
  } else if (*text == "done") {
    shut({"do"});
  } else if (*text == "esac") {
    shut({"case"});
  } else if (*text == "{") {
    open("{", word.span, !function_);
    function_ = false;
  } else if (*text == "}") {
    shut({"{"});
  } else if (*text == "for" || *text == "select") {
    condition("do");
    skip_line_head();
  } else if (*text == "case") {
    condition("case");
    skip_case_head();
  } else if (*text == "function") {
    skip_blanks();
    read_word();
    skip_blanks();
    if (starts("()")) skip(2);
    function_ = true;
  } else if (*text == "[[") {
    skip_test();
  } else {
    return false;
  }
  return true;
}

void ShellReader::skip_line_head() {
  skip_blanks();
  if (starts("((")) return;
  while (at_ < end_ && peek() != ';' && peek() != '\n') {
    if (is_blank(peek()) || is_operator(peek())) {
      next();
    } else {
      read_word();
    }
  }
}

void ShellReader::skip_case_head() {
  while (at_ < end_ && peek() != '\n') {
    if (is_blank(peek()) || is_operator(peek())) {
      next();
      continue;
    }
    if (read_word().constant() == "in") break;
  }
  skip_pattern();
}

void ShellReader::skip_test() {
  guard_ = true;
  command();
  while (at_ < end_ && peek() != '\n') {
    if (starts("]]")) {
      skip(2);
      return;
    }
    if (is_blank(peek()) || is_operator(peek())) {
      next();
    } else if (peek() == '\\' && peek(1) == '\n') {
      skip(2);
    } else {
      read_word();
    }
  }
}

}  // namespace nlaunch::lint
