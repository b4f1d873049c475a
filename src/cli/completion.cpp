#include <algorithm>
#include <filesystem>
#include <set>

#include <CLI/CLI.hpp>
#include "base/text.h"

#include "cli/console.h"
#include "cli/tables.h"
#include "config/experiment.h"
#include "config/problems.h"
#include "config/schema.h"
#include "config/site.h"
#include "launch/install.h"
#include "launch/run_dir/run_folder.h"
#include "session/run_view.h"

namespace nlaunch::cli {
namespace {

/// What bash runs on Tab; zsh runs it through bashcompinit. Words and tables come from the commands
/// themselves. Names that others can choose (directories, profile files, roles) are only compared: compgen -W
/// would execute their content, and so would the command line that they are inserted into.
constexpr std::string_view kFunction = R"bash(_nlaunch_names() {
  local name
  while IFS= read -r name; do
    case "$name" in *[!A-Za-z0-9._-]*) continue ;; esac
    if [ -z "$current" ] || [ "${name#"$current"}" != "$name" ]; then COMPREPLY+=("$name$suffix"); fi
  done < <(nlaunch completion "$@" 2> /dev/null)
}
_nlaunch_files() {
  local name
  compopt -o filenames 2> /dev/null # bash puts quotes where they are needed
  while IFS= read -r name; do COMPREPLY+=("$name"); done < <(compgen -f -- "$current")
}
_nlaunch_before_equals() { # the value follows
  local suffix="="
  compopt -o nospace 2> /dev/null
  _nlaunch_names "$@"
}
# Words of nlaunch itself, if there are any, and those of a kind: _nlaunch_offer KIND WORD...
_nlaunch_offer() {
  local kind="$1" run="${given[0]}"
  shift
  COMPREPLY=($(compgen -W "$*" -- "$current"))
  case "$kind" in
    sites) _nlaunch_names sites ;;
    profiles) _nlaunch_names sites; _nlaunch_files ;;
    overlays) _nlaunch_names overlays "${site:-local}" ${experiment:+"$experiment"} ;;
    settings) _nlaunch_before_equals settings ${experiment:+"$experiment"} ;;
    runs) _nlaunch_names runs "$runs"; _nlaunch_files ;;
    roles)
      if [ -n "$experiment" ]; then _nlaunch_names roles "$experiment"; fi
      if [ -z "$experiment" ]; then _nlaunch_names run-roles ${run:+"$run" "$runs"}; fi ;;
    counts) _nlaunch_before_equals run-roles ${run:+"$run" "$runs"} ;;
    processes | targets | nodes) _nlaunch_names "$kind" ${run:+"$run" "$runs"} ;;
    files) _nlaunch_files ;;
  esac
}
# What the word behind "$previous" is; false: "$previous" is not an option with a value.
_nlaunch_value() {
  case "$called:$previous" in
VALUES    *) return 1 ;;
  esac
}
_nlaunch() {
  local previous="" current="" called="" site="" runs="runs" experiment="" suffix="" offer="files"
  local part="" joined="" index=0 word
  local -a given
  given=()
  while [ "$index" -lt "$COMP_CWORD" ]; do
    index=$((index + 1))
    word="${COMP_WORDS[index]}"
    case "$word" in
      = | :) # of --site=NAME, which comes as three words
        part=1
        if [ "$index" -lt "$COMP_CWORD" ]; then continue; fi
        word="" ;;
    esac
    case "$previous" in
      --site) site="$current" ;;
      --runs-dir) runs="${current/#\~/$HOME}" ;;
    esac
    case "${called:+$called }$current" in
      COMMANDS) called="${called:+$called }$current" ;;
      *)
        case "$current" in
          -* | "") ;;
          *) if [ -z "$joined" ] && ! _nlaunch_value; then given+=("${current/#\~/$HOME}"); fi ;;
        esac ;;
    esac
    previous="$current" current="$word" joined="$part" part=""
  done
  case "$called" in
