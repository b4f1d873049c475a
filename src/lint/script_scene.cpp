#include "lint/script_scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/text.h"
#include "lint/script_steps.h"

namespace nlaunch::lint {
namespace {

bool is_variable_name(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

class Builder {
 public:
  explicit Builder(const std::shared_ptr<const SourceFile>& file) {
    scene_.files = {file};
    scene_.script = read_shell(file);
    scene_.environments.emplace_back();
  }

  Scene build() {
    const auto& script = *scene_.script;
    scene_.batch = batch_options(script);
    for (const auto& option : scene_.batch) {
      read_directive(option);
      read_export(option, true, false);
    }
    for (const auto& command : script.commands) read(command);
    // Exported in the end, a variable is in the environment from then on.
    for (auto& setting : settings()) setting.exported = setting.exported || exported_.contains(setting.name);
    scene_.readings.push_back({script.file->name, readable(script)});
    guess_machine();
    return std::move(scene_);
  }

 private:
  std::vector<Setting>& settings() { return scene_.environments.front().settings; }

  /// What a script sets and loads says where it is meant to run.
  void guess_machine() {
    for (const auto& setting : settings()) {
      const bool cxi =
          setting.name.starts_with("FI_CXI_") || (setting.name == "FI_PROVIDER" && setting.value == "cxi");
      if (cxi && !setting.unset) scene_.nics = "cxi";
    }
    const auto says_grace = [](std::string_view text) {
      return text.find("gh200") != std::string_view::npos || text.find("ghx4") != std::string_view::npos;
    };
    for (const auto& module : scene_.modules) {
      if (module.name.starts_with("brics/")) scene_.gpu = "GH200";  // Isambard-AI's own
    }
    for (const auto& option : scene_.batch) {
      const bool place = option.text.starts_with("--partition") || option.text.starts_with("--constraint");
      if (place && says_grace(text::lower(option.text))) scene_.gpu = "GH200";
    }
  }

  /// What the script hands to other programs as text: they may read a variable by its name.
  static std::string readable(const Script& script) {
    std::string text;
    for (const auto& name : script.uses) text += "$" + name + "\n";
    for (const auto& command : script.commands) {
      for (const auto& word : command.words) {
        if (word.quoted) text += word.shown() + "\n";
      }
      for (const auto& heredoc : command.heredocs) text += heredoc.text;
    }
    return text;
  }

  std::optional<std::string> known(std::string_view name) const {
    const auto found = values_.find(std::string(name));
    return found == values_.end() ? std::nullopt : found->second;
  }

  std::optional<std::string> value_of(const Word& word) const {
    return word.resolve([this](std::string_view name) { return known(name); });
  }

  void read_directive(const StepOption& option) {
    scene_.slurm = true;
    constexpr std::string_view kNodes = "--nodes=";
    if (!option.text.starts_with(kNodes)) return;
    const auto text = option.text.substr(kNodes.size());
    std::uint32_t nodes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), nodes);
    if (error == std::errc() && end == text.data() + text.size()) scene_.nodes = nodes;
  }

  void set(const Command& command, const Assignment& one, bool exported) {
    Setting setting;
    setting.name = one.name;
    if (!one.append && !one.array) setting.value = value_of(one.value);
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
    if (name == "srun") add_step(command);
    const auto program =
        name == "exec" && command.words.size() > 1 ? base_name(command.words[1].shown()) : name;
    if (program == "nlaunch") scene_.by_nlaunch = true;
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
        scene_.modules.push_back({*text, command.words[i].span});
    }
  }

  void read_arguments(const Command& command) {
    const auto name = command.name();
    bool env = name == "env";
    for (std::size_t i = 1; i < command.words.size(); ++i) {
      const auto text = value_of(command.words[i]);
      if (!text) continue;
      if (text->ends_with("/env") || *text == "env") env = true;
      const auto before = command.words[i - 1].constant().value_or("");
      if (env || before == "-x" || before == "-e" || before == "--env") {
        set_argument(*text, command.words[i].span, command.sure);
      } else if (text->starts_with("--env=")) {
        for (const auto& one : text::split(text->substr(6), ','))
          set_argument(one, command.words[i].span, command.sure);
      }
      if (env && !text->starts_with('-') && text->find('=') == std::string::npos && *text != "env")
        env = false;
    }
  }

  void add_step(const Command& command) {
    scene_.slurm = true;
    auto step = read_step(command, [this](const Word& word) { return value_of(word); });
    for (const auto& option : step.options) read_export(option, command.sure, true);
    if (!is_helper(step)) scene_.steps.push_back(std::move(step));
  }

  /// --export=ALL,NAME=VALUE
  void read_export(const StepOption& option, bool sure, bool one_command) {
    constexpr std::string_view kExport = "--export=";
    if (!option.text.starts_with(kExport)) return;
    for (const auto& one : text::split(option.text.substr(kExport.size()), ','))
      set_argument(one, option.span, sure, one_command);
  }

  Scene scene_;
  std::map<std::string, std::optional<std::string>> values_;
  std::set<std::string> exported_;
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

Scene script_scene(const std::shared_ptr<const SourceFile>& file) {
  return Builder(file).build();
}

Scene lines_scene(const std::shared_ptr<const SourceFile>& file, Lines kind) {
  Scene scene;
  scene.files = {file};
  auto& environment = scene.environments.emplace_back();
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
    environment.settings.push_back(std::move(setting));
  }
  return scene;
}

}  // namespace nlaunch::lint
