#include "record/secret_scan.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>

#include "base/secrets.h"
#include "base/text.h"

namespace nlaunch::record {
namespace {

using re2::RE2;

/// A name and its value; only the name decides whether it is a secret. A value ends at its quote, or where a
/// shell or JSON would end it. Quotes may be escaped: JSON within JSON.
constexpr const char* kNamed =
    R"((?i)([a-z0-9_.-]*(?:key|token|passwor|passwd|secret|credential)[a-z0-9_]*)(?:\\*["'])?[ \t]{0,4}[:=][ \t]{0,4}(?:\\*"([^"\n]*)|\\*'([^'\n]*)|([^\s"',;&|<>()\\]+)))";
/// --api-key VALUE; also as two strings in a list.
constexpr const char* kFlag =
    R"((?i)--([a-z0-9_-]*(?:key|token|passwor|passwd|secret|credential)[a-z0-9_-]*)(?:\\*["'][ \t\n]*,[ \t\n]*\\*["']|[ \t]+)([^\s"',\\]+))";

/// Where either of them could be: searching for fixed words is fast, and the patterns are only tried there.
constexpr const char* kWordOfName = "(?i)key|token|passwor|passwd|secret|credential";
constexpr const char* kStartOfShape =
    "hf_|sk-|gh[pousr]_|github_pat_|glpat-|AKIA|ASIA|nvapi-|AIza|xox|(?i:wandb|bearer|basic)|eyJ|://|login|"
    "-----BEGIN ";

/// Secrets that are recognized by their format. Each pattern has one group: the secret.
struct Shape {
  const char* what;
  const char* pattern;
};
constexpr std::array kShapes{
    Shape{"a Hugging Face token", R"(\b(hf_[A-Za-z0-9]{20,}))"},
    Shape{"an API key (sk-)", R"(\b(sk-[A-Za-z0-9_-]{20,}))"},
    Shape{"a GitHub token", R"(\b(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}))"},
    Shape{"a GitLab token", R"(\b(glpat-[A-Za-z0-9_-]{20,}))"},
    Shape{"an AWS key", R"(\b((?:AKIA|ASIA)[A-Z0-9]{16})\b)"},
    Shape{"an NVIDIA NGC key", R"(\b(nvapi-[A-Za-z0-9_-]{20,}))"},
    Shape{"a Google key", R"(\b(AIza[A-Za-z0-9_-]{35}))"},
    Shape{"a Slack token", R"(\b(xox[abeoprs]-[A-Za-z0-9-]{10,}))"},
    Shape{"a Weights & Biases key", R"((?i)\bwandb.{0,40}?\b([0-9a-f]{40})\b)"},
    Shape{"a JSON web token", R"(\b(eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*))"},
    Shape{"a password in a URL", R"(://[^\s/:@"']*:([^\s/@"']+)@)"},
    Shape{"HTTP authorization", R"((?i)\b(?:bearer|basic)[ \t]+([A-Za-z0-9._~+/=-]{16,}))"},
    Shape{"a .netrc password", R"(\blogin[ \t\n]+\S+[ \t\n]+password[ \t\n]+(\S+))"},
    // Up to its end line, or to the end of the text.
    Shape{"a private key",
          R"((?s)-----BEGIN [A-Z ]*PRIVATE KEY-----(.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z))"},
};

bool is_upper(std::string_view name) {
  return std::ranges::none_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
}

/// A value that is not a secret: a reference, a word that means "none", an already masked value, the name of
/// a secret.
bool is_innocent(std::string_view value) {
  constexpr std::size_t kShortest = 4;
  if (value.size() < kShortest || value.front() == '$' || value.front() == '{' || value.front() == '[')
    return true;
  if (value.find_first_not_of('*') == std::string_view::npos || value.starts_with("--")) return true;
  constexpr std::array<std::string_view, 8> kNothing{"none",  "null",    "true",     "false",
                                                     "unset", "(unset)", "optional", "string"};
  return std::ranges::find(kNothing, text::lower(value)) != kNothing.end() ||
         (is_upper(value) && looks_like_secret(value));
}

/// In logs of language models, "token" rarely means a secret.
bool could_be_token(std::string_view value) {
  constexpr std::size_t kShortest = 16;
  const auto has = [&](auto predicate) { return std::ranges::any_of(value, predicate); };
  return value.size() >= kShortest && has([](char c) { return c >= '0' && c <= '9'; }) &&
         has([](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; });
}

void add_named(std::string_view text, re2::StringPiece name, re2::StringPiece value,
               std::vector<SecretMatch>& out) {
  while (!value.empty() && value[value.size() - 1] == '\\') value.remove_suffix(1);
  std::string_view word(name.data(), name.size());
  while (word.starts_with('-') || word.starts_with('.')) word.remove_prefix(1);
  const std::string_view held(value.data(), value.size());
  if (is_innocent(held)) return;
  const auto bare = text::lower(word);
  if (!looks_like_secret(word) && !((bare == "token" || bare == "key") && could_be_token(held))) return;
  const auto from = static_cast<std::size_t>(value.data() - text.data());
  out.push_back(
      {static_cast<std::size_t>(name.data() - text.data()), from, from + held.size(), std::string(word)});
}

