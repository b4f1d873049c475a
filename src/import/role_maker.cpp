#include "import/role_maker.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/secrets.h"
#include "config/names.h"
#include "import/command_line.h"
#include "import/containers.h"
#include "import/environment.h"
#include "import/programs.h"

namespace nlaunch::import {
namespace {

void say(ImportedRole& made, std::uint32_t line, const std::string& text) {
  const auto same = [&](const Remark& one) { return one.line == line && one.text == text; };
  if (std::ranges::none_of(made.remarks, same)) made.remarks.push_back({line, text});
}

}  // namespace

std::vector<Value> all_words(const Launch& launch) {
  auto words = launch.prefix;
  words.insert(words.end(), launch.words.begin(), launch.words.end());
  return words;
}

std::string RoleMaker::unused(std::string name) const {
  auto free = name;
  for (unsigned i = 2; std::ranges::find(out_.roles, free, &ImportedRole::name) != out_.roles.end(); ++i)
    free = fmt::format("{}-{}", name, i);
  return free;
}

ImportedRole RoleMaker::make(const Launch& launch, std::string name, RoleKind kind) {
  ImportedRole made;
  made.name = unused(std::move(name));
  made.kind = kind;
  made.line = launch.line;
  contain(launch, head_, made, out_);
  if (!launch.output.empty())
    made.remarks.push_back(
        {launch.line, fmt::format("its output went to {}: here it is in attempt-N/logs/ of "
                                  "the run directory",
                                  launch.output)});
  if (!launch.loop.empty()) made.remarks.push_back({launch.line, launch.loop});
  made.remarks.insert(made.remarks.end(), launch.remarks.begin(), launch.remarks.end());
  if (launch.passes_arguments)
    made.remarks.push_back(
        {launch.line, "\"$@\": what the script was given besides goes to the end of the command"});
  for (const auto& variable : launch.variables) {
    if (!variable.weak || !is_exported(variable.name)) add_variable(made, variable);
  }
  return made;
}

void RoleMaker::add_variable(ImportedRole& made, const Launch::Variable& one) {
  const auto& [name, value, line, weak] = one;
  for (const auto& doubt : value.doubts)
    made.remarks.push_back({doubt.line > 0 ? doubt.line : line, fmt::format("of {}: {}", name, doubt.text)});
  if (name == "LD_PRELOAD") {
    add_preload(made, value, line);
  } else if (name == "CUDA_VISIBLE_DEVICES") {
    // its number of GPUs
  } else if (config::is_reserved_variable(name)) {
    made.remarks.push_back({line, fmt::format("{} is nlaunch's own for each process", name)});
  } else if (value.has(Piece::Kind::shell)) {
    made.remarks.push_back(
        {line, fmt::format("{} for this command, made when the script runs: {}", name, kThatLine)});
  } else if (looks_like_secret(name)) {
    out_.secrets.push_back(
        {name, "env", "", line,
         "was for one command: it is taken from the environment in which nlaunch is called"});
  } else if (const auto text = plain_text(value, head_)) {
    if (!import_joined(name, *text, line, made.environment))
      made.environment.set.push_back({name, *text, line, ""});
  } else {
    made.remarks.push_back(
        {line, fmt::format("{} is the first node's address, which nlaunch has in $MASTER_ADDR: {}", name,
                           kThatLine)});
  }
}

bool RoleMaker::is_exported(const std::string& name) const {
  const auto found = std::ranges::find(doings_.variables, name, &Exported::name);
  return found != doings_.variables.end() && found->exported;
}

void RoleMaker::add_preload(ImportedRole& made, const Value& value, std::uint32_t line) {
  const auto text = value.text();
  if (!text) {
    made.remarks.push_back({line,
                            "LD_PRELOAD of a file that is only known when the script runs: name it under "
                            "libraries in the profile, and here: preload: [NAME]"});
    return;
  }
  for (const auto& path : library_paths(*text)) {
    made.preload.push_back(library(path, line));
  }
}

std::string RoleMaker::library(const std::string& path, std::uint32_t line) {
  const auto known = std::ranges::find(out_.libraries, path, &ImportedLibrary::path);
  if (known != out_.libraries.end()) return known->name;
  auto name = library_name(path);
  if (std::ranges::find(out_.libraries, name, &ImportedLibrary::name) != out_.libraries.end())
    name += fmt::format("-{}", out_.libraries.size());
  out_.libraries.push_back({name, path, line});
  return name;
}

void RoleMaker::set_command(ImportedRole& made, const std::vector<Value>& words) const {
  made.command = command_line(words, head_);
  for (const auto& word : words) {
    for (const auto& doubt : word.doubts) say(made, doubt.line > 0 ? doubt.line : made.line, doubt.text);
    for (const auto& piece : word.pieces) {
      if (piece.kind != Piece::Kind::shell) continue;
      for (const auto& name : variables_in(piece.text)) {
        if (is_only_the_scripts(name))
          say(made, made.line,
              fmt::format("{} is a variable of the script, which no process here has{}", name,
                          doings_.values.of_variable(name).has(Piece::Kind::head)
                              ? ": ${role.NAME.hosts} are the hosts of a role"
                              : ""));
      }
    }
  }
}

bool RoleMaker::is_only_the_scripts(const std::string& name) const {
  if (config::is_reserved_variable(name)) return false;
  const auto one = std::ranges::find(doings_.variables, name, &Exported::name);
  if (one == doings_.variables.end()) return doings_.values.knows(name);  // an array
  return !one->exported || !one->sure || !plain_text(one->value, head_);
}

}  // namespace nlaunch::import
