#include "cli/tables.h"

#include <algorithm>

namespace nlaunch::cli {

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands(
           [](const CLI::App* sub) { return !sub->get_group().empty() && !sub->get_name().empty(); })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<const CLI::Option*> all_options_of(const CLI::App& app) {
  auto all = app.get_options([](const CLI::Option*) { return true; });
  for (const auto* group : app.get_subcommands([](const CLI::App* sub) { return sub->get_name().empty(); })) {
    const auto more = all_options_of(*group);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::vector<const CLI::Option*> positionals_of(const CLI::App& app) {
  auto all = all_options_of(app);
  std::erase_if(all, [](const CLI::Option* option) {
    return !option->get_positional() || option->get_group().empty();  // hidden
  });
  return all;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : all_options_of(app)) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

}  // namespace nlaunch::cli
