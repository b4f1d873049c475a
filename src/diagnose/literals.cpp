#include "diagnose/literals.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace nlaunch::diagnose {
namespace {

using Literals = std::vector<std::string>;

/// What is known about the texts that a part of a pattern matches.
struct Known {
  bool exact = false;  ///< it matches only `text`, in any case
  std::string text;
  Literals required;  ///< each match contains one of them
};

std::size_t shortest(const Literals& literals) {
  std::size_t length = literals.empty() ? 0 : literals.front().size();
  for (const auto& literal : literals) length = std::min(length, literal.size());
  return length;
}

Literals all_of(const Known& known) {
  if (!known.exact) return known.required;
  return known.text.empty() ? Literals{} : Literals{known.text};
}

void keep_better(Literals& best, Literals other) {
  const auto is = shortest(other);
  const auto was = shortest(best);
  if (is > was || (is == was && other.size() < best.size())) best = std::move(other);
}

/// Reads as much of RE2's syntax as the tables use; anything unknown requires no literal.
class PatternReader {
 public:
  explicit PatternReader(std::string_view pattern) : rest_(pattern) {}

  Known alternatives() {
    auto first = sequence();
    if (!rest_.starts_with('|')) return first;
    Known all{.exact = false, .text = {}, .required = all_of(first)};
    bool promised = !all.required.empty();
    while (rest_.starts_with('|')) {
      rest_.remove_prefix(1);
      const auto more = all_of(sequence());
      promised = promised && !more.empty();
      all.required.insert(all.required.end(), more.begin(), more.end());
    }
    if (!promised) all.required.clear();
    return all;
  }

 private:
  Known sequence() {
    Known whole{.exact = true, .text = {}, .required = {}};
    std::string run;
    Literals best;
    const auto end_run = [&] {
      if (!run.empty()) keep_better(best, {run});
      run.clear();
    };
    while (!rest_.empty() && rest_.front() != '|' && rest_.front() != ')') {
      const auto part = repeated(atom());
      run += part.once;
      if (part.known.exact) {
        run += part.known.text;
        continue;
      }
      whole.exact = false;
      end_run();
      keep_better(best, part.known.required);
    }
    if (whole.exact) {
      whole.text = run;
      return whole;
    }
    end_run();
    whole.required = best;
    return whole;
  }

  struct Part {
    std::string once;  ///< at the start, before the rest is known
    Known known;
  };

  /// An atom with the quantifier that follows it.
  Part repeated(Known known) {
    if (rest_.empty()) return {{}, known};
    const char sign = rest_.front();
    bool often = sign == '+';
    if (sign == '{') {
      const auto end = rest_.find('}');
      if (end == std::string_view::npos || rest_.size() < 2 ||
          std::isdigit(static_cast<unsigned char>(rest_[1])) == 0)
        return {{}, known};
      often = rest_[1] != '0';
      rest_.remove_prefix(end);
    } else if (sign != '+' && sign != '*' && sign != '?') {
      return {{}, known};
    }
    rest_.remove_prefix(1);
    if (rest_.starts_with('?')) rest_.remove_prefix(1);  // the lazy form
    if (!often) return {};
    return {known.exact ? known.text : std::string(),
            {.exact = false, .text = {}, .required = known.required}};
  }

  static Known literal(char c) {
    return {.exact = true, .text = text::lower(std::string_view(&c, 1)), .required = {}};
  }
  static Known nothing_wide() { return {.exact = true, .text = {}, .required = {}}; }

  Known atom() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (c == '(') return group();
    if (c == '[') return set();
    if (c == '\\') return escape();
    if (c == '.') return {};
    if (c == '^' || c == '$') return nothing_wide();
    return literal(c);
  }

  Known group() {
    if (rest_.starts_with('?')) {
      const auto end = rest_.find_first_of(rest_.starts_with("?P<") ? ">" : ":)");
      const bool flags_alone = end != std::string_view::npos && rest_[end] == ')';
      rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
      if (flags_alone) return nothing_wide();
    }
    auto inside = alternatives();
    if (rest_.starts_with(')')) rest_.remove_prefix(1);
    return inside;
  }

  /// [Aa] is one letter; any other set could be anything.
  Known set() {
    const auto from = rest_;
    std::size_t at = rest_.starts_with('^') ? 1 : 0;
    if (at < rest_.size() && rest_[at] == ']') ++at;
    while (at < rest_.size() && rest_[at] != ']') at += rest_[at] == '\\' ? 2 : 1;
    rest_.remove_prefix(std::min(at + 1, rest_.size()));
    const auto inside = text::lower(from.substr(0, at));
    const bool one = inside.size() == 1 || (inside.size() == 2 && inside[0] == inside[1]);
    return one && inside[0] != '\\' && inside[0] != '^' ? literal(inside[0]) : Known{};
  }

  Known escape() {
    if (rest_.empty()) return {};
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (c == 'b' || c == 'B' || c == 'A' || c == 'z') return nothing_wide();
    if (c == 't') return literal('\t');
    return std::isalnum(static_cast<unsigned char>(c)) == 0 ? literal(c) : Known{};
  }

  std::string_view rest_;
};

}  // namespace

std::vector<std::string> required_literals(std::string_view pattern) {
  auto literals = all_of(PatternReader(pattern).alternatives());
  std::ranges::sort(literals);
  const auto twice = std::ranges::unique(literals);
  literals.erase(twice.begin(), twice.end());
  return literals;
}

}  // namespace nlaunch::diagnose
