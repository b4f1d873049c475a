#include "import/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"

namespace nlaunch::import {
namespace {

/// The characters of a key or a name.
constexpr bool is_key_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/// Names that always mean a secret; `--label_key` and `--eos_token` do not.
bool is_surely_secret(std::string_view name) {
  constexpr std::array<std::string_view, 12> kEnds{"API_KEY",      "ACCESS_KEY", "SECRET_KEY", "AUTH_KEY",
                                                   "PASSWORD",     "SECRET",     "API_TOKEN",  "AUTH_TOKEN",
                                                   "ACCESS_TOKEN", "HUB_TOKEN",  "HF_TOKEN",   "BOT_TOKEN"};
  return name == "TOKEN" || std::ranges::any_of(kEnds, [&](auto end) { return name.ends_with(end); });
}

/// A path, a number or a boolean is not a secret, and a key contains digits.
bool may_be_secret(std::string_view text, bool sure) {
  constexpr std::size_t kShortest = 8;
  // Dummy keys for servers without keys.
  constexpr std::array<std::string_view, 9> kNone{"dummy",  "empty", "none",       "null",  "fake",
                                                  "unused", "test",  "not-needed", "no-key"};
  if (std::ranges::find(kNone, text::lower(text)) != kNone.end()) return false;
  if (text.find("${") != std::string_view::npos || text.starts_with('/') || text.starts_with('~'))
    return false;
  if (text.find_first_not_of("0123456789.") == std::string_view::npos || text == "true" || text == "false")
    return false;
  return sure || (text.size() >= kShortest && text.find_first_of("0123456789") != std::string_view::npos);
}

/// "--openai.api-key" → "OPENAI_API_KEY"
std::string variable_of(std::string_view option) {
  std::string name;
  for (const char c : option) {
    const bool fits = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (fits || !name.empty())
      name += fits ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : '_';
  }
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 ? "SECRET" : name;
}

/// The secrets in a role's command line.
class SecretsOfCommand {
 public:
  SecretsOfCommand(const ImportedRole& role, const Part& part, const std::vector<HandedOver>& assigned)
      : part_(part) {
    for (std::size_t i = 0; i < role.command.size(); ++i) {
      const auto& word = role.command[i];
      const auto equals = word.find('=');
      const auto option = equals != std::string::npos                     ? word.substr(0, equals)
                          : i > 0 && role.command[i - 1].starts_with('-') ? role.command[i - 1]
                                                                          : std::string();
      Masker values;
      keep_secret(option, equals == std::string::npos ? word : word.substr(equals + 1), values);
      for (auto& secret : secrets_in(word)) values.add(std::move(secret));
      for (const auto& value : values.values()) add(value, variable_of(option));
      for (const auto& [name, value] : part.changes)
        if (value && looks_like_secret(name) && value->size() >= Masker::kShortest &&
            word.find(*value) != std::string::npos)
          add(*value, name);
      for (const auto& one : assigned)
        if (word.find(one.value) != std::string::npos) add(one.value, one.name);
    }
  }

  [[nodiscard]] std::vector<HandedOver> take() { return std::move(found_); }

 private:
  void add(const std::string& value, std::string name) {
    if (std::ranges::find(found_, value, &HandedOver::value) != found_.end()) return;
    for (const auto& [variable, its] : part_.changes)
      if (its == value && looks_like_secret(variable)) name = variable;
    found_.push_back({value, std::move(name)});
  }

