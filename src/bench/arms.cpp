#include "bench/arms.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/text.h"
#include "lint/catalogue.h"

namespace nlaunch::bench {
namespace {

constexpr std::string_view kUnchanged = "default";
constexpr std::string_view kNone = "none";
constexpr std::string_view kAllRoles = "all";
constexpr std::size_t kMostArms = 64;

Diagnostics wrong(const std::string& typed, const std::string& what, const std::string& hint) {
  return Diagnostics(
      {Severity::error, "bench.vary", fmt::format("--vary {}: {}", typed, what), {}, {}, hint});
}

/// Splits at the commas that are not in brackets or quotes.
std::vector<std::string> split_values(std::string_view text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
  }
  return values;
}

bool is_variable(std::string_view key) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  return !key.empty() && key.find_first_not_of(kLetters) == std::string_view::npos;
}

/// The problem with the name of a variable: its owner's table has every name of the family.
std::optional<Diagnostics> judge_variable(const std::string& typed, const std::string& name) {
  const auto* owner = lint::owner_of_family(name);
  if (owner == nullptr || !lint::find_variables(name).empty()) return std::nullopt;
  const auto nearest = lint::nearest_variable(name);
  return wrong(
      typed, fmt::format("no release of {} reads {}", owner->name, name),
      nearest ? fmt::format("did you mean {}?", *nearest) : "nlaunch env --doc NAME describes a variable");
}

/// The parts of the key of one --vary.
struct Key {
  std::string typed;
  std::string key;
  std::vector<std::string> roles;
};

std::string setting(const std::string& path, const std::string& value) {
  if (!path.ends_with(".preload")) return path + "=" + value;
  if (value == kNone) return path + "=[]";
  if (value.starts_with('[')) return path + "=" + value;
  return fmt::format("{}=[{}]", path, text::join(text::split(value, '+'), ", "));
}

Arm change(const Key& of, const std::string& value) {
  Arm arm{fmt::format("{}={}", of.key, value), {}, {}, {}};
  if (value == kUnchanged) return arm;
  const auto dot = of.key.find('.');
  const auto first = of.key.substr(0, dot);
  if (of.key == "with") {
    if (value != kNone) arm.with.push_back(value);
  } else if (is_variable(of.key) || of.key.find(':') != std::string::npos) {
    arm.env.push_back(arm.name);
  } else if (dot != std::string::npos && first == kAllRoles) {
    for (const auto& role : of.roles)
      arm.set.push_back(setting(fmt::format("roles.{}{}", role, of.key.substr(dot)), value));
  } else if (dot != std::string::npos && std::ranges::find(of.roles, first) != of.roles.end()) {
    arm.set.push_back(setting("roles." + of.key, value));
  } else {
    arm.set.push_back(setting(of.key, value));
  }
  return arm;
}

std::optional<Diagnostics> judge_role(const Key& of, const std::string& role) {
  if (std::ranges::find(of.roles, role) != of.roles.end()) return std::nullopt;
  const auto nearest = text::nearest(role, of.roles);
  return wrong(of.typed, fmt::format("unknown role '{}'", role),
               nearest ? fmt::format("did you mean '{}'?", *nearest)
                       : fmt::format("the roles are {}", text::join(of.roles, ", ")));
}

/// Words that start a key of --set are checked by the configuration, which knows all of them.
std::optional<Diagnostics> judge(const Key& of) {
  const auto colon = of.key.find(':');
  if (colon != std::string::npos) {
    if (auto bad = judge_role(of, of.key.substr(0, colon))) return bad;
    return judge_variable(of.typed, of.key.substr(colon + 1));
  }
  if (is_variable(of.key)) return judge_variable(of.typed, of.key);
  auto upper = of.key;
  std::ranges::transform(upper, upper.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  if (is_variable(upper) && !lint::find_variables(upper).empty())
    return wrong(of.typed, fmt::format("unknown key '{}'", of.key), fmt::format("did you mean {}?", upper));
  return std::nullopt;
}

Result<std::vector<Arm>> arms_of(const std::string& typed, const std::vector<std::string>& roles) {
  constexpr const char* kExample = "write NCCL_PROTO=LL,LL128 or learner.preload=none,nccl or with=A,B";
  const auto equals = typed.find('=');
  if (equals == std::string::npos || equals == 0)
    return std::unexpected(wrong(typed, "must be NAME=VALUE,VALUE,...", kExample));
  const Key key{typed, typed.substr(0, equals), roles};
  if (auto bad = judge(key)) return std::unexpected(std::move(*bad));
  std::vector<Arm> arms;
  std::set<std::string> seen;
  for (const auto& value : split_values(typed.substr(equals + 1))) {
    if (value.empty()) return std::unexpected(wrong(typed, "a value is empty", kExample));
    if (!seen.insert(value).second)
      return std::unexpected(
          wrong(typed, fmt::format("duplicate value '{}'", value), "give each value once"));
    arms.push_back(change(key, value));
  }
  return arms;
}

Arm both(const Arm& a, const Arm& b) {
  Arm out = a;
  out.name = a.name.empty() ? b.name : a.name + ", " + b.name;
  out.set.insert(out.set.end(), b.set.begin(), b.set.end());
  out.with.insert(out.with.end(), b.with.begin(), b.with.end());
  out.env.insert(out.env.end(), b.env.begin(), b.env.end());
  return out;
}

}  // namespace

Result<std::vector<Arm>> make_arms(const std::vector<std::string>& vary,
                                   const std::vector<std::string>& roles) {
  if (vary.empty()) return std::vector<Arm>{{"as planned", {}, {}, {}}};
  std::vector<Arm> arms(1);
  for (const auto& typed : vary) {
    const auto more = arms_of(typed, roles);
    if (!more) return std::unexpected(more.error());
    std::vector<Arm> crossed;
    for (const auto& arm : arms) {
      for (const auto& other : *more) crossed.push_back(both(arm, other));
    }
    arms = std::move(crossed);
    if (arms.size() > kMostArms)
      return std::unexpected(
          wrong(typed, fmt::format("{} arms are too many: the limit is {}", arms.size(), kMostArms),
                "compare fewer at a time"));
  }
  return arms;
}

}  // namespace nlaunch::bench
