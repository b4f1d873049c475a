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

/// What the machine refuses is no error of nlaunch's own.
int complain_of_files(const std::filesystem::filesystem_error& error, const report::Console& console) {
  std::error_code gone;
  static_cast<void>(std::filesystem::current_path(gone));
  if (gone) {
    console.say(
        fmt::format("nlaunch: the folder in which it was called cannot be reached any more: {}; call it in "
                    "another one\n",
                    gone.message()));
    return exit_code::bad_input;
  }
  console.say(
      fmt::format("nlaunch: '{}' cannot be reached: {}\n", error.path1().string(), error.code().message()));
  return exit_code::internal;
}

/// Nothing else that is started here could be told from a failure of what it asks for.
bool has_enough_files(const report::Console& console) {
  constexpr std::uint64_t kEnough = 64;
  const auto most = sys::permit_many_files();
  if (most < kEnough) {
    console.say(fmt::format(
        "nlaunch: it may have {} open files and needs {} at least: raise the hard limit (ulimit -Hn)\n", most,
        kEnough));
  }
  return most >= kEnough;
}

void add_general_options(CLI::App& app, Context& context) {
  set_usage(app);
  app.require_subcommand(1);
  app.fallthrough();
  app.set_help_all_flag("--help-all", "Help for every subcommand");
  app.set_version_flag("--version", &version_text, "The version, and what was built in");
  app.add_option("--color", context.color, "Colours: auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_flag("-q,--quiet", context.quiet, "Only errors, and what was asked for");
  app.add_flag("-v,--verbose", context.verbose, "More");
}

}  // namespace

int run_program(int argc, const char* const* argv) {
  Context context;
  context.environment = sys::own_environment();
  const auto* const end = argv + argc;
  const auto* const dashes = std::find(argv, end, std::string_view("--"));
  if (dashes != end) context.behind_dashes = static_cast<std::size_t>(end - dashes) - 1;
  CLI::App app(
      "Launches RL post-training: learners, engines and services on one plan, checked before they start.",
      "nlaunch");
  add_general_options(app, context);
  for (const auto* command : Registered<CommandEntry>::all()) command->add(Command(&app), context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_code::ok : exit_code::usage;
  }
  context.console = terminal_console(context);
  if (!has_enough_files(context.console)) return exit_code::bad_input;
  try {
    return code_after_output(context.run(), context.console);
  } catch (const std::filesystem::filesystem_error& error) {
    return complain_of_files(error, context.console);
  } catch (const std::exception& error) {
    context.console.say(fmt::format("nlaunch: an error of its own, please report it: {}\n", error.what()));
    return exit_code::internal;
  }
}

}  // namespace nlaunch::cli