  const Part& part_;
  std::vector<HandedOver> found_;
};

}  // namespace

std::vector<HandedOver> assigned_secrets(const shell::Recording& recording) {
  std::vector<HandedOver> found;
  for (const auto& one : recording.assignments) {
    const bool known = std::ranges::find(found, one.value, &HandedOver::value) != found.end();
    if (!known && looks_like_secret(one.name) && may_be_secret(one.value, false))
      found.push_back({one.value, variable_of(one.name)});
  }
  return found;
}

void hand_over_secrets(const std::vector<HandedOver>& assigned, Imported& all) {
  for (auto& role : all.roles) {
    if (!role.part) continue;
    role.handed_over = SecretsOfCommand(role, all.parts[*role.part], assigned).take();
    if (role.handed_over.empty()) continue;
    role.command = {"bash", "-c", line_with_variables(role.command, role.handed_over)};
    for (const auto& one : role.handed_over) {
      role.remarks.push_back(
          {role.line, "$" + one.name + " stands for a secret, which the script has in the command line"});
      if (std::ranges::find(all.secrets, one.name, &ImportedSecret::name) == all.secrets.end())
        all.secrets.push_back(
            {one.name, "env", "", role.line, "nlaunch reads it from the environment in which it is called"});
    }
  }
}

std::string line_with_variables(const shell::Words& words, const std::vector<HandedOver>& secrets) {
  std::string line = "exec";
  for (const auto& word : words) {
    line += ' ';
    std::size_t begin = 0;
    for (;;) {
      const HandedOver* next = nullptr;
      auto at = word.size();
      for (const auto& one : secrets) {
        const auto found = word.find(one.value, begin);
        if (found < at) {
          at = found;
          next = &one;
        }
      }
      if (at > begin || word.empty()) line += text::shell_quote(word.substr(begin, at - begin));
      if (next == nullptr) break;
      line += "\"$" + next->name + "\"";
      begin = at + next->value.size();
      if (begin == word.size()) break;
    }
  }
  return line;
}

void keep_secret(std::string_view name, std::string_view value, Masker& secrets) {
  std::string plain;
  bool lower = false;
  for (const char c : name) {
    lower = lower || std::islower(static_cast<unsigned char>(c)) != 0;
    plain += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  plain.erase(0, std::min(plain.find_first_not_of('_'), plain.size()));
  const bool sure = is_surely_secret(plain);
  if (!sure && (lower || !looks_like_secret(plain))) return;
  if (may_be_secret(value, sure)) secrets.add(std::string(value));
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
  for (const std::string_view mark : {"Bearer ", "bearer ", "sk-", "hf_", "ghp_", "github_pat_", "glpat-",
                                      "AKIA", "AIza", "xoxa-", "xoxb-", "xoxp-", "dckr_pat_"}) {
    for (auto at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at + mark.size())) {
      if (at > 0 && is_key_character(text[at - 1])) continue;
      auto end = at + mark.size();
      while (end < text.size() && is_key_character(text[end])) ++end;
      // hf_checkpoint_path is not a token: hub tokens are alphanumeric.
      const bool of_hub = mark == "hf_" || mark == "ghp_";
      if (of_hub &&
          text.substr(at + mark.size(), end - at - mark.size()).find_first_of("_-") != std::string_view::npos)
        continue;
      const std::size_t shortest = of_hub ? 16 : 8;
      if (end - at >= mark.size() + shortest)
        found.emplace_back(text.substr(at + (mark.ends_with(' ') ? mark.size() : 0),
                                       end - at - (mark.ends_with(' ') ? mark.size() : 0)));
    }
  }
  return found;
}

namespace {

/// Letters and digits without the words that a name is made of: "6B_dense_gkd_220k_lr1e-5" is none.
bool looks_like_key(std::string_view word) {
  constexpr std::size_t kShortest = 32;
  constexpr std::size_t kPiece = 20;
  constexpr std::size_t kUuid = 36;
  if (word.size() < kShortest || word.find_first_of("0123456789") == std::string_view::npos) return false;
  if (word.size() == kUuid && word.find_first_not_of("0123456789abcdefABCDEF-") == std::string_view::npos)
    return true;
  // Of a name, most pieces are words or numbers: those of a key mix both.
  std::size_t pieces = 0;
  std::size_t mixed = 0;
  std::size_t longest = 0;
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t begin = 0; begin < word.size();) {
    const auto end = std::min(word.find_first_of("_-", begin), word.size());
    const auto piece = word.substr(begin, end - begin);
    // "k1j2h3": letters behind digits, and more than one change; "lr1e", "step30" and "6B" are parts of
    // names.
    std::size_t changes = 0;
    for (std::size_t at = 1; at < piece.size(); ++at)
      changes += is_digit(piece[at]) != is_digit(piece[at - 1]) ? 1 : 0;
    constexpr std::size_t kManyChanges = 4;
    ++pieces;
    mixed += changes >= kManyChanges ? 1 : 0;
    longest = std::max(longest, piece.size());
    begin = end + 1;
  }
  const bool has_letter =
      std::ranges::any_of(word, [&](char c) { return !is_digit(c) && c != '_' && c != '-'; });
  return has_letter && (longest >= kPiece || mixed * 2 > pieces);
}

}  // namespace

std::string without_keys(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size();) {
    auto end = i;
    while (end < line.size() && is_key_character(line[end])) ++end;
    const auto word = line.substr(i, end - i);
    out += looks_like_key(word) ? kMasked : word;
    if (end < line.size()) out += line[end];
    i = end + 1;
  }
  return out;
}

}  // namespace nlaunch::import