EXPERIMENTS  esac
  COMPREPLY=()
  if _nlaunch_value; then
    _nlaunch_offer $offer
    return
  fi
  offer="files"
  if [ -z "$joined" ]; then
    case "$current" in
      -*)
        case "$called" in
OPTIONS        esac
        return ;;
    esac
    case "$called:${#given[@]}" in
ARGUMENTS    esac
  fi
  _nlaunch_offer $offer
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

/// What completes a value, by its name in help: a KIND of _nlaunch_offer.
std::string_view kind_of(std::string_view value) {
  constexpr auto kKinds = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"SITE", "profiles"},     {"PROFILE", "sites"},
      {"OVERLAY", "overlays"},  {"KEY=VALUE", "settings"},
      {"RUN", "runs"},          {"OTHER", "runs"},
      {"ROLE", "roles"},        {"ROLE=N", "counts"},
      {"WHAT", "targets"},      {"PROCESS", "processes"},
      {"NODE", "nodes"},        {"NAME", "none"},
      {"NAME=VALUE", "none"},   {"[ROLE:]NAME=VALUE", "none"},
      {"NAME=A,B,...", "none"}, {"N", "none"},
      {"[POOL=]N", "none"},     {"TIME", "none"},
      {"SIZE", "none"},
  });
  const auto kind = std::ranges::find(kKinds, value, &std::pair<std::string_view, std::string_view>::first);
  return kind == kKinds.end() ? "files" : kind->second;
}

/// The arguments of _nlaunch_offer.
std::string offer_of(const CLI::Option& option) {
  if (const auto choices = choices_of(option); !choices.empty()) return "words " + text::join(choices, " ");
  if (option.get_description().contains("run's path, id or name")) return "runs";  // kRunHelp
  return std::string(kind_of(option.get_positional() ? option.get_name(true) : value_of(option)));
}

/// The options that must have a value, and what completes it.
std::string value_rows(const std::vector<CommandWords>& commands) {
  std::string rows;
  for (const auto& command : commands) {
    for (const auto* option : all_options_of(*command.app)) {
      if (option->get_items_expected_min() == 0 || option->get_positional()) continue;
      // The options of nlaunch itself can follow any command.
      const auto called = command.path.empty() ? "*" : "\"" + command.path + "\"";
      std::vector<std::string> patterns;
      for (const auto& name : names_of(*option)) patterns.push_back(called + ":" + name);
      rows += fmt::format("    {}) offer=\"{}\" ;;\n", text::join(patterns, " | "), offer_of(*option));
    }
  }
  return rows;
}

/// What completes the arguments of a command, by the number of those before it.
std::string argument_rows(const CommandWords& command) {
  std::string rows;
  const auto row = [&](const std::string& number, const std::string& offer) {
    rows += fmt::format("      \"{}:{}) offer=\"{}\" ;;\n", command.path, number, offer);
  };
  auto words = commands_of(*command.app);
  if (command.path == "help") words = commands_of(*command.app->get_parent());
  const auto arguments = positionals_of(*command.app);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool many = arguments[i]->get_items_expected_max() > 1;
    auto offer = offer_of(*arguments[i]);
    if (i == 0 && !words.empty()) offer = (offer == "files" ? "words" : offer) + " " + text::join(words, " ");
    row(many ? "\"*" : std::to_string(i) + "\"", offer);
    if (many) return rows;
  }
  if (arguments.empty() && !words.empty()) row("0\"", "words " + text::join(words, " "));
  return rows;
}

/// Which argument of a command is its experiment.
std::string experiment_row(const CommandWords& command) {
  const auto arguments = positionals_of(*command.app);
  const auto found = std::ranges::find_if(
      arguments, [](const auto* argument) { return argument->get_name(true) == "EXPERIMENT"; });
  return found == arguments.end() ? ""
                                  : fmt::format("    \"{}\") experiment=\"${{given[{}]}}\" ;;\n",
                                                command.path, found - arguments.begin());
}

