#include "plan/update.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "plan/json.h"

namespace nlaunch::plan {
namespace {

using Json = nlohmann::ordered_json;

/// Members of a role.
constexpr std::array<std::string_view, 9> kMayChange{"command",    "wrapper", "workdir", "env",    "ready",
                                                     "throughput", "alive",   "fresh",   "metrics"};
/// The inputs of a plan, and what it says about itself.
constexpr std::array<std::string_view, 5> kOfTheFiles{"experiment", "site_path", "sources", "warnings",
                                                      "vars"};

template <class Names>
bool is_one_of(std::string_view name, const Names& names) {
  return std::ranges::find(names, name) != names.end();
}

/// Without the location of each setting.
Json without_origins(const Json& from) {
  if (from.is_array()) {
    auto out = Json::array();
    for (const auto& item : from) out.push_back(without_origins(item));
    return out;
  }
  if (!from.is_object()) return from;
  auto out = Json::object();
  for (const auto& [key, value] : from.items())
    if (key != "origin" && !key.ends_with("_origin")) out[key] = without_origins(value);
  return out;
}

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.is_null() ? std::string() : json_text(value);
  std::string out;
  for (const auto& word : value) out += (out.empty() ? "" : " ") + text_of(word);
  return out;
}

/// All operations on a variable: "set 1", "unset", "prepend /opt/bin".
std::string operations_on(const Json& env, const std::string& name) {
  std::string out;
  for (const auto& op : env) {
    if (op.at("name") != name) continue;
    auto shown = op;
    for (const auto* key : {"name", "layer"}) shown.erase(key);
    const auto text = op.value("op", "") == "set" && shown.size() == 2 && shown.contains("value")
                          ? text_of(shown.at("value"))
                          : json_text(shown);
    out += (out.empty() ? "" : ", ") + text;
  }
  return out;
}

void add_variables(const Json& before, const Json& after, std::vector<UpdatedSetting>& settings) {
  std::vector<std::string> names;
  for (const auto* env : {&before, &after}) {
    for (const auto& op : *env) {
      const auto name = op.at("name").get<std::string>();
      if (!is_one_of(name, names)) names.push_back(name);
    }
  }
  for (const auto& name : names) {
    auto was = operations_on(before, name);
    auto is = operations_on(after, name);
    if (was != is) settings.push_back({"env " + name, std::move(was), std::move(is)});
  }
}

/// Adding or removing a check changes what the run waits for.
bool is_other_check(std::string_view key, const Json& before, const Json& after) {
  if (key == "alive" || key == "throughput" || key == "fresh") return before.is_null() != after.is_null();
  if (key != "ready") return false;
  const auto kind = [](const Json& ready) {
    const bool any = std::ranges::any_of(std::array{"http", "tcp", "log", "file", "exec", "delay_ms"},
                                         [&](const char* one) { return ready.contains(one); });
    return std::pair(any, ready.contains("exited"));
  };
  return kind(before) != kind(after);
}

const Json& member(const Json& of, const std::string& key) {
  static const Json kNone;
  const auto found = of.find(key);
  return found == of.end() ? kNone : *found;
}

std::vector<std::string> keys_of(const Json& a, const Json& b) {
  std::vector<std::string> keys;
  for (const auto* one : {&a, &b})
    for (const auto& [key, value] : one->items())
      if (!is_one_of(key, keys)) keys.push_back(key);
  return keys;
}

void compare_role(const Json& before, const Json& after, Update& update) {
  UpdatedRole role{before.at("name").get<std::string>(), {}};
  for (const auto& key : keys_of(before, after)) {
    const auto& was = member(before, key);
    const auto& is = member(after, key);
    if (was == is) continue;
    if (!is_one_of(key, kMayChange) || is_other_check(key, was, is))
      update.refused.push_back(fmt::format("{} {}", role.role, key));
    else if (key == "env")
      add_variables(was, is, role.settings);
    else
      role.settings.push_back({key, text_of(was), text_of(is)});
  }
  if (!role.settings.empty()) update.roles.push_back(std::move(role));
}

}  // namespace

Update update_of(const Plan& before, const Plan& after) {
  const auto was = without_origins(to_json(before));
  const auto is = without_origins(to_json(after));
  Update update;
  for (const auto& key : keys_of(was, is)) {
    if (key == "roles" || is_one_of(key, kOfTheFiles)) continue;
    if (member(was, key) != member(is, key)) update.refused.push_back(key);
  }
  const auto& roles = was.at("roles");
  const auto& others = is.at("roles");
  const auto same_name = [](const Json& a, const Json& b) { return a.at("name") == b.at("name"); };
  if (!std::ranges::equal(roles, others, same_name)) {
    update.refused.insert(update.refused.begin(), "roles");
    return update;
  }
  for (std::size_t i = 0; i < roles.size(); ++i) compare_role(roles[i], others[i], update);
  return update;
}

void keep_masked(const Plan& before, Plan& after) {
  for (auto& role : after.roles) {
    const auto* same = before.find_role(role.name);
    for (auto& op : role.env) {
      if (!op.masked || same == nullptr) continue;
      const auto known = std::ranges::find_if(same->env, [&](const EnvOp& one) {
        return one.name == op.name && one.kind == op.kind && one.layer == op.layer && !one.masked;
      });
      if (known != same->env.end()) op = *known;
    }
  }
}

}  // namespace nlaunch::plan
