#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "import/values.h"

/// The half of Values that makes words of words, and scripts of them, as bash does.
namespace nlaunch::import {
namespace {

constexpr std::size_t kMostWords = 2000;                 // of a variable
constexpr std::size_t kLongestInnerScript = 16U << 10U;  // characters of a script in a word

/// Words of what an expansion without quotes comes to. Blanks within references are no ends.
class Splitter {
 public:
  explicit Splitter(const Value& whole) {
    for (const auto& piece : whole.pieces) piece.kind == Piece::Kind::text ? text(piece) : take(piece);
    end();
    for (auto& word : words_) word.doubts = whole.doubts;
  }
  std::vector<Value> words() { return std::move(words_); }

 private:
  void take(const Piece& piece) {
    word_.add(piece);
    begun_ = true;
  }
  void text(const Piece& piece) {
    const auto& text = piece.text;
    std::string part;
    int level = 0;
    const auto flush = [&] {
      if (!part.empty()) take({Piece::Kind::text, part, piece.pattern || is_glob(part)});
      part.clear();
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      const bool opens = c == '{' && i > 0 && text[i - 1] == '$';
      level += opens || (c == '{' && level > 0) ? 1 : c == '}' && level > 0 ? -1 : 0;
      if (level == 0 && (c == ' ' || c == '\t' || c == '\n')) {
        flush();
        end();
      } else {
        part += c;
      }
    }
    flush();
  }
  void end() {
    if (begun_ && words_.size() < kMostWords) words_.push_back(std::move(word_));
    word_ = {};
    begun_ = false;
  }

  Value word_;
  bool begun_ = false;
  std::vector<Value> words_;
};

/// The open single quote of a text, where it has one: what stands behind it is not expanded.
bool in_single_quotes(std::string_view text) {
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && quote != '\'')
      ++i;
    else if (quote != '\0' && text[i] == quote)
      quote = '\0';
    else if (quote == '\0' && (text[i] == '"' || text[i] == '\''))
      quote = text[i];
  }
  return quote == '\'';
}

}  // namespace

const Values::Known* Values::array(const lint::Word& word) const {
  const auto* part = only_part(word);
  if (part == nullptr || part->kind != lint::Part::Kind::unknown) return nullptr;
  const auto& written = part->text;
  const bool all = written.starts_with("${") && (written.ends_with("[@]}") || written.ends_with("[*]}"));
  const auto known = all ? known_.find(written.substr(2, written.size() - 6)) : known_.end();
  return known == known_.end() ? nullptr : &known->second;
}

bool Values::is_arguments(const lint::Word& word) {
  const auto* part = only_part(word);
  if (part == nullptr || part->kind == lint::Part::Kind::text) return false;
  const auto& text = part->text;
  return text == "@" || text == "*" || text.starts_with("${@") || text.starts_with("${*");
}

void Values::shift(std::size_t count) {
  if (!given_) return;
  const auto most = static_cast<std::ptrdiff_t>(std::min(count, given_->size()));
  given_->erase(given_->begin(), given_->begin() + most);
}

/// Of `$@` all, of `${@:2}` the second and those behind it.
std::vector<Value> Values::arguments_in(const lint::Word& word) const {
  if (!given_) return {};
  const auto& written = only_part(word)->text;
  const auto colon = std::min(written.find(':'), written.size() - 1);
  std::size_t first = 1;
  std::from_chars(written.data() + colon + 1, written.data() + written.size(), first);
  const auto before = std::min(std::max<std::size_t>(first, 1) - 1, given_->size());
  return {given_->begin() + static_cast<std::ptrdiff_t>(before), given_->end()};
}

std::vector<Value> Values::split(const lint::Word& word, unsigned depth) const {
  if (!may_go_on(depth)) return {of(word)};
  if (is_arguments(word)) return arguments_in(word);
  std::vector<Value> out;
  if (const auto* elements = array(word)) {
    for (const auto& element : elements->elements) {
      for (auto& value : split(element, depth + 1)) out.push_back(std::move(value));
      if (out.size() > kMostWords) break;
    }
    for (const auto& doubt : elements->value.doubts) {
      if (!out.empty()) out.front().doubt(doubt);
    }
    return out;
  }
  auto whole = of(word);
  const bool expands =
      std::ranges::any_of(word.parts, [](const auto& part) { return part.kind != lint::Part::Kind::text; });
  if (word.quoted || !expands) return {std::move(whole)};
  const auto text = whole.text();
  // A variable without a value is no word; where that is doubted, its place is kept.
  if (text == "" && !whole.doubts.empty()) return {std::move(whole)};
  const bool asks =
      text && text->starts_with("${env.") && text->ends_with(":-}") && text->find('}') + 1 == text->size();
  if (asks && word.parts.size() == 1 && whole.doubts.empty())
    whole.doubt(
        {0, fmt::format("bash makes words of ${} without quotes, and none where it is empty: here it is one",
                        word.parts[0].kind == lint::Part::Kind::variable ? word.parts[0].text
                                                                         : word.parts[0].text.substr(1))});
  out = Splitter(whole).words();
  if (out.size() == 1) return {std::move(whole)};
  return out;
}

std::string Values::inner(const lint::Word& word, unsigned depth) const {
  std::string out;
  for (const auto& part : word.parts) {
    if (out.size() > kLongestInnerScript) break;
    if (part.kind == lint::Part::Kind::text) {
      out += part.text;
      continue;
    }
    lint::Word alone{{part}, {}, true};
    const auto* elements = array(alone);
    if (elements != nullptr && may_go_on(depth)) {
      for (const auto& element : elements->elements) {
        if (&element != elements->elements.data()) out += ' ';
        out += inner(element, depth + 1);
      }
      continue;
    }
    const bool literal_there = in_single_quotes(out);
    if (part.kind == lint::Part::Kind::unknown) {
      out += literal_there ? fmt::format("'\"{}\"'", part.text) : part.text;
      continue;
    }
    const auto known = known_.find(part.text);
    const auto more = known == known_.end() || !may_go_on(depth) ? "" : inner(known->second.word, depth + 1);
    const bool several =
        more.find_first_of(" \n") != std::string::npos && more.find("$(") == std::string::npos;
    // Within its single quotes the inner shell would expand nothing: the outer one has done so.
    out += several         ? more
           : literal_there ? fmt::format("'\"${{{}}}\"'", part.text)
                           : fmt::format("${{{}}}", part.text);
  }
  return out;
}

}  // namespace nlaunch::import
