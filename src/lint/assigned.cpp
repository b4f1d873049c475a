#include "lint/assigned.h"

#include <re2/re2.h>

#include "lint/script_text.h"

namespace nlaunch::lint {
namespace {

/// The text of the last assignment to a variable; empty if there is none.
std::string assigned(const Script& script, const std::string& name) {
  const RE2 sets(R"re((?m)^\s*(?:export\s+|local\s+|readonly\s+)?)re" + name + R"re(=([^\n#]*))re");
  std::string value;
  re2::StringPiece rest(script.file->text);
  while (RE2::FindAndConsume(&rest, sets, &value)) {
  }
  return value;
}

/// Where `$NAME` is, and not $NAMES.
std::size_t place_of_variable(const std::string& text, const std::string& name) {
  for (auto at = text.find("$" + name); at != std::string::npos; at = text.find("$" + name, at + 1)) {
    const auto end = at + 1 + name.size();
    if (end == text.size() || !is_variable_name("_" + text.substr(end, 1))) return at;
  }
  return std::string::npos;
}

/// True if a loop, or read, gives the variable its values.
bool is_of_loop(const Script& script, const std::string& name) {
  const RE2 loop(R"re(\bfor\s+)re" + name + R"re(\s+in\b|\bfor\s*\(\(\s*)re" + name +
                 R"re(\b|\bselect\s+)re" + name + R"re(\b|\bread\b[^\n]*\b)re" + name + R"re(\b)re");
  return RE2::PartialMatch(script.file->text, loop);
}

}  // namespace

std::string without_quoting(std::string_view path) {
  std::string plain;
  for (const char c : path)
    if (c != '"' && c != '\'' && c != '{' && c != '}') plain += c;
  return plain;
}

bool moves_by_variable(const Script& script) {
  static const RE2 kMoves(R"re((?m)(?:^|[;&|(])\s*(?:cd|pushd)\s[^\n]*\$)re");
  return RE2::PartialMatch(script.file->text, kMoves);
}

std::string lasting_text(const Script& script, std::string text) {
  static const RE2 kOfRun(R"re(\bdate\b|JOB_?ID|TASK_ID|\$\$|RANDOM|mktemp|uuid|BASHPID|\$[1-9@*]|\$\(|`)re");
  constexpr int kDeep = 6;
  text = without_quoting(text);
  for (int deep = 0; deep < kDeep; ++deep) {
    if (RE2::PartialMatch(text, kOfRun)) return "";
    bool further = false;
    for (const auto& one : expansions_in(text)) {
      if (is_of_loop(script, one.name)) return "";
      const auto value = without_quoting(assigned(script, one.name));
      if (value.empty() || value.contains("$" + one.name)) continue;
      const auto place = place_of_variable(text, one.name);
      if (place == std::string::npos) continue;
      text.replace(place, one.name.size() + 1, value.substr(0, value.find_last_not_of(" \t;") + 1));
      further = true;
    }
    if (!further) return text;
  }
  return "";
}

}  // namespace nlaunch::lint
