#include "import/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/secrets.h"

namespace nlaunch::import {
namespace {

/// The names that mean a secret in any case; `--label_key` and `--eos_token` do not.
bool is_surely_secret(std::string_view name) {
  constexpr std::array<std::string_view, 12> kEnds{"API_KEY",      "ACCESS_KEY", "SECRET_KEY", "AUTH_KEY",
                                                   "PASSWORD",     "SECRET",     "API_TOKEN",  "AUTH_TOKEN",
                                                   "ACCESS_TOKEN", "HUB_TOKEN",  "HF_TOKEN",   "BOT_TOKEN"};
  return name == "TOKEN" || std::ranges::any_of(kEnds, [&](auto end) { return name.ends_with(end); });
}

/// A path, a number or a yes is no secret, and a key has digits.
bool may_be_secret(std::string_view text, bool sure) {
  constexpr std::size_t kShortest = 8;
  if (text.find("${") != std::string_view::npos || text.starts_with('/') || text.starts_with('~'))
    return false;
  if (text.find_first_not_of("0123456789.") == std::string_view::npos || text == "true" || text == "false")
    return false;
  return sure || (text.size() >= kShortest && text.find_first_of("0123456789") != std::string_view::npos);
}

}  // namespace

void keep_secret(std::string_view name, const Value& value, std::vector<std::string>& secrets) {
  std::string plain;
  bool lower = false;
  for (const char c : name) {
    lower = lower || std::islower(static_cast<unsigned char>(c)) != 0;
    plain += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  plain.erase(0, std::min(plain.find_first_not_of('_'), plain.size()));
  const bool sure = is_surely_secret(plain);
  if (!sure && (lower || !looks_like_secret(plain))) return;
  for (const auto& piece : value.pieces) {
    if (piece.kind == Piece::Kind::text && may_be_secret(piece.text, sure)) secrets.push_back(piece.text);
  }
}

void keep_secrets(const Launch& launch, std::vector<std::string>& secrets) {
  for (const auto& one : launch.variables) keep_secret(one.name, one.value, secrets);
  for (std::size_t i = 0; i < launch.words.size(); ++i) {
    const auto text = launch.words[i].known();
    const auto equals = text.find('=');
    if (equals != std::string::npos) {
      keep_secret(text.substr(0, equals), Value::just(text.substr(equals + 1)), secrets);
    } else if (text.starts_with('-') && i + 1 < launch.words.size()) {
      keep_secret(text, launch.words[i + 1], secrets);
    }
  }
}

std::vector<std::string> secrets_in(std::string_view text) {
  std::vector<std::string> found;
  for (auto at = text.find("://"); at != std::string_view::npos; at = text.find("://", at + 3)) {
    const auto rest = text.substr(at + 3, 400);
    const auto user = rest.substr(0, rest.find_first_of("@/ \t\n\"'"));
    const auto colon = user.find(':');
    if (user.size() < rest.size() && rest[user.size()] == '@' && colon != std::string_view::npos)
      found.emplace_back(user.substr(colon + 1));
  }
  for (const std::string_view mark :
       {"Bearer ", "bearer ", "sk-", "hf_", "ghp_", "github_pat_", "glpat-", "AKIA", "xoxb-", "xoxp-"}) {
    for (auto at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at + mark.size())) {
      if (at > 0 && is_key_character(text[at - 1])) continue;
      auto end = at + mark.size();
      while (end < text.size() && is_key_character(text[end])) ++end;
      constexpr std::size_t kShortest = 8;
      if (end - at >= mark.size() + kShortest)
        found.emplace_back(text.substr(at + (mark.ends_with(' ') ? mark.size() : 0),
                                       end - at - (mark.ends_with(' ') ? mark.size() : 0)));
    }
  }
  return found;
}

std::string without_keys(std::string_view line) {
  constexpr std::size_t kShortest = 32;
  std::string out;
  for (std::size_t i = 0; i < line.size();) {
    auto end = i;
    while (end < line.size() && is_key_character(line[end])) ++end;
    const auto word = line.substr(i, end - i);
    const bool mixed = word.find_first_of("0123456789") != std::string_view::npos &&
                       word.find_first_not_of("0123456789") != std::string_view::npos;
    out += word.size() >= kShortest && mixed ? kMasked : word;
    if (end < line.size()) out += line[end];
    i = end + 1;
  }
  return out;
}

}  // namespace nlaunch::import
