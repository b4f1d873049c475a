#include <algorithm>
#include <filesystem>

#include <CLI/CLI.hpp>
#include "base/text.h"

#include "cli/console.h"
#include "cli/tables.h"
#include "config/site.h"
#include "launch/install.h"
#include "launch/run_dir/run_folder.h"

namespace nlaunch::cli {
namespace {

/// What bash runs on Tab; zsh runs it through bashcompinit. Words and tables come from the commands
/// themselves. Names that others can choose (directories, profile files) are only compared: compgen -W would
/// execute their content, and so would the command line that they are inserted into.
constexpr std::string_view kFunction = R"bash(_nlaunch_names() {
  local name
  while IFS= read -r name; do
    case "$name" in *[!A-Za-z0-9._-]*) continue ;; esac
    if [ -z "$current" ] || [ "${name#"$current"}" != "$name" ]; then COMPREPLY+=("$name"); fi
  done < <(nlaunch completion "$@" 2> /dev/null)
}
_nlaunch_files() {
  local name
  compopt -o filenames 2> /dev/null # bash puts quotes where they are needed
  while IFS= read -r name; do COMPREPLY+=("$name"); done < <(compgen -f -- "$current")
}
_nlaunch() {
  local previous="" current="" called="" site="" runs="" index=0 word
  while [ "$index" -lt "$COMP_CWORD" ]; do
    index=$((index + 1))
    word="${COMP_WORDS[index]}"
    if [ "$word" = = ]; then # of --site=NAME, which comes as three words
      if [ "$index" -lt "$COMP_CWORD" ]; then continue; fi
      word=""
    fi
    case "$previous" in
      --site) site="$current" ;;
      --runs-dir) runs="${current/#\~/$HOME}" ;;
    esac
    case "${called:+$called }$current" in
      COMMANDS) called="${called:+$called }$current" ;;
    esac
    previous="$current" current="$word"
  done
  COMPREPLY=()
  case "$called:$previous" in
    *:--site) _nlaunch_names sites; _nlaunch_files; return ;;
    *:--with) _nlaunch_names overlays ${site:+"$site"}; return ;;
VALUES  esac
  case "$current" in
    -*)
      case "$called" in
OPTIONS      esac
      return ;;
  esac
  case "$called" in
POSITIONALS    *) _nlaunch_files ;;
  esac
}
)bash";

struct CommandWords {
  std::string path;  ///< "sites check"; empty: nlaunch itself
  const CLI::App* app;
};

void collect(const CLI::App& app, const std::string& path, std::vector<CommandWords>& out) {
  out.push_back({path, &app});
  for (const auto& name : commands_of(app))
    collect(*app.get_subcommand(name), path.empty() ? name : path + " " + name, out);
}

/// "{auto,always,never}" in the type of an option: all values that it accepts.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const auto type = option.get_type_name();
  const auto open = type.find('{');
  const auto close = type.find('}', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return {};
  return text::split(type.substr(open + 1, close - open - 1), ',');
}

std::string reply(const std::vector<std::string>& words) {
  return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$current\"))", text::join(words, " "));
}

/// The values of options that accept something other than a file.
std::string value_rows(const std::vector<CommandWords>& commands) {
  std::string rows;
  for (const auto& command : commands) {
    for (const auto* option : all_options_of(*command.app)) {
      if (option->get_items_expected_max() == 0 || option->get_positional()) continue;
      std::vector<std::string> names;
      for (const auto& name : option->get_lnames()) names.push_back("--" + name);
      for (const auto& name : option->get_snames()) names.push_back("-" + name);
      if (names == std::vector<std::string>{"--site"} || names == std::vector<std::string>{"--with"})
        continue;
      const auto choices = choices_of(*option);
      const auto answer = choices.empty() ? "_nlaunch_files" : reply(choices);
      // The options of nlaunch itself can follow any command.
      const auto pattern = command.path.empty() ? "*" : "\"" + command.path + "\"";
      for (const auto& name : names) rows += fmt::format("    {}:{}) {}; return ;;\n", pattern, name, answer);
    }
  }
  return rows;
}

/// Recognized by its help text, kRunHelp.
bool names_run(const CommandWords& command) {
  return std::ranges::any_of(positionals_of(*command.app), [](const auto* option) {
    return option->get_description().contains("run's path, id or name");
  });
}

