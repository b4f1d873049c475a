#include "lint/script_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/script_gaps.h"
#include "lint/script_programs.h"
#include "lint/script_secrets.h"
#include "lint/script_sources.h"
#include "lint/script_text.h"

namespace nlaunch::lint {
namespace {

using shell::is_any_of;
using shell::program_name;
using shell::RecordedCommand;

/// What a script sets and loads tells where it is meant to run.
void guess_machine(LintInput& input) {
  for (const auto& environment : input.environments) {
    for (const auto& setting : environment.settings) {
      const bool cxi =
          setting.name.starts_with("FI_CXI_") || (setting.name == "FI_PROVIDER" && setting.value == "cxi");
      if (cxi && !setting.unset) input.nics = "cxi";
      if (setting.name == "FI_PROVIDER" && setting.value == "efa") input.nics = "efa";
    }
  }
  const auto says_grace = [](std::string_view text) {
    return text.find("gh200") != std::string_view::npos || text.find("ghx4") != std::string_view::npos;
  };
  for (const auto& module : input.modules) {
    if (module.name.starts_with("brics/")) input.gpu = "GH200";  // Isambard-AI's own
  }
  for (const auto& option : input.batch) {
    const bool place = option.text.starts_with("--partition") || option.text.starts_with("--constraint");
    if (place && says_grace(text::lower(option.text))) input.gpu = "GH200";
  }
}

/// The variables of a Ray job, from the JSON of --runtime-env-json; values other than strings are unknown.
std::vector<std::pair<std::string, std::optional<std::string>>> runtime_variables(const std::string& json) {
  std::vector<std::pair<std::string, std::optional<std::string>>> out;
  const auto environment = parse_ordered_json(json);
  if (!environment.is_object()) return out;
  const auto variables = environment.find("env_vars");
  if (variables == environment.end() || !variables->is_object()) return out;
  for (const auto& [name, value] : variables->items()) {
    std::optional<std::string> text;
    if (value.is_string()) text = value.get<std::string>();
    if (is_variable_name(name)) out.emplace_back(name, std::move(text));
  }
  return out;
}

/// One change that a shell made to a variable.
struct Change {
  enum class Kind { set, pass_on, unset };  // pass_on: `export NAME`
  Kind kind = Kind::set;
  std::optional<std::string> value;  ///< nullopt: not traced
  SourceSpan span;
};

/// Where the script was recorded; empty: outside a job.
std::string folder_of(const shell::Recording& recording) {
  constexpr std::string_view kFolder = "SLURM_SUBMIT_DIR=";
  const auto found = std::ranges::find_if(recording.environment,
                                          [&](const auto& entry) { return entry.starts_with(kFolder); });
  return found == recording.environment.end() ? "" : found->substr(kFolder.size());
}

/// `bash FILE`, `./FILE`
bool calls_file(const shell::Words& words) {
  return shell::is_shell(words[0]) ? shell::script_of_shell(words).has_value() : words[0].contains('/');
}

class RecordingReader {
 public:
  RecordingReader(const std::shared_ptr<const SourceFile>& file, const shell::Recording& recording,
                  const shell::Allocation& allocation, const std::string& path, const SbatchOptions& options)
      : recording_(recording),
        allocation_(allocation),
        input_(script_input(file, options)),
        sources_(file, path, folder_of(recording)) {
    input_.script->folder = sources_.folder();
    for (const auto& entry : recording.environment) {
      begin_.insert(entry);
      input_.began_with.insert(entry.substr(0, entry.find('=')));
    }
  }

