#include "cli/usage.h"

#include <CLI/CLI.hpp>

#include <algorithm>

#include "base/text.h"
#include "cli/console.h"
#include "cli/tables.h"

namespace nlaunch::cli {
namespace {

class Help : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    auto out = "Usage: " + name;
    std::string rest;
    for (const auto* option : positionals_of(*app)) {
      const bool many = option->get_items_expected_max() > 1;
      (many ? rest : out) += fmt::format("{} {}", many ? " --" : "", make_positional(*app, *option));
    }
    if (app->get_require_subcommand_min() > 0) out += " COMMAND";
    return out + " [OPTIONS]" + rest + "\n";
  }

  /// For --help-all: with the commands of a command.
  std::string make_expanded(const CLI::App* app) const override {
    auto out = CLI::Formatter::make_expanded(app);
    for (const auto& name : commands_of(*app)) {
      out += fmt::format("{} {}", app->get_name(), make_expanded(app->get_subcommand(name)));
    }
    return out;
  }

 private:
  /// One of an option group is wanted where the group is.
  static std::string make_positional(const CLI::App& app, const CLI::Option& option) {
    const auto name = option.get_name(true);
    const auto groups = app.get_subcommands(
        [](const CLI::App* sub) { return sub->get_name().empty() && sub->get_require_option_min() > 0; });
    return option.get_required() || !groups.empty() ? name : "[" + name + "]";
  }
};

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const auto near = text::nearest(word, known);
  return near ? fmt::format(": did you mean '{}'?", *near) : "";
}

/// `called`: the command's name with those above it.
std::string about_word(const CLI::App& app, const CLI::App* command, const std::string& called,
                       const std::string& word) {
  const auto name = command == nullptr ? std::string("nlaunch") : "nlaunch " + called;
  if (!word.starts_with('-')) {
    if (command != nullptr) {
      return fmt::format("{0}: '{1}' is one argument too many\n{0} --help says what it takes\n", name, word);
    }
    const auto commands = commands_of(app);
    return fmt::format(
        "{}: there is no command '{}'{}\nthe commands are {}; nlaunch help says what they do\n", name, word,
        did_you_mean(word, commands), text::join(commands, ", "));
  }
  const auto option = word.substr(0, word.find('='));
  auto known = command == nullptr ? std::vector<std::string>() : options_of(*command);
  if (std::ranges::find(known, option) != known.end()) {
    return fmt::format("{0}: '{1}' stands behind the command: {0} {1} ...\n", name, option);
  }
  const auto general = options_of(app);
  known.insert(known.end(), general.begin(), general.end());
  return fmt::format("{0}: there is no option '{1}'{2}\n{0} --help lists them\n", name, option,
                     did_you_mean(option, known));
}

/// CLI11's words, but for "Could not convert: --nodes = x".
std::string reason_of(const CLI::Error& error) {
  constexpr std::string_view kBefore = "Could not convert: ";
  constexpr std::string_view kBetween = " = ";
  const std::string_view what = error.what();
  const auto between = what.find(kBetween);
  if (!what.starts_with(kBefore) || between == std::string_view::npos) return std::string(what);
  return fmt::format("{}: '{}' is no number that it takes",
                     what.substr(kBefore.size(), between - kBefore.size()),
                     what.substr(between + kBetween.size()));
}

std::string failure_text(const CLI::App* app, const CLI::Error& error) {
  const auto called = app->get_subcommands();
  const CLI::App* command = called.empty() ? nullptr : called.front();
  std::string name = command == nullptr ? "" : command->get_name();
  while (command != nullptr && !command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  // What nobody knows is the cause of what is missing.
  auto words = app->remaining(true);
  std::ranges::stable_partition(words, [](const std::string& word) { return word.starts_with('-'); });
  if (!words.empty()) return about_word(*app, command, name, words.front());
  if (command == nullptr) {
    return fmt::format("nlaunch: which command? {}; nlaunch help says what they do\n",
                       text::join(commands_of(*app), ", "));
  }
  return fmt::format("nlaunch {0}: {1}\nnlaunch {0} --help says what it takes\n", name, reason_of(error));
}

}  // namespace

void set_usage(CLI::App& app) {
  app.formatter(std::make_shared<Help>());
  app.failure_message(failure_text);
}

namespace {

void add_help(Command program, Context& context) {
  auto& app = program.parser();
  auto name = std::make_shared<std::string>();
  auto* command = app.add_subcommand("help", "What there is; what a command takes");
  command->add_option("COMMAND", *name, "The command");
  command->callback([name, &app, &context] {
    const auto commands = commands_of(app);
    if (!name->empty() && std::ranges::find(commands, *name) == commands.end()) {
      throw CLI::ValidationError(
          fmt::format("there is no command '{}'{}", *name, did_you_mean(*name, commands)));
    }
    context.run = [name, &app, &context] {
      // CLI11's own help of an app is that of the command that was called: this one.
      context.console.result(name->empty()
                                 ? app.get_formatter()->make_help(&app, "nlaunch", CLI::AppFormatMode::Normal)
                                 : app.get_subcommand(*name)->help("nlaunch"));
      return 0;
    };
  });
}

const Registered<CommandEntry> help_entry{{"help", 210, add_help}};

}  // namespace
}  // namespace nlaunch::cli
