#include "lint/secrets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace nlaunch::lint {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kUpper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

bool is_of_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/// The prefix of a service's keys; the rest is letters and digits, plus _ and - with `dashes`.
struct KeyForm {
  std::string_view begin;
  bool dashes;
};

bool is_known(std::string_view text) {
  return text.find('$') == std::string_view::npos;
}

/// "API_KEY" of --api-key, +trainer.api_key and api-key.
std::string plain_name(std::string_view option) {
  option = option.substr(option.rfind('.') + 1);
  option.remove_prefix(std::min(option.find_first_not_of("-+"), option.size()));
  std::string name;
  for (const char c : option) name += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return name;
}

/// "MY_API_KEY", "HF_TOKEN_2": a name instead of a value.
bool is_upper_words(std::string_view value) {
  constexpr std::size_t kLongestNumber = 2;
  return value.find('_') != std::string_view::npos &&
         std::ranges::all_of(text::split(value, '_'), [](std::string_view part) {
           return part.find_first_not_of(kUpper) == std::string_view::npos ||
                  (part.size() <= kLongestNumber &&
                   part.find_first_not_of(kDigits) == std::string_view::npos);
         });
}

/// "00000000".
bool repeats_one(std::string_view value) {
  constexpr std::size_t kShortest = 8;
  return value.size() >= kShortest && value.find_first_not_of(value[0]) == std::string_view::npos;
}

bool is_secret_value(std::string_view value) {
  return is_known(value) && !value.starts_with('-') && may_be_secret(value) && !is_to_be_filled_in(value);
}

/// `wandb login KEY`: the first argument that is not an option.
std::string_view login_key(const std::vector<std::string>& words, std::size_t at) {
  constexpr std::size_t kShortest = 20;
  const bool wandb = words[0].substr(words[0].rfind('/') + 1) == "wandb";
  if (!wandb || at < 2 || words[1] != "login" || words[at].starts_with('-') || words[at - 1] == "--host")
    return {};
  return words[at].size() >= kShortest && is_secret_value(words[at]) ? std::string_view(words[at])
                                                                     : std::string_view();
}

}  // namespace

bool names_secret(std::string_view name) {
  constexpr std::array<std::string_view, 20> kEnds{
      "API_KEY",   "ACCESS_KEY", "SECRET_KEY",        "AUTH_KEY",     "PASSWORD",
      "SECRET",    "API_TOKEN",  "AUTH_TOKEN",        "ACCESS_TOKEN", "HUB_TOKEN",
      "HF_TOKEN",  "BOT_TOKEN",  "GITHUB_TOKEN",      "GITLAB_TOKEN", "WANDB_TOKEN",
      "WANDB_KEY", "OPENAI_KEY", "HUGGINGFACE_TOKEN", "GH_TOKEN",     "HF_KEY"};
  const auto plain = plain_name(name);
  // Beaker's --env-secret and --dataset-secret take the name of a secret.
  if (plain.ends_with("ENV_SECRET") || plain.ends_with("DATASET_SECRET")) return false;
  return plain == "TOKEN" ||
         std::ranges::any_of(kEnds, [&](std::string_view end) { return plain.ends_with(end); });
}

std::string_view password_in(std::string_view text) {
  for (auto at = text.find("://"); at != std::string_view::npos; at = text.find("://", at + 3)) {
    const auto rest = text.substr(at + 3);
    const auto end = rest.find_first_of("@/ \t\n\"'");
    if (end == std::string_view::npos || rest[end] != '@') continue;
    const auto user = rest.substr(0, end);
    const auto colon = user.find(':');
    // docker://image:tag@sha256:… is an address without a password.
    if (colon == std::string_view::npos || rest.substr(end + 1).starts_with("sha256:")) continue;
    const auto password = user.substr(colon + 1);
    if (!password.empty() && is_known(password)) return password;
  }
  return {};
}

std::string_view key_in(std::string_view text) {
  constexpr std::array<KeyForm, 9> kForms{{{"hf_", false},
                                           {"sk-", true},
                                           {"ghp_", false},
                                           {"gho_", false},
                                           {"github_pat_", true},
                                           {"glpat-", true},
                                           {"AKIA", false},
                                           {"xoxb-", true},
                                           {"xoxp-", true}}};
  constexpr std::size_t kShortest = 12;
  for (const auto& form : kForms) {
    for (auto at = text.find(form.begin); at != std::string_view::npos; at = text.find(form.begin, at + 1)) {
      if (at > 0 && is_of_word(text[at - 1])) continue;
      auto end = at + form.begin.size();
      while (end < text.size() && is_of_word(text[end])) ++end;
      const auto rest = text.substr(at + form.begin.size(), end - at - form.begin.size());
      // hf_transfer and sk-learn are package names: a key is long and has more than lowercase letters.
      const bool mixed = rest.find_first_of(kDigits) != std::string_view::npos ||
                         rest.find_first_of(kUpper) != std::string_view::npos;
      const bool one_word = form.dashes || rest.find_first_of("_-") == std::string_view::npos;
      const auto key = text.substr(at, end - at);
      if (rest.size() >= kShortest && mixed && one_word && !is_to_be_filled_in(key)) return key;
    }
  }
  return {};
}

bool is_to_be_filled_in(std::string_view value) {
  const auto lower = text::lower(value);
  constexpr std::array<std::string_view, 13> kWords{"your",     "xxx",    "<",          "...",   "***",
                                                    "changeme", "todo",   "replace",    "dummy", "to_be_",
                                                    "to-be-",   "filled", "placeholder"};
  return value.size() < 8 || lower == "offline" || lower == "disabled" || is_upper_words(value) ||
         repeats_one(value.substr(value.find_last_of("_-") + 1)) ||
         std::ranges::any_of(kWords,
                             [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

bool may_be_secret(std::string_view value) {
  return value.find('/') == std::string_view::npos && value.find(' ') == std::string_view::npos &&
         value.find_first_not_of("0123456789.") != std::string_view::npos;
}

std::vector<ExposedSecret> exposed_secrets(const std::vector<std::string>& words, const SourceSpan& span) {
  std::vector<ExposedSecret> found;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto add = [&](std::string what, std::string_view value) {
      found.push_back({std::move(what), std::string(value), span, false});
    };
    const auto& text = words[i];
    const auto equals = text.find('=');
    const auto name = std::string_view(text).substr(0, equals);
    const auto value =
        equals == std::string::npos ? std::string_view() : std::string_view(text).substr(equals + 1);
    if (i > 0 && words[i - 1].starts_with('-') && names_secret(words[i - 1]) && is_secret_value(text)) {
      add("the value of " + words[i - 1], text);
    } else if (i > 0 && equals != std::string::npos && names_secret(name) && is_secret_value(value)) {
      add(fmt::format("the value of {}", name), value);
    } else if (const auto key = login_key(words, i); !key.empty()) {
      add("the key of wandb login", key);
    } else if (const auto password = password_in(text); !password.empty()) {
      add("the password in a URL", password);
    } else if (const auto looks = key_in(text); !looks.empty()) {
      add("what looks like a key", looks);
    }
  }
  return found;
}

}  // namespace nlaunch::lint
