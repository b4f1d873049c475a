#include "report/catalogue_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace nlaunch::report {
namespace {

std::string accepted_text(const lint::Variable& variable) {
  std::vector<std::string> words;
  for (const auto& accepted : variable.values) {
    words.push_back(accepted.since ? fmt::format("{} (since {})", accepted.value, accepted.since->str())
                                   : std::string(accepted.value));
  }
  return text::join(words, ", ");
}

std::string_view newest_of(const lint::Variable& variable) {
  const auto owners = lint::owners();
  const auto owner = std::ranges::find(owners, variable.owner, &lint::Owner::name);
  return owner == owners.end() ? "" : owner->newest;
}

nlohmann::ordered_json version_json(const std::optional<Version>& version) {
  return version ? nlohmann::ordered_json(version->str()) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::string releases_text(const lint::Variable& variable) {
  if (variable.first && variable.last)
    return fmt::format("{} to {} (removed)", variable.first->str(), variable.last->str());
  if (variable.last) return fmt::format("up to {} (removed)", variable.last->str());
  if (variable.first) return fmt::format("since {}", variable.first->str());
  return newest_of(variable).empty() ? "" : "all";
}

std::string values_text(const lint::Variable& variable) {
  const auto case_text = variable.any_case ? "" : " (case-sensitive)";
  switch (variable.type) {
    case lint::ValueType::integer:
      if (variable.values.empty()) return "a number";
      if (const auto& range = variable.values.front().value; range.find("..") != std::string::npos) {
        const auto dots = range.find("..");
        return fmt::format("a number from {} to {}", range.substr(0, dots), range.substr(dots + 2));
      }
      return fmt::format("one of {}", accepted_text(variable));
    case lint::ValueType::boolean:
      return "0 or 1";
    case lint::ValueType::choice:
      return fmt::format("one of {}{}", accepted_text(variable), case_text);
    case lint::ValueType::list:
      return fmt::format("comma-separated list of {}{}", accepted_text(variable), case_text);
    case lint::ValueType::interfaces:
      return "comma-separated network interfaces";
    case lint::ValueType::path:
      return "a path";
    case lint::ValueType::text:
      return "text";
  }
  return "";
}

std::string variable_text(std::span<const lint::Variable* const> variables, const Paint& paint) {
  std::string out;
  for (const auto* variable : variables) {
    Table table({"", ""});
    const auto add = [&](std::string_view key, std::string_view value) {
      if (!value.empty()) table.add({paint.dim(key), std::string(value)});
    };
    const auto newest = newest_of(*variable);
    const auto releases = releases_text(*variable);
    add("read by", variable->owner);
    add("releases",
        variable->last || newest.empty() ? releases : fmt::format("{}; newest known: {}", releases, newest));
    add("value", values_text(*variable));
    add("default", variable->fallback);
    add("defaults", variable->history);
    add("instead", variable->instead);
    add("source", variable->source);
    out += fmt::format("{}{}: {}\n{}", out.empty() ? "" : "\n", paint.bold(variable->name), variable->meaning,
                       table.str(paint));
  }
  return out;
}

std::string variables_text(std::span<const lint::Variable* const> variables, const Paint& paint) {
  Table table({"variable", "read by", "releases", "meaning"});
  for (const auto* variable : variables) {
    table.add({paint.bold(variable->name), std::string(variable->owner), releases_text(*variable),
               std::string(variable->meaning)});
  }
  return table.str(paint);
}

nlohmann::ordered_json variable_json(const lint::Variable& variable) {
  auto values = nlohmann::ordered_json::array();
  for (const auto& accepted : variable.values)
    values.push_back({{"value", accepted.value}, {"since", version_json(accepted.since)}});
  return {{"name", variable.name},
          {"owner", variable.owner},
          {"first", version_json(variable.first)},
          {"last", version_json(variable.last)},
          {"type", name_of(variable.type)},
          {"values", values},
          {"any_case", variable.any_case},
          {"default", variable.fallback},
          {"history", variable.history},
          {"instead", variable.instead},
          {"meaning", variable.meaning},
          {"source", variable.source}};
}

std::string unknown_variable_text(std::string_view name) {
  if (const auto* mistake = lint::find_mistake(name)) {
    return fmt::format("nothing reads {}: {}\n{}source: {}\n", name, mistake->why,
                       mistake->instead.empty() ? "" : fmt::format("instead: {}\n", mistake->instead),
                       mistake->source);
  }
  const auto near = lint::nearest_variable(name);
  const auto* owner = lint::owner_of_family(name);
  return fmt::format(
      "unknown variable {}{}{}\n", text::printable(name),
      owner == nullptr ? "" : fmt::format("; no {} up to {} reads it", owner->name, owner->newest),
      near ? fmt::format(": did you mean {}?", *near) : "");
}

nlohmann::ordered_json unknown_variable_json(std::string_view name) {
  nlohmann::ordered_json out{{"name", name}, {"mistake", nullptr}, {"nearest", nullptr}};
  if (const auto* mistake = lint::find_mistake(name)) {
    out["mistake"] = {{"why", mistake->why}, {"instead", mistake->instead}, {"source", mistake->source}};
  } else if (const auto near = lint::nearest_variable(name)) {
    out["nearest"] = *near;
  }
  return out;
}

}  // namespace nlaunch::report