std::string positional_row(const CommandWords& command) {
  const auto pattern = "\"" + command.path + "\"";
  auto words = commands_of(*command.app);
  for (const auto* option : positionals_of(*command.app)) {
    const auto choices = choices_of(*option);
    words.insert(words.end(), choices.begin(), choices.end());
  }
  if (command.path == "sites") {
    return fmt::format("    {}) {}; _nlaunch_names sites ;;\n", pattern, reply(words));
  }
  if (names_run(command))
    return fmt::format("    {}) _nlaunch_names runs ${{runs:+\"$runs\"}}; _nlaunch_files ;;\n", pattern);
  if (command.path == "help") words = commands_of(*command.app->get_parent());
  return words.empty() ? "" : fmt::format("    {}) {} ;;\n", pattern, reply(words));
}

std::string replaced(std::string text, std::string_view word, const std::string& by) {
  return text.replace(text.find(word), word.size(), by);
}

std::string function_for(const CLI::App& app) {
  std::vector<CommandWords> commands;
  collect(app, "", commands);
  std::vector<std::string> paths;
  std::string options;
  std::string positionals;
  for (const auto& command : commands) {
    if (!command.path.empty()) paths.push_back("\"" + command.path + "\"");
    auto known = options_of(*command.app);
    for (const auto* above = command.app->get_parent(); above != nullptr; above = above->get_parent()) {
      const auto more = options_of(*above);
      known.insert(known.end(), more.begin(), more.end());
    }
    std::erase_if(known, [](const std::string& name) { return !name.starts_with("--"); });
    std::ranges::sort(known);
    known.erase(std::unique(known.begin(), known.end()), known.end());
    options += fmt::format("        \"{}\") {} ;;\n", command.path, reply(known));
    positionals += positional_row(command);
  }
  std::string out(kFunction);
  out = replaced(std::move(out), "COMMANDS", text::join(paths, " | "));
  out = replaced(std::move(out), "VALUES", value_rows(commands));
  out = replaced(std::move(out), "OPTIONS", options);
  return replaced(std::move(out), "POSITIONALS", positionals);
}

std::string script(const CLI::App& app, bool zsh) {
  const std::string_view head = zsh ? "# nlaunch completion for zsh; source it after compinit.\nautoload -U "
                                      "+X bashcompinit && bashcompinit\n"
                                    : "# nlaunch completion for bash.\n";
  return fmt::format("{}{}complete -F _nlaunch nlaunch\n", head, function_for(app));
}

std::string site_names(const std::vector<std::string>& folders) {
  std::string names;
  for (const auto& entry : config::list_sites(folders)) {
    if (!entry.shadowed) names += entry.name + "\n";
  }
  return names;
}

std::string overlay_names(const std::string& site, const std::vector<std::string>& folders) {
  std::string names;
  const auto read = config::load_site(site.empty() ? "local" : site, folders, {});
  if (!read) return names;
  for (const auto& overlay : read->overlays) names += overlay.name.value + "\n";
  return names;
}

/// The names of all runs and their ids.
std::string run_names(const std::filesystem::path& runs_dir) {
  std::string names;
  std::error_code error;
  for (const auto& name : std::filesystem::directory_iterator(runs_dir, error)) {
    const auto runs = launch::runs_of(name.path());
    if (!runs.empty()) names += name.path().filename().string() + "\n";
    for (const auto& run : runs) names += run.filename().string() + "\n";
  }
  return names;
}

struct Args {
  std::string what;
  std::string of;
};

int run(const Args& args, const CLI::App& app, const Context& context) {
  const auto folders = launch::site_folders({}, context.environment, launch::find_install());
  if (args.what == "sites") {
    context.console.result(site_names(folders));
  } else if (args.what == "overlays") {
    context.console.result(overlay_names(args.of, folders));
  } else if (args.what == "runs") {
    context.console.result(run_names(args.of.empty() ? "runs" : args.of));
  } else {
    context.console.result(script(app, args.what == "zsh"));
  }
  return 0;
}

void add_completion(Command program, Context& context) {
  auto args = std::make_shared<Args>();
  const auto& app = program.parser();
  auto command = program.subcommand("completion", "Print the completion script for bash or zsh");
  command
      .option("SHELL", args->what, "bash or zsh; sites, overlays and runs print these names for the scripts")
      .required()
      .one_of({"bash", "zsh", "sites", "overlays", "runs"});
  command.option("OF", args->of,
                 "Site of the overlays [default: local], or directory of the runs [default: runs]");
  command.when_called(
      [args, &app, &context] { context.run = [args, &app, &context] { return run(*args, app, context); }; });
}

const Registered<cli::CommandEntry> completion_entry{{"completion", 200, add_completion}};

}  // namespace

}  // namespace nlaunch::cli
