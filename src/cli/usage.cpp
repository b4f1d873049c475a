#include "cli/usage.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/console.h"
#include "cli/tables.h"

namespace nlaunch::cli {
namespace {

constexpr std::size_t kIndent = 2;
constexpr std::size_t kGap = 2;

std::size_t columns_of(std::string_view text) {
  return text::characters(text).size();
}

/// `text` after `first`, in lines of at most `width` columns that are broken between words. The text of each
/// line begins at the column `indent`, which is behind `first`.
std::string hanging(std::string first, std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  auto line = std::move(first);
  line.resize(line.size() + indent - columns_of(line), ' ');
  std::string_view gap;
  for (const auto& word : text::split(text, ' ')) {
    if (!gap.empty() && columns_of(line) + gap.size() + columns_of(word) > width) {
      out += line + "\n";
      line.assign(indent, ' ');
      gap = "";
    }
    line += std::string(gap) + word;
    gap = " ";
  }
  return out + line + "\n";
}

/// A heading, and rows of a name and its text.
struct Block {
  std::string heading;
  std::vector<std::pair<std::string, std::string>> rows;
};

/// The blocks, each after an empty line. All texts begin at the same column; that of a long name is below it.
std::string listed(const std::vector<Block>& blocks, std::size_t width) {
  constexpr std::size_t kMostIndent = 24;
  std::size_t indent = 0;
  for (const auto& block : blocks) {
    for (const auto& [name, text] : block.rows) {
      const auto wanted = kIndent + columns_of(name) + kGap;
      if (wanted <= kMostIndent) indent = std::max(indent, wanted);
    }
  }
  std::string out;
  for (const auto& block : blocks) {
    if (!block.rows.empty()) out += "\n" + block.heading + ":\n";
    for (const auto& [name, text] : block.rows) {
      auto first = std::string(kIndent, ' ') + name;
      if (columns_of(first) + kGap > indent) out += std::exchange(first, "") + "\n";
      out += hanging(std::move(first), text, indent, width);
    }
  }
  return out;
}

std::string example_lines(const CLI::App& app) {
  std::string out;
  for (const auto& line : examples_of(app)) out += std::string(kIndent, ' ') + line + "\n";
  return out.empty() ? out : "Examples:\n" + out;
}

Block arguments(const CLI::App& app) {
  Block block{"Arguments", {}};
  for (const auto* argument : positionals_of(app))
    block.rows.emplace_back(argument->get_name(true), argument->get_description());
  return block;
}

std::vector<Block> commands(const CLI::App& app) {
  std::vector<Block> blocks;
  for (const auto& section : command_sections_of(app)) {
    auto& block = blocks.emplace_back(Block{section.heading, {}});
    for (const auto* command : section.commands)
      block.rows.emplace_back(command->get_name(), command->get_description());
  }
  return blocks;
}

std::vector<Block> options(const CLI::App& app) {
  std::vector<Block> blocks;
  for (const auto& section : sections_of(app)) {
    auto& block = blocks.emplace_back(Block{section.heading, {}});
    for (const auto* option : section.options) {
      const auto value = value_of(*option);
      block.rows.emplace_back(text::join(names_of(*option), ", ") + (value.empty() ? "" : " " + value),
                              option->get_description());
    }
  }
  return blocks;
}

class Help : public CLI::Formatter {
 public:
  explicit Help(std::size_t width) : width_(width) {}

  /// AppFormatMode::All, for --help-all: followed by the help of each command.
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    const auto examples = example_lines(*app);
    const auto usage = hanging("Usage:", usage_of(*app, name), sizeof("Usage:"), width_) + "\n" +
                       hanging("", app->get_description() + ".", 0, width_);
    auto out = app->get_parent() == nullptr ? examples + "\n" + usage : usage + "\n" + examples;
    auto blocks = options(*app);
    blocks.insert(blocks.begin(), arguments(*app));
    out += listed(commands(*app), width_) + listed(blocks, width_);
    if (mode != CLI::AppFormatMode::All) return out;
    for (const auto& command : commands_of(*app))
      out += "\n" + make_help(app->get_subcommand(command), name + " " + command, mode);
    return out;
  }

 private:
  std::size_t width_;
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
  if (option == "--dry-run" && (command == nullptr || called == "run"))
    return name + ": to see what would run, use 'nlaunch plan'\n";
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
  words.erase(std::ranges::find(words, "--"), words.end());  // arguments
  std::ranges::stable_partition(words, [](const std::string& word) { return word.starts_with('-'); });
  if (!words.empty()) return about_word(*app, command, name, words.front());
  if (command == nullptr) {
    return fmt::format("nlaunch: missing command; available: {}; see nlaunch help\n",
                       text::join(commands_of(*app), ", "));
  }
  return fmt::format("nlaunch {0}: {1}\nsee nlaunch {0} --help\n", name, reason_of(error));
}

}  // namespace

void set_usage(CLI::App& app, std::size_t width) {
  app.formatter(std::make_shared<Help>(width));
  app.failure_message(failure_text);
}

namespace {

void add_help(Command program, Context& context) {
  auto& app = program.parser();
  auto name = std::make_shared<std::string>();
  auto command = program.subcommand("help", "Show help for nlaunch or for one command")
                     .examples({"nlaunch help", "nlaunch help run"});
  command.option("COMMAND", *name, "Command to show help for");
  command.when_called([name, &app, &context] {
    const auto commands = commands_of(app);
    if (!name->empty() && std::ranges::find(commands, *name) == commands.end()) {
      wrong_usage(fmt::format("unknown command '{}'{}", *name, did_you_mean(*name, commands)));
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

const Registered<CommandEntry> help_entry{{"help", 210, add_help, CommandGroup::set_up}};

}  // namespace
}  // namespace nlaunch::cli
