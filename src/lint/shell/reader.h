#pragma once
#include <set>

#include "lint/shell/shell.h"

/// How shell.cpp reads: one pass over the text, words in words.cpp, commands in commands.cpp, what
/// reserved words begin in reserved.cpp.
namespace nlaunch::lint {

inline bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
inline bool is_name(char c) {
  return is_name_start(c) || (c >= '0' && c <= '9');
}
inline bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}
inline bool is_operator(char c) {
  return c == ';' || c == '&' || c == '|' || c == '(' || c == ')' || c == '<' || c == '>' || c == '\n';
}

/// Reads a text from `begin` to `end`; substitutions are read by readers of their own over a part of it.
class ShellReader {
 public:
  ShellReader(Script& script, std::set<std::string>& uses, std::size_t begin, std::size_t end,
              std::size_t depth)
      : script_(script), uses_(uses), text_(script.file->text), at_(begin), end_(end), depth_(depth) {}
  void place(std::uint32_t line, std::uint32_t column) {
    line_ = line;
    column_ = column;
  }
  void inherit(bool sure, bool conditional) {
    base_sure_ = sure;
    base_conditional_ = conditional;
    nested_ = true;
  }
  void read();

 private:
  struct Open {
    std::string word;  ///< "if", "do", "case", "{", "("
    SourceSpan span;
    bool sure;
    bool conditional;
  };
  struct PendingHeredoc {
    std::string delimiter;
    bool literal;
    bool tabs;
    SourceSpan span;
  };

  // ------------------------------------------------------------------- characters
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < end_ ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] bool starts(std::string_view what) const {
    return std::string_view(text_).substr(at_, std::min(what.size(), end_ - at_)) == what;
  }
  char next() {
    const char c = text_[at_++];
    if (c == '\n') {
      ++line_;
      column_ = 1;
    } else if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) {
      ++column_;
    }
    return c;
  }
  void skip(std::size_t count) {
    for (; count > 0 && at_ < end_; --count) next();
  }
  [[nodiscard]] SourceSpan here(std::uint32_t length = 1) const {
    return {script_.file, line_, column_, length};
  }
  void close(SourceSpan& span) const {
    if (span.line == line_ && column_ > span.column) span.length = column_ - span.column;
  }
  void cannot(SourceSpan span, std::string message);
  void say_open(const Open& one) { cannot(one.span, "'" + one.word + "' is not closed"); }

  // ------------------------------------------------------------------- words
  void literal(Word& word, std::string_view text);
  /// An expansion, or a character as it stands.
  void read_one(Word& word);
  /// `from`: where it begins in the text.
  void unknown(Word& word, std::size_t from);
  /// The offset behind the next `quote` that closes, or nothing.
  [[nodiscard]] std::optional<std::size_t> closing(char quote, bool escapes) const;
  /// An open quote takes the rest of its line: what follows is read again.
  void leave_quote_open(Word& word, const SourceSpan& span);
  void read_single_quotes(Word& word, bool escapes);
  void read_double_quotes(Word& word);
  /// Commands within `begin` to `end`, where the reader stands at `begin`.
  void read_inner(std::size_t end);
  /// The offset of the parenthesis or brace that closes the one before `from`; quotes are respected.
  [[nodiscard]] std::optional<std::size_t> matching(std::size_t from, char open, char shut);
  [[nodiscard]] std::optional<std::size_t> find_matching(std::size_t from, char open, char shut) const;
  void read_backticks(Word& word);
  void read_dollar(Word& word);
  void unclosed(Word& word, const SourceSpan& span, std::string_view what);
  /// `${NAME}`, `${NAME:-default}` and the like.
  void read_braces(Word& word, std::string_view inner, std::size_t from);
  /// Names behind a dollar within a text that is not taken apart further.
  void note_uses(std::string_view text);
  Word read_word();

  // ------------------------------------------------------------------- commands
  [[nodiscard]] bool sure() const { return base_sure_ && !chained_ && (open_.empty() || open_.back().sure); }
  [[nodiscard]] bool conditional() const {
    return base_conditional_ || tested_ || (!open_.empty() && open_.back().conditional);
  }
  void open(std::string word, SourceSpan span, bool is_sure, bool condition = false) {
    open_.push_back({std::move(word), std::move(span), is_sure && sure(), condition || conditional()});
  }
  Command& command();
  void finish_command();
  void read_list_item();
  void read_comment();
  void read_operator();
  /// A case's pattern, with its parenthesis; or `esac`, which is left.
  void skip_pattern();
  void read_redirection();
  void skip_blanks();
  void read_heredocs();
  /// A reserved word at the start of a command, or nothing.
  bool read_reserved(const Word& word);
  /// `for NAME in WORDS`, up to the `;` or the end of the line.
  void skip_line_head();
  void skip_case_head();
  void skip_test();
  /// NAME=, NAME+= or NAME[…]= here: how many characters, or 0.
  [[nodiscard]] std::size_t assignment_head(bool& array) const;
  void read_command_word();
  static bool is_declaration(const Command& command);
  void read_assignment(std::size_t head, bool array);
  void read_array(std::vector<Word>& elements);

  Script& script_;
  std::set<std::string>& uses_;
  const std::string& text_;
  std::size_t at_;
  std::size_t end_;
  std::size_t depth_;
  std::uint32_t line_ = 1;
  std::uint32_t column_ = 1;
  bool base_sure_ = true;
  bool base_conditional_ = false;
  bool nested_ = false;
  bool chained_ = false;      ///< behind && or ||
  bool tested_ = false;       ///< behind ||, or behind && of what may well fail
  bool guard_ = false;        ///< the next command's failure is looked at
  bool function_ = false;     ///< the next { is a function's
  bool open_quotes_ = false;  ///< a quote was not closed: from there on they end with their line
  std::size_t wasted_ = 0;
  std::vector<Open> open_;
  std::optional<Command> current_;
  std::vector<PendingHeredoc> heredocs_;
  std::vector<std::size_t> heredoc_owner_;
};

}  // namespace nlaunch::lint
