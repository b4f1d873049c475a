#include "cli/env_doc.h"

#include <algorithm>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "report/catalogue_text.h"

namespace nlaunch::cli {
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

/// A pattern without a star matches as a part of the name.
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
    print(json ? json_text(as_json(found), 2) + "\n" : report::variable_text(found, context.out()));
    return exit_code::ok;
  }
  if (json) {
    print(json_text(report::unknown_variable_json(name), 2) + "\n");
  } else {
    say("nlaunch env: " + report::unknown_variable_text(name));
  }
  return exit_code::bad_input;
}

int list(const std::string& pattern, bool json, const Context& context) {
  const auto found = matching(pattern);
  if (json) {
    print(json_text(as_json(found), 2) + "\n");
  } else if (found.empty()) {
    say(fmt::format("nlaunch env: no known variable matches '{}'\n", text::printable(pattern)));
  } else {
    print(report::variables_text(found, context.out()));
  }
  return found.empty() ? exit_code::bad_input : exit_code::ok;
}

}  // namespace

void add_env_doc_options(CLI::App& command, EnvDocArgs& args) {
  auto* doc =
      command.add_option("--doc", args.name, "All that is known of a variable; no EXPERIMENT is needed");
  args.list =
      command.add_option("--list", args.pattern, "The known variables whose name matches PATTERN (all)")
          ->type_name("[PATTERN]")
          ->expected(0, 1)
          ->excludes(doc);
}

int env_doc(const EnvDocArgs& args, bool json, const Context& context) {
  return args.list->count() > 0 ? list(args.pattern, json, context) : doc(args.name, json, context);
}

}  // namespace nlaunch::cli