using Groups = std::array<re2::StringPiece, 5>;

/// Whether `pattern` matches at `at`; sets its groups: [0] is the whole match.
bool fits_at(std::string_view text, std::size_t at, const RE2& pattern, Groups& groups) {
  groups = {};
  const re2::StringPiece all(text.data(), text.size());
  return pattern.Match(all, at, all.size(), RE2::ANCHOR_START, groups.data(),
                       1 + pattern.NumberOfCapturingGroups());
}

/// Calls `take` with the position of every word that `words` finds.
void for_each_place(std::string_view text, const RE2& words, const std::function<void(std::size_t)>& take) {
  const re2::StringPiece all(text.data(), text.size());
  re2::StringPiece word;
  for (std::size_t at = 0; at < text.size() && words.Match(all, at, all.size(), RE2::UNANCHORED, &word, 1);) {
    const auto place = static_cast<std::size_t>(word.data() - text.data());
    take(place);
    at = place + word.size();
  }
}

/// The start of the name that contains a word at `at`.
std::size_t start_of_name(std::string_view text, std::size_t at) {
  constexpr std::size_t kLongest = 128;
  const auto is_of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
  };
  auto start = at;
  while (start > 0 && at - start < kLongest && is_of_name(text[start - 1])) --start;
  return start;
}

/// Sorted; of overlapping matches, the first one, extended over the others.
std::vector<SecretMatch> settled(std::vector<SecretMatch> found) {
  std::ranges::stable_sort(found, {}, &SecretMatch::from);
  std::vector<SecretMatch> out;
  for (auto& match : found) {
    if (out.empty() || match.from >= out.back().to) {
      out.push_back(std::move(match));
    } else {
      out.back().to = std::max(out.back().to, match.to);
      out.back().begin = std::min(out.back().begin, match.begin);
    }
  }
  return out;
}

RE2::Options options() {
  RE2::Options out(RE2::Latin1);  // any bytes
  out.set_log_errors(false);
  out.set_max_mem(32 << 20);
  return out;
}

}  // namespace

struct SecretScanner::Patterns {
  RE2 named{kNamed, options()};
  RE2 flag{kFlag, options()};
  RE2 word_of_name{kWordOfName, options()};
  RE2 start_of_shape{kStartOfShape, options()};
  std::vector<std::unique_ptr<RE2>> shapes;
};

SecretScanner::SecretScanner() : patterns_(std::make_unique<Patterns>()) {
  for (const auto& shape : kShapes)
    patterns_->shapes.push_back(std::make_unique<RE2>(shape.pattern, options()));
}

SecretScanner::~SecretScanner() = default;

void SecretScanner::add_known(std::string name, std::string value) {
  constexpr std::size_t kShortest = 8;
  if (value.size() < kShortest || is_innocent(value)) return;
  known_.emplace_back(std::move(name), std::move(value));
}

std::vector<SecretMatch> SecretScanner::scan(std::string_view text) const {
  std::vector<SecretMatch> found;
  Groups groups;
  std::size_t done = 0;  // the value of a secret may contain another such name: ${HF_TOKEN:-none}
  for_each_place(text, patterns_->word_of_name, [&](std::size_t place) {
    if (place < done) return;
    const auto start = start_of_name(text, place);
    if (fits_at(text, start, patterns_->named, groups)) {
      const auto value = std::find_if(groups.begin() + 2, groups.end(),
                                      [](const auto& one) { return one.data() != nullptr; });
      if (value != groups.end()) add_named(text, groups[1], *value, found);
      if (looks_like_secret({groups[1].data(), groups[1].size()})) done = start + groups[0].size();
    }
    if (fits_at(text, start, patterns_->flag, groups)) add_named(text, groups[1], groups[2], found);
  });
  for_each_place(text, patterns_->start_of_shape, [&](std::size_t place) {
    for (std::size_t i = 0; i < kShapes.size(); ++i) {
      if (!fits_at(text, place, *patterns_->shapes[i], groups)) continue;
      const std::string_view value(groups[1].data(), groups[1].size());
      if (value.find_first_not_of('*') == std::string_view::npos) continue;  // already masked
      const auto from = static_cast<std::size_t>(value.data() - text.data());
      found.push_back({place, from, from + value.size(), kShapes[i].what});
    }
  });
  for (const auto& [name, value] : known_) {
    for (auto at = text.find(value); at != std::string_view::npos; at = text.find(value, at + value.size()))
      found.push_back({at, at, at + value.size(), name});
  }
  return settled(std::move(found));
}

}  // namespace nlaunch::record