std::string option_row(const CommandWords& command) {
  auto known = options_of(*command.app);
  for (const auto* above = command.app->get_parent(); above != nullptr; above = above->get_parent()) {
    const auto more = options_of(*above);
    known.insert(known.end(), more.begin(), more.end());
  }
  std::erase_if(known, [](const std::string& name) { return !name.starts_with("--"); });
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return fmt::format("          \"{}\") _nlaunch_offer words {} ;;\n", command.path, text::join(known, " "));
}

std::string replaced(std::string text, std::string_view word, const std::string& by) {
  return text.replace(text.find(word), word.size(), by);
}

std::string function_for(const CLI::App& app) {
  std::vector<CommandWords> commands;
  collect(app, "", commands);
  std::vector<std::string> paths;
  std::string experiments;
  std::string options;
  std::string arguments;
  for (const auto& command : commands) {
    if (!command.path.empty()) paths.push_back("\"" + command.path + "\"");
    experiments += experiment_row(command);
    options += option_row(command);
    arguments += argument_rows(command);
  }
  std::string out(kFunction);
  out = replaced(std::move(out), "VALUES", value_rows(commands));
  out = replaced(std::move(out), "COMMANDS", text::join(paths, " | "));
  out = replaced(std::move(out), "EXPERIMENTS", experiments);
  out = replaced(std::move(out), "OPTIONS", options);
  return replaced(std::move(out), "ARGUMENTS", arguments);
}

std::string script(const CLI::App& app, bool zsh) {
  const std::string_view head = zsh ? "# nlaunch completion for zsh; source it after compinit.\nautoload -U "
                                      "+X bashcompinit && bashcompinit\n"
                                    : "# nlaunch completion for bash.\n";
  return fmt::format("{}{}complete -F _nlaunch nlaunch\n", head, function_for(app));
}

using Names = std::vector<std::string>;

/// Whatever can be read of it.
std::optional<config::Experiment> experiment_in(const std::string& file) {
  if (file.empty()) return std::nullopt;
  config::Problems problems;
  auto experiment = config::read_experiment(file, {}, {}, problems);
  return experiment ? std::optional(std::move(*experiment)) : std::nullopt;
}

Names site_names(const std::vector<std::string>& folders) {
  Names names;
  for (const auto& entry : config::list_sites(folders)) {
    if (!entry.shadowed) names.push_back(entry.name);
  }
  return names;
}

Names overlay_names(const std::string& site, const std::string& experiment,
                    const std::vector<std::string>& folders) {
  Names names;
  if (const auto read = config::load_site(site.empty() ? "local" : site, folders, {})) {
    for (const auto& overlay : read->overlays) names.push_back(overlay.name.value);
  }
  if (const auto read = experiment_in(experiment)) {
    for (const auto& overlay : read->overlays) names.push_back(overlay.name.value);
  }
  return names;
}

/// The names of all runs and their ids.
Names run_names(const std::filesystem::path& runs_dir) {
  Names names;
  std::error_code error;
  for (const auto& name : std::filesystem::directory_iterator(runs_dir, error)) {
    const auto runs = launch::runs_of(name.path());
    if (!runs.empty()) names.push_back(name.path().filename().string());
    for (const auto& run : runs) names.push_back(run.filename().string());
  }
  return names;
}

Names role_names(const std::string& experiment) {
  Names names;
  if (const auto read = experiment_in(experiment)) {
    for (const auto& role : read->roles) names.push_back(role.name.value);
  }
  return names;
}

/// The keys of a file that have a value which can be set on its own.
Names settable_keys(std::string_view schema) {
  Names paths;
  for (const auto& key : config::schema_keys(schema)) {
    if (key.value != "map" && !key.path.contains("[]")) paths.push_back(key.path);
  }
  return paths;
}

constexpr std::string_view kAnyName = "NAME";

/// The key with each of the names in the place of the first NAME; none if another one is left.
void add_named(const std::string& key, const Names& names, Names& out) {
  const auto at = key.find(kAnyName);
  if (key.find(kAnyName, at + kAnyName.size()) != std::string::npos) return;
  for (const auto& name : names) out.push_back(std::string(key).replace(at, kAnyName.size(), name));
}

