#include "lint/script_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/text.h"
#include "lint/script_arguments.h"
#include "lint/script_steps.h"

namespace nlaunch::lint {
namespace {

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// What is set for a container's inside is a setting of the name that it has there.
void rename_in_container(Setting& setting) {
  const auto inside = name_in_container(setting.name);
  if (!inside) return;
  setting.name = *inside;
  setting.one_command = true;  // what the script itself sets does not meet it
}

class ScriptInputBuilder {
 public:
  explicit ScriptInputBuilder(const std::shared_ptr<const SourceFile>& file, std::size_t depth = 0)
      : depth_(depth) {
    input_.files = {file};
    input_.script = read_shell(file);
    input_.environments.emplace_back();
  }

  LintInput build() {
    const auto& script = *input_.script;
    input_.batch = batch_options(script);
    for (const auto& option : input_.batch) {
      read_directive(option);
      read_export(option, true, false);
    }
    for (const auto& command : script.commands) read(command);
    // Exported in the end, a variable is in the environment from then on.
    for (auto& setting : settings()) setting.exported = setting.exported || exported_.contains(setting.name);
    for (auto& setting : settings()) rename_in_container(setting);
    input_.readings.push_back({script.file->name, readable(script)});
    guess_machine();
    return std::move(input_);
  }

 private:
  std::vector<Setting>& settings() { return input_.environments.front().settings; }

  /// What a script sets and loads says where it is meant to run.
  void guess_machine() {
    for (const auto& setting : settings()) {
      const bool cxi =
          setting.name.starts_with("FI_CXI_") || (setting.name == "FI_PROVIDER" && setting.value == "cxi");
      if (cxi && !setting.unset) input_.nics = "cxi";
    }
    const auto says_grace = [](std::string_view text) {
      return text.find("gh200") != std::string_view::npos || text.find("ghx4") != std::string_view::npos;
    };
    for (const auto& module : input_.modules) {
      if (module.name.starts_with("brics/")) input_.gpu = "GH200";  // Isambard-AI's own
    }
    for (const auto& option : input_.batch) {
      const bool place = option.text.starts_with("--partition") || option.text.starts_with("--constraint");
      if (place && says_grace(text::lower(option.text))) input_.gpu = "GH200";
    }
  }

  /// What the script hands to other programs as text: they may read a variable by its name. What is read as
  /// a script of its own has readings of its own.
  std::string readable(const Script& script) const {
    std::string text;
    for (const auto& name : script.uses) text += "$" + name + "\n";
    for (const auto& command : script.commands) {
      for (const auto& word : command.words) {
        if (word.quoted && !scripts_.contains(&word)) text += word.shown() + "\n";
      }
      for (const auto& heredoc : command.heredocs) text += heredoc.text;
    }
    return text;
  }

  /// In single quotes what is known only at run time looks like a text.
  static std::optional<std::string> without_gaps(std::optional<std::string> value) {
    if (value && value->find(kOnlyAtRunTime) != std::string::npos) return std::nullopt;
    return value;
  }

  std::optional<std::string> known(std::string_view name) const {
    const auto found = values_.find(std::string(name));
    return found == values_.end() ? std::nullopt : found->second;
  }

  std::optional<std::string> value_of(const Word& word) const {
    return word.resolve([this](std::string_view name) { return known(name); });
  }

  void read_directive(const StepOption& option) {
    input_.slurm = true;
    constexpr std::string_view kNodes = "--nodes=";
    if (!option.text.starts_with(kNodes)) return;
    const auto text = option.text.substr(kNodes.size());
    std::uint32_t nodes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), nodes);
    if (error == std::errc() && end == text.data() + text.size()) input_.nodes = nodes;
  }

  void set(const Command& command, const Assignment& one, bool exported) {
    Setting setting;
    setting.name = one.name;
    if (!one.append && !one.array) setting.value = without_gaps(value_of(one.value));
    setting.exported = exported;
    setting.sure = command.sure;
    setting.one_command = !command.words.empty() && !is_declaration(command.name());
    setting.span = one.span;
    if (!setting.one_command) {
      // A value under a condition is one of two: nobody knows which.
      values_[one.name] = command.sure ? setting.value : std::nullopt;
    }
    settings().push_back(std::move(setting));
  }

