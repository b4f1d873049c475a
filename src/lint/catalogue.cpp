#include "lint/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "base/text.h"
#include "lint/tables.h"

namespace nlaunch::lint {
namespace {

struct Catalogue {
  std::vector<Variable> variables;
  std::vector<Owner> owners;
  std::vector<Mistake> mistakes;
  std::map<std::string_view, std::vector<const Variable*>> by_name;
};

// The tables are part of the program: one that cannot be parsed is a bug, which a test finds.
[[noreturn]] void broken(const TableText& table, std::size_t line, std::string_view what) {
  throw std::logic_error(fmt::format("{}:{}: {}", table.name, line, what));
}

std::optional<Version> release(const TableText& table, std::size_t line, std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto version = parse_version(text);
  if (!version) broken(table, line, version.error());
  return *version;
}

ValueType type_of(const TableText& table, std::size_t line, std::string_view name) {
  const auto type = value_of<ValueType>(name);
  if (!type) broken(table, line, fmt::format("no type is called '{}'", name));
  return *type;
}

std::vector<Accepted> values_of(const TableText& table, std::size_t line, std::string_view text) {
  std::vector<Accepted> values;
  if (text.empty()) return values;
  for (const auto& part : text::split_views(text, '|')) {
    const auto at = part.find('@');
    values.push_back({part.substr(0, at), at == std::string_view::npos
                                              ? std::nullopt
                                              : release(table, line, part.substr(at + 1))});
  }
  return values;
}

/// name, first, last, type, values, default, history, instead, meaning, source
Variable variable_of(const TableText& table, std::size_t line, const std::vector<std::string_view>& cells) {
  constexpr std::size_t kColumns = 10;
  if (cells.size() != kColumns)
    broken(table, line, fmt::format("{} columns, not {}", cells.size(), kColumns));
  Variable variable;
  variable.name = cells[0];
  variable.first = release(table, line, cells[1]);
  variable.last = release(table, line, cells[2]);
  auto type = cells[3];
  if (type.ends_with('=')) {  // "choice=": only in this exact case
    variable.any_case = false;
    type.remove_suffix(1);
  }
  variable.type = type_of(table, line, type);
  variable.values = values_of(table, line, cells[4]);
  variable.fallback = cells[5];
  variable.history = cells[6];
  variable.instead = cells[7];
  variable.meaning = cells[8];
  variable.source = cells[9];
  return variable;
}

/// name, why, instead, source
Mistake mistake_of(const TableText& table, std::size_t line, const std::vector<std::string_view>& cells) {
  if (cells.size() != 4) broken(table, line, fmt::format("{} columns, not 4", cells.size()));
  return {cells[0], cells[1], cells[2], cells[3]};
}

void head_line(Owner& owner, std::string_view line) {
  const auto colon = line.find(": ");
  if (colon == std::string_view::npos) return;
  const auto key = text::trim(line.substr(1, colon - 1));
  const auto value = line.substr(colon + 2);
  if (key == "owner") owner.name = value;
  if (key == "newest") owner.newest = value;
  if (key == "families") owner.families = text::split_views(value, ' ');
}

void read(Catalogue& catalogue, const TableText& table) {
  Owner owner;
  bool titles = false;  // the first line that is not a comment names the columns
  std::size_t number = 0;
  auto rest = table.text;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    const auto line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    ++number;
    if (line.empty()) continue;
    if (line.starts_with('#')) {
      head_line(owner, line);
      continue;
    }
    if (!titles) {
      titles = true;
      continue;
    }
    const auto cells = text::split_views(line, '\t');
    if (owner.name.empty()) {
      catalogue.mistakes.push_back(mistake_of(table, number, cells));
    } else {
      catalogue.variables.push_back(variable_of(table, number, cells));
      catalogue.variables.back().owner = owner.name;
    }
  }
  if (!owner.name.empty()) catalogue.owners.push_back(std::move(owner));
}

const Owner* owner_of(const std::vector<Owner>& owners, std::string_view name) {
  const Owner* best = nullptr;
  std::size_t longest = 0;
  for (const auto& owner : owners) {
    for (const auto& family : owner.families) {
      if (!name.starts_with(family) || family.size() <= longest) continue;
      best = &owner;
      longest = family.size();
    }
  }
  return best;
}

Catalogue read_all() {
  Catalogue catalogue;
  for (const auto& table : variable_tables()) read(catalogue, table);
  for (const auto& variable : catalogue.variables) catalogue.by_name[variable.name].push_back(&variable);
  for (auto& [name, all] : catalogue.by_name) {
    const auto* owner = owner_of(catalogue.owners, name);
    std::ranges::stable_partition(
        all, [&](const Variable* one) { return owner != nullptr && one->owner == owner->name; });
  }
  return catalogue;
}

const Catalogue& catalogue() {
  static const Catalogue all = read_all();
  return all;
}

}  // namespace

std::span<const Variable> variables() {
  return catalogue().variables;
}

std::span<const Owner> owners() {
  return catalogue().owners;
}

std::vector<const Variable*> find_variables(std::string_view name) {
  const auto found = catalogue().by_name.find(name);
  return found == catalogue().by_name.end() ? std::vector<const Variable*>() : found->second;
}

const Owner* owner_of_family(std::string_view name) {
  return owner_of(catalogue().owners, name);
}

std::optional<std::string> nearest_variable(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [known, _] : catalogue().by_name) names.emplace_back(known);
  return text::nearest(name, names);
}

bool reads(const Version& release, const Variable& variable) {
  return (!variable.first || release >= *variable.first) && (!variable.last || release <= *variable.last);
}

const Mistake* find_mistake(std::string_view name) {
  const auto found = std::ranges::find(catalogue().mistakes, name, &Mistake::name);
  return found == catalogue().mistakes.end() ? nullptr : &*found;
}

}  // namespace nlaunch::lint