/// What --set accepts. Names of roles, pools and variables are the experiment's.
Names setting_paths(const std::string& experiment) {
  Names roles;
  Names pools;
  Names paths;
  if (const auto read = experiment_in(experiment)) {
    for (const auto& role : read->roles) roles.push_back(role.name.value);
    for (const auto& pool : read->pools) pools.push_back(pool.name.value);
    for (const auto& [name, value] : read->vars) paths.push_back("vars." + name.value);
  }
  for (const auto& key : settable_keys(config::experiment_schema())) {
    if (key.starts_with("roles.NAME."))
      add_named(key, roles, paths);
    else if (key.starts_with("pools.NAME."))
      add_named(key, pools, paths);
    else if (!key.contains(kAnyName))
      paths.push_back(key);
  }
  for (const auto& key : settable_keys(config::site_schema())) {
    if (!key.contains(kAnyName)) paths.push_back("site." + key);
  }
  return paths;
}

/// Of a run that has begun: its nodes, its processes ("engine.3.1"), their roles, or its targets: processes,
/// roles and replicas.
Names names_in_run(const std::string& what, const std::string& run, const std::string& runs_dir) {
  std::set<std::string> names;
  if (run.empty()) return {};
  const auto view = session::view_run(runs_dir.empty() ? "runs" : runs_dir, run);
  if (!view) return {};
  for (const auto& process : view->processes) {
    const auto& name = process.name;
    if (what == "nodes") {
      if (!process.host.empty()) names.insert(process.host);
      continue;
    }
    if (what != "run-roles") names.insert(name);
    if (what == "processes") continue;
    auto dot = name.find('.');
    for (bool role = true; dot != std::string::npos && (role || what == "targets"); role = false) {
      names.insert(name.substr(0, dot));
      dot = name.find('.', dot + 1);
    }
  }
  return {names.begin(), names.end()};
}

struct Args {
  std::string what;
  std::string of;
  std::string in;
};

Names names_for(const Args& args, const Context& context) {
  const auto folders = launch::site_folders({}, context.environment, launch::find_install());
  if (args.what == "sites") return site_names(folders);
  if (args.what == "overlays") return overlay_names(args.of, args.in, folders);
  if (args.what == "runs") return run_names(args.of.empty() ? "runs" : args.of);
  if (args.what == "roles") return role_names(args.of);
  if (args.what == "settings") return setting_paths(args.of);
  return names_in_run(args.what, args.of, args.in);
}

int run(const Args& args, const CLI::App& app, const Context& context) {
  if (args.what == "bash" || args.what == "zsh") {
    context.console.result(script(app, args.what == "zsh"));
    return 0;
  }
  constexpr std::size_t kMostNames = 2000;  // more than a shell can offer
  auto names = names_for(args, context);
  names.resize(std::min(names.size(), kMostNames));
  std::string lines;
  for (const auto& name : names) lines += name + "\n";
  context.console.result(lines);
  return 0;
}

void add_completion(Command program, Context& context) {
  auto args = std::make_shared<Args>();
  const auto& app = program.parser();
  auto command = program.subcommand("completion", "Print the completion script for bash or zsh")
                     .examples({"nlaunch completion bash", "nlaunch completion zsh"});
  command.option("SHELL", args->what, "bash or zsh; the scripts give other words, to get names")
      .required()
      .one_of({"bash", "zsh", "sites", "overlays", "runs", "roles", "settings", "run-roles", "targets",
               "processes", "nodes"});
  command.option("OF", args->of, "Directory of the runs, site, experiment or run, which has the names")
      .hidden();
  command.option("IN", args->in, "Of a run: its directory of runs; of a site: the experiment").hidden();
  command.when_called(
      [args, &app, &context] { context.run = [args, &app, &context] { return run(*args, app, context); }; });
}

const Registered<cli::CommandEntry> completion_entry{
    {"completion", 200, add_completion, CommandGroup::set_up}};

}  // namespace

}  // namespace nlaunch::cli