  /// NAME=VALUE as an argument: of env, of mpirun's -x, of a container's --env.
  void set_argument(const std::string& text, const SourceSpan& span, bool sure, bool one_command = true) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || !is_variable_name(text.substr(0, equals))) return;
    Setting setting;
    setting.name = text.substr(0, equals);
    if (text.find('$') == std::string::npos) setting.value = text.substr(equals + 1);
    setting.sure = sure;
    setting.one_command = one_command;
    setting.span = span;
    settings().push_back(std::move(setting));
  }

  static bool is_declaration(std::string_view name) {
    return name == "export" || name == "declare" || name == "typeset" || name == "readonly" ||
           name == "local";
  }

  void read(const Command& command) {
    const auto name = command.name();
    if (is_declaration(name)) return declare(command, name);
    for (const auto& one : command.assignments) set(command, one, all_exported_ || !command.words.empty());
    if (name == "unset") return unset(command);
    if (name == "set") return set_option(command);
    if (name == "module" || name == "ml") return load_modules(command, name);
    read_arguments(command);
    read_inner(command);
    look_for_secrets(command);
    if (name == "srun") add_step(command);
    const auto program =
        name == "exec" && command.words.size() > 1 ? base_name(command.words[1].shown()) : name;
    if (program == "nlaunch") input_.by_nlaunch = true;
  }

  void declare(const Command& command, const std::string& name) {
    bool exports = name == "export";
    for (const auto& word : command.words) {
      const auto text = word.constant().value_or("");
      if (text.starts_with('-')) {
        exports = (exports || text.find('x') != std::string::npos) && text.find('n') == std::string::npos;
      } else if (exports && is_variable_name(text) && &word != &command.words.front()) {
        exported_.insert(text);
      }
    }
    for (const auto& one : command.assignments) set(command, one, exports || all_exported_);
    declare_words(command, exports || all_exported_);
  }

  /// `export "NAME=value"`: in quotes it is a word, and assigns all the same.
  void declare_words(const Command& command, bool exported) {
    for (const auto& word : arguments_of(command, [this](const Word& one) { return value_of(one); })) {
      const auto equals = word.text.find('=');
      if (equals == std::string::npos || !is_variable_name(word.text.substr(0, equals))) continue;
      Setting setting;
      setting.name = word.text.substr(0, equals);
      if (word.known) setting.value = without_gaps(word.text.substr(equals + 1));
      setting.exported = exported;
      setting.sure = command.sure;
      setting.span = word.span;
      values_[setting.name] = command.sure ? setting.value : std::nullopt;
      settings().push_back(std::move(setting));
    }
  }

  void unset(const Command& command) {
    for (const auto& word : command.words) {
      const auto text = word.constant().value_or("");
      if (&word == &command.words.front() || !is_variable_name(text)) continue;
      Setting setting;
      setting.name = text;
      setting.unset = true;
      setting.sure = command.sure;
      setting.span = word.span;
      settings().push_back(std::move(setting));
      values_.erase(text);
    }
  }

  void set_option(const Command& command) {
    for (std::size_t i = 1; i < command.words.size(); ++i) {
      const auto text = command.words[i].constant().value_or("");
      const auto before = command.words[i - 1].constant().value_or("");
      const bool option = text.size() > 1 && (text[0] == '-' || text[0] == '+');
      if (option && text[1] != '-' && text.find('a') != std::string::npos) all_exported_ = text[0] == '-';
      if (text == "allexport" && before.ends_with('o')) all_exported_ = before[0] == '-';
    }
  }

  void load_modules(const Command& command, const std::string& name) {
    std::size_t first = 1;
    if (name == "module") {
      const auto verb = command.words.size() > 1 ? command.words[1].constant().value_or("") : "";
      if (verb != "load" && verb != "add" && verb != "swap" && verb != "switch") return;
      first = 2;
    }
    for (auto i = first; i < command.words.size(); ++i) {
      const auto text = value_of(command.words[i]);
      if (text && !text->starts_with('-') && *text != "load")
        input_.modules.push_back({*text, command.words[i].span});
    }
  }

  void read_arguments(const Command& command) {
    const auto words = arguments_of(command, [this](const Word& word) { return value_of(word); });
    bool env = command.name() == "env";
    std::string before;
    for (const auto& word : words) {
      const auto option = std::exchange(before, word.text);
      if (read_runtime_environment(word, option, command.sure) || !word.known) continue;
      const auto& text = word.text;
      const bool is_env = text == "env" || text.ends_with("/env");
      if (is_env) env = true;
      if (env || option == "-x" || option == "-e" || option == "--env") {
        set_argument(text, word.span, command.sure);
      } else if (text.starts_with("--env=")) {
        for (const auto& one : text::split(text.substr(6), ',')) set_argument(one, word.span, command.sure);
      }
      const bool of_option = option == "-u" || option == "-C";  // env -u NAME
      if (env && !text.starts_with('-') && !of_option && text.find('=') == std::string::npos && !is_env)
        env = false;
    }
  }

  /// The variables that `ray job submit --runtime-env-json` gives to a job.
  bool read_runtime_environment(const Argument& word, std::string_view before, bool sure) {
    constexpr std::string_view kOption = "--runtime-env-json";
    const bool joined = word.text.starts_with(kOption) && word.text.substr(kOption.size()).starts_with('=');
    if (!joined && before != kOption) return false;
    const auto json = joined ? word.text.substr(kOption.size() + 1) : word.text;
    for (auto& [name, value] : runtime_variables(json)) {
      Setting setting;
      setting.name = name;
      setting.value = std::move(value);
      setting.sure = sure;
      setting.one_command = true;
      setting.span = place_of(name, word.span.line, word.span.column, word.span);
      settings().push_back(std::move(setting));
    }
    return true;
  }

  /// `bash -c 'export NAME=VALUE; program'`: what a shell within the command does, for that command alone.
  void read_inner(const Command& command) {
    constexpr std::size_t kDeepest = 4;
    const auto* word = depth_ < kDeepest ? script_word(command) : nullptr;
    if (word == nullptr) return;
    scripts_.insert(word);
    const auto text = script_text(*word, [this](std::string_view name) { return known(name); });
    ScriptInputBuilder inner(std::make_shared<const SourceFile>(SourceFile{input_.script->file->name, text}),
                             depth_ + 1);
    for (const auto& setting : settings()) {
      if (!setting.exported && !exported_.contains(setting.name)) continue;
      inner.exported_.insert(setting.name);
      if (const auto found = values_.find(setting.name); found != values_.end()) inner.values_.insert(*found);
    }
    auto input = inner.build();
    // Each place is looked for in the file: of very many the word is place enough.
    const bool few = input.environments.front().settings.size() < 1000;
    const auto place = [&](const SourceSpan& span, std::string_view name) {
      if (!few) return word->span;
      const auto column = span.line == 1 ? word->span.column + span.column : span.column;
      return place_of(name, word->span.line + span.line - 1, column, word->span);
    };
    for (auto& setting : input.environments.front().settings) {
      setting.span = place(setting.span, setting.name);
      setting.sure = setting.sure && command.sure;
      setting.one_command = true;
      settings().push_back(std::move(setting));
    }
    for (auto& module : input.modules) input_.modules.push_back({module.name, word->span});
    for (auto& secret : input.secrets)
      input_.secrets.push_back({std::move(secret.what), std::move(secret.value), word->span});
    std::ranges::move(input.readings, std::back_inserter(input_.readings));
    input_.by_nlaunch = input_.by_nlaunch || input.by_nlaunch;
  }

  /// Secrets among a command's words, as far as they are not a setting's value already.
  void look_for_secrets(const Command& command) {
    for (auto& secret : exposed_secrets(command)) {
      const bool told = std::ranges::any_of(settings(), [&](const Setting& setting) {
        return setting.span.line == secret.span.line && setting.value == secret.value &&
               setting.holds_secret();
      });
      if (!told) input_.secrets.push_back(std::move(secret));
    }
  }

  void add_step(const Command& command) {
    input_.slurm = true;
    auto step = read_step(command, [this](const Word& word) { return value_of(word); });
    for (const auto& option : step.options) read_export(option, command.sure, true);
    if (!is_helper(step)) input_.steps.push_back(std::move(step));
  }

  /// --export=ALL,NAME=VALUE
  void read_export(const StepOption& option, bool sure, bool one_command) {
    constexpr std::string_view kExport = "--export=";
    if (!option.text.starts_with(kExport)) return;
    for (const auto& one : text::split(option.text.substr(kExport.size()), ','))
      set_argument(one, option.span, sure, one_command);
  }

  LintInput input_;
  std::map<std::string, std::optional<std::string>> values_;
  std::set<std::string> exported_;
  std::set<const Word*> scripts_;  ///< words that were read as scripts
  std::size_t depth_ = 0;          ///< of a script within a script
  bool all_exported_ = false;
};