  LintInput read() {
    for (const auto& one : recording_.traced) read_traced(one);
    auto& script = *input_.script;
    for (const auto& [shell, above] : recording_.shells_above) script.shells_above.emplace(shell, above);
    if (!script.commands.empty())  // the shell of the script starts before all others
      script.shell = std::ranges::min(script.commands, {}, &ScriptCommand::shell).shell;
    read_commands();
    for (auto& command : script.commands) {
      const auto& span = command.span;
      for (const auto& [one, background] : working_) {
        const auto& [path, line, program] = one;
        if (line != span.line || program != program_name(command.words[0]) ||
            sources_.of(path).file() != span.file)
          continue;
        command.works = true;
        command.background = background;
      }
    }
    // `bash run.sh &`, and the programs of run.sh.
    for (auto& command : script.commands)
      for (const auto& program : script.programs) {
        const bool calls = program.works && program.called && program.called.file != program.span.file &&
                           program.called.file == command.span.file &&
                           program.called.line == command.span.line;
        if (!calls || !calls_file(command.words)) continue;
        command.works = true;
        command.background = program.background;
      }
    add_exports_of_batch();
    add_local_variables();
    for (auto& environment : input_.environments) {
      for (auto& setting : environment.settings) rename_in_container(setting);
    }
    add_secrets(recording_, sources_, input_);
    std::vector<std::string> names;
    for (const auto& [name, changes] : changes_) names.push_back(name);
    add_gaps(recording_, names, sources_, input_);
    for (const auto& [path, lines] : sources_.all()) {
      input_.readings.push_back({lines.file()->name, names_read(lines)});
      if (path != sources_.path()) input_.files.push_back(lines.file());
    }
    guess_machine(input_);
    return std::move(input_);
  }

 private:
  static constexpr std::size_t kMostEnvironments = 64;

  // --- What the shells did ---

  void read_traced(const shell::TracedCommand& one) {
    auto words = shell::words_of(one.text);
    if (words.empty()) return;
    constexpr std::size_t kMostWords = 256;  // more than anyone writes by hand
    words.resize(std::min(words.size(), kMostWords));
    words = as_read(std::move(words));
    const auto& name = words[0];
    const auto place = [&](std::string_view of) {
      return sources_.place_of(of, one.script, one.line, one.line_of_text);
    };
    input_.script->commands.push_back(
        {words, sources_.of(one.script).whole(sources_.begin_of_command(one.script, one.line)), one.shell});
    if (is_any_of(name, {"export", "declare", "typeset", "readonly", "local"})) {
      declare(words, place);
    } else if (name == "unset") {
      for (std::size_t i = 1; i < words.size(); ++i) {
        if (is_variable_name(words[i]))
          changes_[words[i]].push_back({Change::Kind::unset, {}, place(words[i])});
      }
    } else if (name == "set") {
      for (std::size_t i = 1; i < words.size(); ++i) {
        const auto& word = words[i];
        const bool all = (word.size() > 1 && word[1] != '-' && word.find('a') != std::string::npos &&
                          (word[0] == '-' || word[0] == '+')) ||
                         word == "allexport";
        if (all) all_exported_ = word == "allexport" ? words[i - 1].starts_with('-') : word[0] == '-';
      }
    } else if (name == "module" || name == "ml") {
      load_modules(words, input_.script->commands.back().span);
    } else {
      (void)assign(name, all_exported_, place);
    }
  }

  template <class Place>
  void declare(const shell::Words& words, const Place& place) {
    bool exports = words[0] == "export" || all_exported_;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const auto& word = words[i];
      if (word.starts_with('-')) {
        exports = (exports || word.find('x') != std::string::npos) && word.find('n') == std::string::npos;
      } else if (!assign(word, exports, place) && exports && is_variable_name(word)) {
        exported_.insert(word);
        changes_[word].push_back({Change::Kind::pass_on, {}, place(word)});
      }
    }
  }

