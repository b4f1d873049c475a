#include "cli/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <filesystem>
#include <string_view>

#include "base/exit_code.h"
#include "cli/console.h"
#include "cli/usage.h"
#include "cli/version.h"
#include "sys/spawn.h"

namespace nlaunch::cli {
namespace {

/// A refusal by the system is not an internal error of nlaunch.
int complain_of_files(const std::filesystem::filesystem_error& error, const report::Console& console) {
  std::error_code gone;
  static_cast<void>(std::filesystem::current_path(gone));
  if (gone) {
    console.say(
        fmt::format("nlaunch: cannot access the current directory: {}; run nlaunch in another directory\n",
                    gone.message()));
    return exit_code::bad_input;
  }
  console.say(
      fmt::format("nlaunch: cannot access '{}': {}\n", error.path1().string(), error.code().message()));
  return exit_code::internal;
}

/// With fewer, a failure to start something could not be told apart from a failure of the program itself.
bool has_enough_files(const report::Console& console) {
  constexpr std::uint64_t kEnough = 64;
  const auto most = sys::permit_many_files();
  if (most < kEnough) {
    console.say(fmt::format(
        "nlaunch: limited to {} open files, but needs at least {}: raise the hard limit (ulimit -Hn)\n", most,
        kEnough));
  }
  return most >= kEnough;
}

/// The heading of the group in help; none: it is not shown.
std::string heading_of(CommandGroup group) {
  switch (group) {
    case CommandGroup::run:
      return "Run";
    case CommandGroup::see:
      return "See";
    case CommandGroup::check:
      return "Check";
    case CommandGroup::convert:
      return "Convert and share";
    case CommandGroup::set_up:
      return "Set up";
    case CommandGroup::internal:
      break;
  }
  return "";
}

void add_general_options(CLI::App& app, Context& context) {
  app.require_subcommand(1);
  app.fallthrough();
  app.set_help_all_flag("--help-all", "Print help for every command");
  app.set_version_flag("--version", &version_text, "Print the version and what it was built with");
  app.add_option("--color", context.color, "Use colours: auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_flag("-q,--quiet", context.quiet, "Print only errors and results");
  app.add_flag("--plain", context.plain, "Draw no progress line and no footer");
  app.add_flag("-v,--verbose", context.verbose, "Print more");
}

}  // namespace

std::unique_ptr<CLI::App> command_line(Context& context, std::size_t width) {
  auto app = std::make_unique<CLI::App>(
      "Launch RL post-training: learners, engines and services from one plan, checked before they start",
      "nlaunch");
  set_usage(*app, width);
  add_general_options(*app, context);
  auto commands = Registered<CommandEntry>::all();
  std::ranges::stable_sort(commands, {}, &CommandEntry::group);
  for (const auto* command : commands) {
    command->add(Command(app.get()), context);
    app->get_subcommand(std::string(command->name))->group(heading_of(command->group));
  }
  Command(app.get()).examples(
      {"nlaunch run configs/quickstart.yaml", "nlaunch top quickstart", "nlaunch diagnose quickstart"});
  return app;
}

int run_program(int argc, const char* const* argv) {
  Context context;
  context.environment = sys::own_environment();
  const auto* const end = argv + argc;
  const auto* const dashes = std::find(argv, end, std::string_view("--"));
  if (dashes != end) context.behind_dashes = static_cast<std::size_t>(end - dashes) - 1;
  const auto app = command_line(context, help_width());
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app->exit(error) == 0 ? exit_code::ok : exit_code::usage;
  }
  context.console = terminal_console(context);
  if (!has_enough_files(context.console)) return exit_code::bad_input;
  try {
    return code_after_output(context.run(), context.console);
  } catch (const std::filesystem::filesystem_error& error) {
    return complain_of_files(error, context.console);
  } catch (const std::exception& error) {
    context.console.say(fmt::format("nlaunch: internal error (please report): {}\n", error.what()));
    return exit_code::internal;
  }
}

}  // namespace nlaunch::cli
