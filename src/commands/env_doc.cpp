#include "commands/env_doc.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "report/catalogue_text.h"

namespace nlaunch::commands {

using namespace cli;
namespace {

using Variables = std::vector<const lint::Variable*>;

Variables find(std::string_view name) {
  auto found = lint::find_variables(name);
  for (const auto& variable : lint::variables()) {
    if (!found.empty()) break;
    if (text::lower(variable.name) == text::lower(name)) found = lint::find_variables(variable.name);
  }
  return found;
}

/// A pattern without a wildcard matches any part of the name.
Variables matching(std::string_view pattern) {
  const bool glob = pattern.find_first_of("*?[") != std::string_view::npos;
  const auto wanted = text::lower(pattern);
  Variables found;
  for (const auto& variable : lint::variables()) {
    const auto name = text::lower(variable.name);
    if (glob ? text::glob_match(wanted, name) : name.find(wanted) != std::string::npos)
      found.push_back(&variable);
  }
  std::ranges::stable_sort(found, {}, &lint::Variable::name);
  return found;
}

nlohmann::ordered_json as_json(const Variables& variables) {
  auto out = nlohmann::ordered_json::array();
  for (const auto* variable : variables) out.push_back(report::variable_json(*variable));
  return out;
}

int doc(const std::string& name, bool json, const Context& context) {
  const auto found = find(name);
  if (!found.empty()) {
    context.console.result(json ? json_text(as_json(found), 2) + "\n"
                                : report::variable_text(found, context.console.result_paint));
    return exit_code::ok;
  }
  if (json) {
    context.console.result(json_text(report::unknown_variable_json(name), 2) + "\n");
  } else {
    context.console.say("nlaunch env: " + report::unknown_variable_text(name));
  }
  return exit_code::bad_input;
}

int list_variables(const std::string& pattern, bool json, const Context& context) {
  const auto found = matching(pattern);
  if (json) {
    context.console.result(json_text(as_json(found), 2) + "\n");
  } else if (found.empty()) {
    context.console.say(
        fmt::format("nlaunch env: no known variable matches '{}'\n", text::printable(pattern)));
  } else {
    context.console.result(report::variables_text(found, context.console.result_paint));
  }
  return found.empty() ? exit_code::bad_input : exit_code::ok;
}

}  // namespace

void add_env_doc_options(Command command, EnvDocArgs& args) {
  auto doc =
      command.option("--doc", args.name, "Describe a variable; needs no EXPERIMENT").value_name("NAME");
  args.list =
      command.option("--list", args.pattern, "List known variables whose names match PATTERN [default: all]")
          .value_name("[PATTERN]")
          .value_optional()
          .excludes(doc);
}

int env_doc(const EnvDocArgs& args, bool json, const Context& context) {
  return args.list->given() ? list_variables(args.pattern, json, context) : doc(args.name, json, context);
}

}  // namespace nlaunch::commands