  /// NAME=value, NAME+=value; arrays are never in an environment.
  template <class Place>
  bool assign(const std::string& word, bool exports, const Place& place) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) return false;
    const bool appends = equals > 0 && word[equals - 1] == '+';
    const auto name = word.substr(0, equals - (appends ? 1 : 0));
    if (!is_variable_name(name)) return false;
    auto value = word.substr(equals + 1);
    if (value.starts_with('(')) return true;
    if (exports) exported_.insert(name);
    Change change{Change::Kind::set, appends ? std::nullopt : std::optional(std::move(value)), place(name)};
    // bash traces `export A=1` twice: as written, and as the assignment.
    auto& all = changes_[name];
    const bool told = !all.empty() && all.back().kind == change.kind && all.back().value == change.value &&
                      all.back().span.line == change.span.line && all.back().span.file == change.span.file;
    if (!told) all.push_back(std::move(change));
    return true;
  }

  void load_modules(const shell::Words& words, const SourceSpan& span) {
    std::size_t first = 1;
    if (words[0] == "module") {
      if (words.size() < 2 || !is_any_of(words[1], {"load", "add", "swap", "switch"})) return;
      first = 2;
    }
    for (auto i = first; i < words.size(); ++i) {
      const bool known = std::ranges::find_if(input_.modules, [&](const Module& one) {
                           return one.name == words[i] && one.span.line == span.line;
                         }) != input_.modules.end();
      if (!known && !words[i].starts_with('-') && words[i] != "load")
        input_.modules.push_back({words[i], span});
    }
  }

  // --- What they started ---

  void read_commands() {
    std::vector<bool> works(recording_.commands.size());  // itself, or what it starts
    for (std::size_t i = 0; i < recording_.commands.size(); ++i) {
      const auto& command = recording_.commands[i];
      for (const auto& entry : command.environment) started_with_.insert(entry.substr(0, entry.find('=')));
      const auto name = program_name(command.argv.at(0));
      if (name == "nlaunch") input_.by_nlaunch = true;
      if (command.fate != shell::Fate::recorded || command.output_is_read || is_helper(command.argv))
        continue;
      for (auto at = std::optional(i); at; at = recording_.commands[*at].launcher) {
        works[*at] = true;
        const auto& one = recording_.commands[*at];
        const auto line = sources_.begin_of_command(one.script, one.line);
        working_.insert_or_assign({one.script, line, program_name(as_read(one.argv)[0])}, one.background);
      }
      add_environment(command);
    }
    add_programs(recording_, allocation_, sources_, input_);
    for (const auto& one : recording_.teed)
      input_.script->teed.push_back(
          {one.name, sources_.of(one.script).whole(sources_.begin_of_command(one.script, one.line))});
    for (std::size_t i = 0; i < recording_.commands.size(); ++i) {
      if (program_name(recording_.commands[i].argv[0]) == "srun") {
        input_.slurm = true;
        if (works[i]) add_step(i);
      }
    }
    if (input_.environments.size() > 1) {
      input_.environments.erase(
          input_.environments.begin());  // the empty environment of a script that starts nothing
    }
    add_last_exports(input_.environments.size() == 1 && known_.empty());
  }

  /// The settings that the script made for a command; commands with the same settings share an environment.
  void add_environment(const RecordedCommand& command) {
    if (input_.environments.size() > kMostEnvironments) return;
    Environment environment;
    std::set<std::string, std::less<>> names;
    for (const auto& entry : command.environment) {
      const auto equals = entry.find('=');
      const auto name = entry.substr(0, equals);
      names.insert(name);
      if (begin_.contains(entry) || equals == std::string::npos || name == "PWD") continue;
      if (auto setting = setting_of(name, entry.substr(equals + 1), command))
        environment.settings.push_back(std::move(*setting));
    }
    for (const auto& [name, changes] : changes_) {
      if (names.contains(name) || changes.back().kind != Change::Kind::unset) continue;
      environment.settings.push_back({.name = name, .unset = true, .span = changes.back().span});
    }
    for (auto at = std::optional(&command); at;
         at = (*at)->launcher ? std::optional(&recording_.commands[*(*at)->launcher]) : std::nullopt) {
      add_arguments(**at, environment);
      add_lost(**at, environment);
    }
    std::ranges::stable_sort(environment.settings, {},
                             [](const Setting& one) { return std::pair(one.span.line, one.span.column); });
    std::string key;
    for (const auto& one : environment.settings)
      key += fmt::format("{}\n{}\n{}\n{}\n", one.name, one.value.value_or("\x01"), one.span.line, one.unset);
    for (const auto& name : environment.lost) key += name + "\n";
    if (known_.insert(key).second) input_.environments.push_back(std::move(environment));
  }

  std::optional<Setting> setting_of(const std::string& name, const std::string& value,
                                    const RecordedCommand& command) {
    Setting setting{.name = name, .value = known(value)};
    const auto found = changes_.find(name);
    const auto last = [&](const auto& fits) -> const Change* {
      if (found == changes_.end()) return nullptr;
      const auto change = std::ranges::find_if(found->second.rbegin(), found->second.rend(), fits);
      return change == found->second.rend() ? nullptr : &*change;
    };
    const auto* change = last([&](const Change& one) { return one.value == value; });
    const auto& lines = sources_.of(command.script);
    const auto here = lines.find(name, command.line, lines.end_of_command(command.line));
    if (change == nullptr && here) {  // env NAME=VALUE program
      setting.span = here;
      setting.one_command = true;
    } else {
      if (change == nullptr) change = last([](const Change& one) { return one.kind != Change::Kind::unset; });
      if (change == nullptr && is_of_login(name)) return std::nullopt;
      setting.span =
          change != nullptr ? change->span : sources_.place_in_main(name, lines.whole(command.line));
      const auto line = setting.span.source_line();
      setting.one_command = change == nullptr ? line.find("export " + name) == std::string::npos
                                              : !exported_.contains(name) && !is_of_begin(name);
    }
    if (value.empty() && is_computed(setting.span)) setting.value = std::nullopt;
    return setting;
  }

  bool is_of_begin(const std::string& name) const { return input_.began_with.contains(name); }

  /// What Slurm, a module, a virtual environment or the recorder sets.
  static bool is_of_login(std::string_view name) {
    constexpr std::array<std::string_view, 7> kBegins{"SLURM", "OMPI_",  "CONDA_", "LMOD_",
                                                      "BASH",  "MODULE", "_"};
    return is_any_of(name, {"PATH", "LD_LIBRARY_PATH", "MANPATH", "VIRTUAL_ENV", "HOSTNAME", "HOME", "PWD",
                            "OLDPWD", "SHLVL", "LOADEDMODULES", "PS1"}) ||
           std::ranges::any_of(kBegins, [&](std::string_view begin) { return name.starts_with(begin); });
  }

  /// The line sets it to something that is known only when it runs.
  static bool is_computed(const SourceSpan& span) {
    const auto line = span.source_line();
    const auto behind = std::string_view(line).substr(std::min<std::size_t>(line.size(), span.column));
    return behind.find_first_of("$`") != std::string_view::npos;
  }

  /// nullopt if the value differs when the script really runs.
  std::optional<std::string> known(const std::string& value) const {
    const bool of_folder =
        sources_.folder().rfind('/') > 0 && value.find(sources_.folder()) != std::string::npos;
    return is_made_up(value) || of_folder ? std::nullopt : std::optional(value);
  }

  /// What the script exported but none of its programs got: everything, for a script that is meant to be
  /// sourced.
  void add_last_exports(bool starts_nothing) {
    auto& settings = input_.environments.back().settings;
    for (const auto& [name, changes] : changes_) {
      const bool got = !starts_nothing &&
                       std::ranges::any_of(input_.environments,
                                           [&](const Environment& one) { return one.find(name) != nullptr; });
      if (!exported_.contains(name) || got) continue;
      for (const auto& change : changes) {
        if (change.kind == Change::Kind::pass_on) continue;
        const bool unset = change.kind == Change::Kind::unset;
        if (unset && !starts_nothing) continue;
        Setting setting{.name = name, .unset = unset, .span = change.span};
        const bool computed = change.value && change.value->empty() && is_computed(change.span);
        if (change.value && !computed) setting.value = known(*change.value);
        settings.push_back(std::move(setting));
      }
    }
    std::ranges::stable_sort(settings, {},
                             [](const Setting& one) { return std::pair(one.span.line, one.span.column); });
  }

  /// Shell variables that no program saw.
  void add_local_variables() {
    for (const auto& [name, changes] : changes_) {
      if (exported_.contains(name) || started_with_.contains(name) || is_of_begin(name)) continue;
      const auto& change = changes.back();
      if (change.kind != Change::Kind::set) continue;
      input_.environments.front().settings.push_back(
          {.name = name, .value = change.value, .exported = false, .span = change.span});
    }
  }

  // --- Variables among the words of commands ---

  void add_argument(std::string_view text, const RecordedCommand& command, Environment& environment) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos || !is_variable_name(text.substr(0, equals))) return;
    Setting setting{.name = std::string(text.substr(0, equals)), .one_command = true, .in_words = true};
    setting.value = known(std::string(text.substr(equals + 1)));
    setting.span = sources_.place_of(setting.name, command.script, command.line);
    // $DOCKER_RUN python a.py: the line that sets DOCKER_RUN has it.
    if (setting.span.source_line().find(setting.name) == std::string::npos)
      setting.span = sources_.place_in_main(setting.name, setting.span);
    if (setting.value && setting.value->empty() && is_computed(setting.span)) setting.value = std::nullopt;
    environment.settings.push_back(std::move(setting));
  }

  /// docker -e NAME=VALUE, apptainer --env A=B,C=D, sbatch --export=ALL,NAME=VALUE.
  void add_arguments(const RecordedCommand& command, Environment& environment) {
    const auto& argv = command.argv;
    const auto program = program_name(argv[0]);
    const bool container = is_any_of(program, {"docker", "podman", "podman-hpc", "apptainer", "singularity"});
    for (std::size_t i = 1; i < argv.size(); ++i) {
      const std::string_view word = argv[i];
      const std::string_view next = i + 1 < argv.size() ? std::string_view(argv[i + 1]) : "";
      if (container && is_any_of(word, {"-e", "--env"})) {
        for (const auto& one : text::split(next, ',')) add_argument(one, command, environment);
      }
      if (container && word.starts_with("--env=")) {
        for (const auto& one : text::split(word.substr(6), ',')) add_argument(one, command, environment);
      }
      if (program == "sbatch" && word.starts_with("--export=")) {
        for (const auto& one : text::split(word.substr(9), ',')) add_argument(one, command, environment);
      }
      constexpr std::string_view kRuntime = "--runtime-env-json";
      const bool joined = word.starts_with(kRuntime) && word.substr(kRuntime.size()).starts_with('=');
      if (!joined && word != kRuntime) continue;
      for (auto& [name, value] :
           runtime_variables(std::string(joined ? word.substr(kRuntime.size() + 1) : next))) {
        Setting setting{.name = name, .one_command = true, .in_words = true};
        if (value) setting.value = known(*value);
        setting.span = sources_.place_of(name, command.script, command.line);
        if (setting.value && setting.value->empty()) setting.value = std::nullopt;
        environment.settings.push_back(std::move(setting));
      }
    }
  }

  /// #SBATCH --export=ALL,NAME=VALUE
  void add_exports_of_batch() {
    constexpr std::string_view kExport = "--export=";
    for (const auto& option : input_.batch) {
      if (!option.text.starts_with(kExport)) continue;
      for (const auto& one : text::split(option.text.substr(kExport.size()), ',')) {
        const auto equals = one.find('=');
        if (equals == std::string::npos || !is_variable_name(one.substr(0, equals))) continue;
        for (auto& environment : input_.environments) {
          environment.settings.insert(
              environment.settings.begin(),
              {.name = one.substr(0, equals), .value = one.substr(equals + 1), .span = option.span});
        }
      }
    }
  }

  /// A Ray job gets the cluster's environment and its runtime environment: what the script sets reaches only
  /// the cluster programs that the script starts itself.
  void add_lost(const RecordedCommand& command, Environment& environment) const {
    const auto& argv = command.argv;
    if (argv.size() < 3 || program_name(argv[0]) != "ray" || argv[1] != "job" || argv[2] != "submit") return;
    // A file: its content is unknown.
    if (std::ranges::any_of(argv, [](const auto& word) {
          return word == "--runtime-env" || word.starts_with("--runtime-env=");
        }))
      return;
    for (const auto& setting : environment.settings) {
      if (setting.one_command || setting.unset || !exported_.contains(setting.name)) continue;
      const bool passed = std::ranges::any_of(
          environment.settings, [&](const Setting& one) { return one.in_words && one.name == setting.name; });
      const bool of_cluster = std::ranges::any_of(recording_.commands, [&](const RecordedCommand& one) {
        return one.argv.size() > 1 && program_name(one.argv[0]) == "ray" && one.argv[1] == "start" &&
               std::ranges::any_of(one.environment, [&](const std::string& entry) {
                 return entry.starts_with(setting.name + "=");
               });
      });
      if (!passed && !of_cluster) environment.lost.insert(setting.name);
    }
  }

  void add_step(std::size_t index) {
    const auto& command = recording_.commands[index];
    Step step;
    for (const auto& one : recording_.commands) {
      if (one.launcher != index) continue;
      step.several = step.several || (one.task && one.task->rank > 0);
      for (const auto& entry : one.environment) step.exported.insert(entry.substr(0, entry.find('=')));
    }
    const auto& lines = sources_.of(command.script);
    const auto begin = sources_.begin_of_command(command.script, command.line);
    step.span = lines.whole(begin);
    const shell::Words words = shell::rest(command.argv, 1);
    const auto program = read_options(words, step.span, step.options, nullptr);
    step.argv = shell::rest(words, program);
    for (auto& option : step.options) {
      const auto last = lines.end_of_command(begin);
      const auto found = lines.find_text(option.text, begin, last);
      if (found.source_line().find(option.text) != std::string::npos) option.span = found;
    }
    // An unset variable contains no option here, but may contain some elsewhere.
    step.text = lines.command(begin);
    const auto program_at = step.argv.empty() ? std::string::npos : step.text.find(" " + step.argv[0]);
    for (const auto& word : text::split(step.text.substr(0, program_at), ' ')) {
      auto name = std::string_view(word);
      name = name.substr(std::min(name.find_first_not_of("\"{"), name.size()));
      if (!name.starts_with('$')) continue;
      name.remove_prefix(1);
      if (name.starts_with('{')) name.remove_prefix(1);
      const auto end =
          name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
      const std::string variable(name.substr(0, end));
      if (is_variable_name(variable) && !changes_.contains(variable) && !is_of_begin(variable))
        step.open_ended = true;
    }
    const bool told = std::ranges::any_of(input_.steps, [&](const Step& one) {
      return one.span.file == step.span.file && one.span.line == step.span.line && one.argv == step.argv;
    });
    if (!told) input_.steps.push_back(std::move(step));
  }

  const shell::Recording& recording_;
  const shell::Allocation& allocation_;
  LintInput input_;
  ScriptSources sources_;
  std::set<std::string, std::less<>> begin_;  ///< the script's initial environment
  std::map<std::string, std::vector<Change>> changes_;
  std::set<std::string> exported_;
  std::set<std::string> started_with_;  ///< names in the environment of any command
  std::set<std::string> known_;         ///< environments
  /// Commands that do the work, by script, line and program: whether they run in the background.
  std::map<std::tuple<std::string, std::uint32_t, std::string>, bool> working_;
  bool all_exported_ = false;
};

}  // namespace

LintInput script_input(const std::shared_ptr<const SourceFile>& file, const shell::Recording& recording,
                       const shell::Allocation& allocation, const std::string& path,
                       const SbatchOptions& options) {
  return RecordingReader(file, recording, allocation, path, options).read();
}

}  // namespace nlaunch::lint
