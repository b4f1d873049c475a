#include "cli/usage.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>

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

  /// For --help-all: includes the subcommands of a command.
  std::string make_expanded(const CLI::App* app) const override {
    auto out = CLI::Formatter::make_expanded(app);
    for (const auto& name : commands_of(*app)) {
      out += fmt::format("{} {}", app->get_name(), make_expanded(app->get_subcommand(name)));
    }
    return out;
  }

 private:
  /// An argument in an option group is required if the group is.
  static std::string make_positional(const CLI::App& app, const CLI::Option& option) {
    const auto name = option.get_name(true);
    const auto groups = app.get_subcommands(
        [](const CLI::App* sub) { return sub->get_name().empty() && sub->get_require_option_min() > 0; });
    return option.get_required() || !groups.empty() ? name : "[" + name + "]";
  }
};

/// What other tools call a command.
std::string called_elsewhere(std::string_view word) {
  struct Name {
    std::string_view elsewhere;
    std::string_view here;
  };
  constexpr auto kNames = std::to_array<Name>({
      {"submit", "run"},     {"sbatch", "run"},       {"launch", "run"},      {"start", "run"},
      {"create", "run"},     {"apply", "run"},        {"status", "ps"},       {"list", "ps"},
      {"ls", "ps"},          {"get", "ps"},           {"describe", "ps RUN"}, {"queue", "ps"},
      {"validate", "plan"},  {"dry-run", "plan"},     {"show", "plan"},       {"check", "preflight"},
      {"monitor", "top"},    {"watch", "top"},        {"attach", "logs -f"},  {"follow", "logs -f"},
      {"tail", "logs -f"},   {"log", "logs"},         {"cancel", "stop"},     {"kill", "stop --now"},
      {"delete", "stop"},    {"scancel", "stop"},     {"summary", "report"},  {"stats", "report"},
      {"debug", "diagnose"}, {"explain", "diagnose"}, {"dump", "evidence"},   {"py-spy", "evidence"},
      {"ssh", "exec"},       {"shell", "exec"},       {"convert", "import"},  {"init", "sites init"},
      {"compare", "diff"},   {"benchmark", "bench"},  {"collect", "bundle"},
  });
  const auto name = std::ranges::find(kNames, word, &Name::elsewhere);
  return name == kNames.end() ? "" : fmt::format(": use 'nlaunch {}'", name->here);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const auto near = text::nearest(word, known);
  return near ? fmt::format(": did you mean '{}'?", *near) : "";
}

/// `called`: the full name of the command, with its parents.
std::string about_word(const CLI::App& app, const CLI::App* command, const std::string& called,
                       const std::string& word) {
  const auto name = command == nullptr ? std::string("nlaunch") : "nlaunch " + called;
  if (!word.starts_with('-')) {
    if (command != nullptr) {
      return fmt::format("{0}: unexpected argument '{1}'\nsee {0} --help\n", name, word);
    }
    const auto commands = commands_of(app);
    const auto elsewhere = called_elsewhere(word);
    return fmt::format("{}: unknown command '{}'{}\navailable commands: {}; see nlaunch help\n", name, word,
                       elsewhere.empty() ? did_you_mean(word, commands) : elsewhere,
                       text::join(commands, ", "));
  }
  const auto option = word.substr(0, word.find('='));
  if (option == "--dry-run" && called == "run") return name + ": to see what would run, use 'nlaunch plan'\n";
  auto known = command == nullptr ? std::vector<std::string>() : options_of(*command);
  if (std::ranges::find(known, option) != known.end()) {
    return fmt::format("{0}: put '{1}' after the command: {0} {1} ...\n", name, option);
  }
  const auto general = options_of(app);
  known.insert(known.end(), general.begin(), general.end());
  return fmt::format("{0}: unknown option '{1}'{2}\nsee {0} --help\n", name, option,
                     did_you_mean(option, known));
}

/// CLI11's text, except for "Could not convert: --nodes = x".
std::string reason_of(const CLI::Error& error) {
  constexpr std::string_view kBefore = "Could not convert: ";
  constexpr std::string_view kBetween = " = ";
  const std::string_view what = error.what();
  const auto between = what.find(kBetween);
  if (!what.starts_with(kBefore) || between == std::string_view::npos) return std::string(what);
  return fmt::format("{}: invalid number '{}'", what.substr(kBefore.size(), between - kBefore.size()),
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
  // An unknown word is the cause of a missing one.
  auto words = app->remaining(true);
  std::ranges::stable_partition(words, [](const std::string& word) { return word.starts_with('-'); });
  if (!words.empty()) return about_word(*app, command, name, words.front());
  if (command == nullptr) {
    return fmt::format("nlaunch: missing command; available: {}; see nlaunch help\n",
                       text::join(commands_of(*app), ", "));
  }
  return fmt::format("nlaunch {0}: {1}\nsee nlaunch {0} --help\n", name, reason_of(error));
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
  auto* command = app.add_subcommand("help", "Show help for nlaunch or for one command");
  command->add_option("COMMAND", *name, "Command to show help for");
  command->callback([name, &app, &context] {
    const auto commands = commands_of(app);
    if (!name->empty() && std::ranges::find(commands, *name) == commands.end()) {
      throw CLI::ValidationError(fmt::format("unknown command '{}'{}", *name, did_you_mean(*name, commands)));
    }
    context.run = [name, &app, &context] {
      // CLI11's own help of an app is that of the command that was called, which is this one.
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
