#include "lint/shell/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace nlaunch::lint {
namespace {

constexpr std::size_t kLongestUnknown = 4096;  // characters of an expansion that are kept

constexpr std::size_t kDeepest = 64;  // levels of substitutions and parentheses
// Looking for what closes a parenthesis that nothing closes goes to the end each time.
constexpr std::size_t kMostWasted = 16U << 20U;  // characters
constexpr std::string_view kOpenQuote =
    "a quote that nothing closes; the lines behind it are read as if it ended with its own";

}  // namespace

void ShellReader::cannot(SourceSpan span, std::string message) {
  const bool said =
      std::ranges::any_of(script_.unread, [&](const Unread& one) { return one.message == message; });
  if (!said) script_.unread.push_back({std::move(span), std::move(message)});
}

void ShellReader::literal(Word& word, std::string_view text) {
  if (word.parts.empty() || word.parts.back().kind != Part::Kind::text) word.parts.push_back({});
  word.parts.back().text += text;
}

std::optional<std::size_t> ShellReader::closing(char quote, bool escapes) const {
  for (auto i = at_; i < end_; ++i) {
    if (escapes && text_[i] == '\\') {
      ++i;
    } else if (text_[i] == quote) {
      return i;
    } else if (open_quotes_ && text_[i] == '\n') {
      return std::nullopt;  // one quote was open to the end already: from there on they end with the line
    }
  }
  return std::nullopt;
}

void ShellReader::leave_quote_open(Word& word, const SourceSpan& span) {
  cannot(span, std::string(kOpenQuote));
  open_quotes_ = true;
  while (at_ < end_ && peek() != '\n') {
    const char c = next();
    literal(word, std::string_view(&c, 1));
  }
}

void ShellReader::read_single_quotes(Word& word, bool escapes) {
  const auto span = here();
  next();
  const auto last = closing('\'', escapes);
  if (!last) return leave_quote_open(word, span);
  word.quoted = true;
  literal(word, "");
  while (at_ < *last) {
    const char c = next();
    if (escapes && c == '\\' && at_ < *last) {
      const char escaped = next();
      const char meant = escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped;
      literal(word, std::string_view(&meant, 1));
    } else {
      literal(word, std::string_view(&c, 1));
    }
  }
  next();
}

void ShellReader::read_double_quotes(Word& word) {
  const auto span = here();
  const auto before = std::tuple(word.parts, script_.commands.size(), script_.comments.size());
  next();
  word.quoted = true;
  literal(word, "");
  while (at_ < end_) {
    const char c = peek();
    if (c == '"') {
      next();
      return;
    }
    if (open_quotes_ && c == '\n') break;
    if (c == '\\') {
      next();
      if (at_ >= end_) break;
      const char escaped = next();
      if (escaped == '\n') continue;
      if (escaped != '$' && escaped != '`' && escaped != '"' && escaped != '\\') literal(word, "\\");
      literal(word, std::string_view(&escaped, 1));
    } else {
      read_one(word);
    }
  }
  cannot(span, std::string(kOpenQuote));
  open_quotes_ = true;
  if (line_ == span.line) return;
  // Back to its line: what was read behind it is read again.
  auto& [parts, commands, comments] = before;
  word.parts = parts;
  unknown(word, at_);
  script_.commands.erase(script_.commands.begin() + static_cast<std::ptrdiff_t>(commands),
                         script_.commands.end());
  script_.comments.erase(script_.comments.begin() + static_cast<std::ptrdiff_t>(comments),
                         script_.comments.end());
  while (at_ > 0 && line_ > span.line) {
    --at_;
    if (text_[at_] == '\n') --line_;
  }
  column_ = 1;
}

void ShellReader::read_inner(std::size_t end) {
  if (depth_ >= kDeepest) {
    cannot(here(), fmt::format("more than {} substitutions in each other", kDeepest));
  } else {
    ShellReader inner(script_, uses_, at_, end, depth_ + 1);
    inner.place(line_, column_);
    inner.inherit(sure(), conditional());
    inner.open_quotes_ = open_quotes_;
    inner.read();
    open_quotes_ = inner.open_quotes_;
  }
  skip(end - at_);
}

std::optional<std::size_t> ShellReader::matching(std::size_t from, char open, char shut) {
  if (wasted_ > kMostWasted) return std::nullopt;
  const auto found = find_matching(from, open, shut);
  if (!found) wasted_ += end_ - from;
  return found;
}