/// The value of a .env file's line: what its quotes hold, or what stands before a comment.
std::string_view without_quotes(std::string_view value) {
  if (value.empty() || (value[0] != '"' && value[0] != '\'')) {
    return value.starts_with('#') ? std::string_view() : text::trim(value.substr(0, value.find(" #")));
  }
  const auto last = value.rfind(value[0]);
  return last == 0 ? value : value.substr(1, last - 1);
}

}  // namespace

LintInput script_input(const std::shared_ptr<const SourceFile>& file) {
  return ScriptInputBuilder(file).build();
}

LintInput lines_scene(const std::shared_ptr<const SourceFile>& file, Lines kind) {
  LintInput input;
  input.files = {file};
  auto& environment = input.environments.emplace_back();
  std::uint32_t number = 0;
  for (auto line : text::split(file->text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    auto rest = std::string_view(line);
    std::uint32_t column = 1;
    if (kind == Lines::dotenv) {
      rest = text::trim(rest);
      if (rest.starts_with("export ")) rest = text::trim(rest.substr(7));
      column += static_cast<std::uint32_t>(rest.data() - line.data());
    }
    const auto equals = rest.find('=');
    if (rest.starts_with('#') || equals == std::string_view::npos) continue;
    Setting setting;
    setting.name = rest.substr(0, equals);
    auto value = rest.substr(equals + 1);
    if (kind == Lines::dotenv) value = without_quotes(value);
    if (kind == Lines::nccl_conf || value.find('$') == std::string_view::npos) setting.value = value;
    setting.span = {file, number, column, static_cast<std::uint32_t>(setting.name.size())};
    if (kind == Lines::dotenv && !is_variable_name(setting.name)) continue;
    if (kind == Lines::dotenv) rename_in_container(setting);
    environment.settings.push_back(std::move(setting));
  }
  return input;
}

}  // namespace nlaunch::lint
