#include "cli/tables.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace nlaunch::cli {
namespace {

bool shown(const CLI::Option& option) {
  return !option.get_group().empty();
}

/// Each command has a --help of its own, which is listed with the program's.
bool is_general(const CLI::App& program, const CLI::Option& option) {
  return std::ranges::any_of(program.get_options(), [&](const CLI::Option* general) {
    return general->get_lnames() == option.get_lnames();
  });
}

template <typename Sections>
auto& section(Sections& sections, const std::string& heading) {
  const auto found = std::ranges::find_if(sections, [&](const auto& one) { return one.heading == heading; });
  if (found != sections.end()) return *found;
  sections.push_back({heading, {}});
  return sections.back();
}

bool takes_many(const CLI::Option& option) {
  return option.get_items_expected_max() > 1;
}

constexpr std::string_view kBehindDashes = "-- ";

}  // namespace

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
  std::erase_if(all, [](const CLI::Option* option) { return !option->get_positional() || !shown(*option); });
  return all;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : all_options_of(app)) {
    if (!shown(*option)) continue;
    const auto more = names_of(*option);
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const auto& name : option.get_snames()) names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<Section> sections_of(const CLI::App& command) {
  const auto* program = &command;
  while (program->get_parent() != nullptr) program = program->get_parent();
  std::vector<Section> sections;
  for (const auto* app = &command; app != nullptr; app = app->get_parent()) {
    for (const auto* option : all_options_of(*app)) {
      if (option->get_positional() || !shown(*option)) continue;
      if (app != program && is_general(*program, *option)) continue;
      section(sections, app == program ? "General options" : option->get_group()).options.push_back(option);
    }
  }
  return sections;
}

std::vector<CommandSection> command_sections_of(const CLI::App& app) {
  std::vector<CommandSection> sections;
  for (const auto& name : commands_of(app)) {
    const auto* command = app.get_subcommand(name);
    section(sections, command->get_group()).commands.push_back(command);
  }
  return sections;
}

std::string value_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  if (!option.get_option_text().empty()) return option.get_option_text();
  const auto type = option.get_type_name();
  if (const auto choices = type.find('{'); choices != std::string::npos) return type.substr(choices);
  if (type.starts_with("UINT")) return "N";
  auto word = option.get_lnames().empty() ? "value" : option.get_lnames().front();
  word.erase(0, word.rfind('-') + 1);
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::toupper(c); });
  return word;
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const auto value = value_of(option);
  const auto open = value.find('{');
  const auto close = value.find('}', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return {};
  return text::split(std::string_view(value).substr(open + 1, close - open - 1), ',');
}

std::string argument_of(const CLI::App& app, const CLI::Option& argument) {
  if (!argument.get_option_text().empty()) return argument.get_option_text();
  const auto name = argument.get_name(true) + (takes_many(argument) ? "..." : "");
  // An argument in an option group is required if the group is.
  const auto groups = app.get_subcommands(
      [](const CLI::App* sub) { return sub->get_name().empty() && sub->get_require_option_min() > 0; });
  return argument.get_required() || !groups.empty() ? name : "[" + name + "]";
}

std::string usage_of(const CLI::App& app, const std::string& name) {
  auto out = name;
  std::string rest;
  for (const auto* option : positionals_of(app)) {
    const auto argument = argument_of(app, *option);
    (argument.starts_with(kBehindDashes) ? rest : out) += " " + argument;
  }
  if (app.get_require_subcommand_min() > 0) out += " COMMAND";
  return out + " [OPTIONS]" + rest;
}

std::vector<std::string> examples_of(const CLI::App& app) {
  const auto lines = app.get_footer();
  return lines.empty() ? std::vector<std::string>() : text::split(lines, '\n');
}

}  // namespace nlaunch::cli