std::optional<std::size_t> ShellReader::find_matching(std::size_t from, char open, char shut) const {
  std::size_t level = 1;
  for (auto i = from; i < end_; ++i) {
    const char c = text_[i];
    if (c == '\\') {
      ++i;
    } else if (c == '\'' || c == '"') {
      const auto quote = text_.find(c, i + 1);
      if (quote == std::string::npos || quote >= end_) return std::nullopt;
      if (c == '"') {  // escaped quotes, and substitutions with quotes of their own, are rare: skip escapes
        auto j = i + 1;
        while (j < end_ && text_[j] != '"') j += text_[j] == '\\' ? 2 : 1;
        i = std::min(j, end_ - 1);
      } else {
        i = quote;
      }
    } else if (c == '#' && open == '(' && i > from && (is_blank(text_[i - 1]) || text_[i - 1] == '\n')) {
      while (i + 1 < end_ && text_[i + 1] != '\n') ++i;
    } else if (c == open) {
      ++level;
    } else if (c == shut && --level == 0) {
      return i;
    }
  }
  return std::nullopt;
}

void ShellReader::unknown(Word& word, std::size_t from) {
  const auto length = at_ - from;
  word.parts.push_back({Part::Kind::unknown, length > kLongestUnknown ? "" : text_.substr(from, length)});
}

void ShellReader::read_one(Word& word) {
  if (peek() == '$') return read_dollar(word);
  if (peek() == '`') return read_backticks(word);
  const char c = next();
  literal(word, std::string_view(&c, 1));
}

void ShellReader::read_backticks(Word& word) {
  const auto span = here();
  const auto from = at_;
  next();
  const auto last = closing('`', true);
  if (!last) {
    cannot(span, "a backtick that nothing closes");
    unknown(word, at_);
    return;
  }
  read_inner(*last);
  next();
  unknown(word, from);
}

void ShellReader::read_dollar(Word& word) {
  const auto span = here();
  const auto from = at_;
  next();
  const char c = peek();
  if (is_name_start(c)) {
    std::string name;
    while (is_name(peek())) name += next();
    uses_.insert(name);
    word.parts.push_back({Part::Kind::variable, std::move(name)});
  } else if (starts("((")) {
    const auto last = matching(at_ + 1, '(', ')');
    if (!last) return unclosed(word, span, "$((");
    skip(*last - at_ + 1);
    if (peek() == ')') next();
    unknown(word, from);
  } else if (c == '(') {
    const auto last = matching(at_ + 1, '(', ')');
    if (!last) return unclosed(word, span, "$(");
    next();
    read_inner(*last);
    next();
    unknown(word, from);
  } else if (c == '{') {
    const auto last = matching(at_ + 1, '{', '}');
    if (!last) return unclosed(word, span, "${");
    next();
    const auto inner = std::string_view(text_).substr(at_, *last - at_);
    skip(*last - at_ + 1);
    read_braces(word, inner, from);
  } else if (c == '\'') {
    read_single_quotes(word, true);
  } else if (c == '"') {
    read_double_quotes(word);
  } else if (c == '?' || c == '#' || c == '@' || c == '*' || c == '$' || c == '!' || c == '-' ||
             (c >= '0' && c <= '9')) {
    word.parts.push_back({Part::Kind::variable, std::string(1, next())});
  } else {
    literal(word, "$");
  }
}

void ShellReader::unclosed(Word& word, const SourceSpan& span, std::string_view what) {
  cannot(span, fmt::format("'{}' is not closed", what));
  unknown(word, at_);
}

void ShellReader::read_braces(Word& word, std::string_view inner, std::size_t from) {
  std::size_t length = 0;
  while (length < inner.size() && is_name(inner[length])) ++length;
  const auto name = inner.substr(0, length);
  if (name.empty() || !is_name_start(name[0])) {
    note_uses(inner);
    unknown(word, from);
    return;
  }
  uses_.insert(std::string(name));
  if (length == inner.size()) {
    word.parts.push_back({Part::Kind::variable, std::string(name)});
    return;
  }
  note_uses(inner.substr(length));
  unknown(word, from);
}

void ShellReader::note_uses(std::string_view text) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] != '$') continue;
    auto start = i + 1;
    if (text[start] == '{') ++start;
    auto stop = start;
    while (stop < text.size() && is_name(text[stop])) ++stop;
    if (stop > start && is_name_start(text[start])) uses_.emplace(text.substr(start, stop - start));
  }
}

Word ShellReader::read_word() {
  Word word;
  word.span = here();
  while (at_ < end_) {
    const char c = peek();
    if (is_blank(c) || is_operator(c)) break;
    if (c == '\\') {
      next();
      if (at_ >= end_) break;
      if (peek() == '\n' || (peek() == '\r' && peek(1) == '\n')) {
        skip(peek() == '\r' ? 2 : 1);
        continue;
      }
      const char escaped = next();
      literal(word, std::string_view(&escaped, 1));
      word.quoted = true;
    } else if (c == '\'') {
      read_single_quotes(word, false);
    } else if (c == '"') {
      read_double_quotes(word);
    } else {
      read_one(word);
    }
  }
  close(word.span);
  return word;
}

}  // namespace nlaunch::lint
