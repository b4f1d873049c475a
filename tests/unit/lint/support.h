#pragma once
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "lint/rule.h"
#include "lint/script_input.h"

/// Scenes that tests of lint make by hand, and what is found in them, a line each.
namespace nlaunch::lint::support {

inline std::shared_ptr<const SourceFile> a_file(std::string name, std::string text = {}) {
  return std::make_shared<const SourceFile>(SourceFile{std::move(name), std::move(text)});
}

inline Version version(std::string_view text) {
  return *parse_version(text);
}

inline Setting set(std::string name, std::string value) {
  Setting setting;
  setting.name = std::move(name);
  setting.value = std::move(value);
  return setting;
}
/// Its value is known only when it runs.
inline Setting open(std::string name) {
  Setting setting;
  setting.name = std::move(name);
  return setting;
}
inline Setting unset(std::string name) {
  auto setting = open(std::move(name));
  setting.unset = true;
  return setting;
}
/// Under a condition.
inline Setting maybe(Setting setting) {
  setting.sure = false;
  return setting;
}
/// A variable of the shell alone.
inline Setting local(Setting setting) {
  setting.exported = false;
  return setting;
}
/// For one command.
inline Setting once(Setting setting) {
  setting.one_command = true;
  return setting;
}

/// An environment whose settings stand one below the other in NAME.env.
inline Environment environment(const std::string& name, std::vector<Setting> settings) {
  Environment out;
  out.name = name;
  out.settings = std::move(settings);
  const auto file = a_file(name.empty() ? "a.env" : name + ".env");
  std::uint32_t line = 0;
  for (auto& setting : out.settings) setting.span = {file, ++line, 1, 1};
  return out;
}

/// A file with one environment.
inline LintInput scene(std::vector<Setting> settings) {
  LintInput input;
  input.environments.push_back(environment("", std::move(settings)));
  return input;
}

/// The text of a script for a job on one node.
inline std::string on_node(const std::string& text) {
  return "#!/bin/bash\n#SBATCH -N 1 -c 8\n" + text;
}

/// A script, which bash runs where it has no effect.
inline LintInput script(const std::string& text, const ScriptJob& job = {}) {
  return recorded_script(a_file("job.sh", text), job);
}

/// "error a.env:1:1 (learner, engine) rule: what".
inline std::string line_of(const Finding& one) {
  std::string out = std::string(name_of(one.severity)) + " " + one.span.where() + " ";
  if (!one.environments.empty()) out += "(" + text::join(one.environments, ", ") + ") ";
  return out + std::string(one.rule) + ": " + one.what;
}

using Texts = std::vector<std::string>;

inline Texts lines_of(const std::vector<Finding>& findings) {
  Texts out;
  for (const auto& one : findings) out.push_back(line_of(one));
  return out;
}

/// What one rule finds: "error a.env:1:1 what".
inline Texts found(std::string_view rule, const LintInput& input) {
  Texts out;
  for (const auto& one : lint(input)) {
    if (one.rule != rule) continue;
    auto line = line_of(one);
    const auto name = std::string(rule) + ": ";
    out.push_back(line.erase(line.find(name), name.size()));
  }
  return out;
}

/// All that is said of the one finding of a rule: what, why, instead, source.
inline Texts whole(std::string_view rule, const LintInput& input) {
  Texts out;
  for (const auto& one : lint(input)) {
    if (one.rule == rule) out.insert(out.end(), {one.what, one.why, one.instead, one.source});
  }
  return out;
}

/// What a rule finds in a script for a job on one node.
inline Texts found_on_node(std::string_view rule, const std::string& text) {
  return found(rule, script(on_node(text)));
}

}  // namespace nlaunch::lint::support
