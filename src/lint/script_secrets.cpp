#include "lint/script_secrets.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/secrets.h"
#include "lint/secrets.h"
#include "shell/words.h"

namespace nlaunch::lint {
namespace {

class SecretReader {
 public:
  SecretReader(const shell::Recording& recording, ScriptSources& sources, LintInput& input)
      : recording_(recording), sources_(sources), input_(input) {}

  void read() {
    for (const auto& command : input_.script->commands) add_in_words(command.words, command.span);
    for (const auto& command : recording_.commands) {
      if (sources_.of(command.script).count() == 0) continue;
      add_in_words(command.argv, sources_.of(command.script).whole(command.line));
      add_given(command);
    }
    const auto& main = sources_.main();
    for (std::uint32_t number = 1; number <= main.count(); ++number) {
      const auto line = main.line(number);
      const auto password = password_in(line);
      const auto key = key_in(line);
      if (!password.empty() && line.find('$') == std::string_view::npos)
        add({"the password in a URL", std::string(password), main.whole(number)});
      if (!key.empty()) add({"what looks like a key", std::string(key), main.whole(number)});
    }
  }

 private:
  void add_in_words(const shell::Words& words, const SourceSpan& span) {
    for (auto& secret : exposed_secrets(words, span)) add(std::move(secret));
  }

  /// An argument that is the value of a variable, as in --key $WANDB_API_KEY.
  void add_given(const shell::RecordedCommand& command) {
    for (const auto& entry : command.environment) {
      const auto equals = std::min(entry.find('='), entry.size() - 1);
      const auto name = entry.substr(0, equals);
      const auto value = entry.substr(equals + 1);
      const bool secret = looks_like_secret(name) && may_be_secret(value) && !is_to_be_filled_in(value);
      if (!secret || sources_.main().file()->text.find(value) != std::string::npos) continue;
      for (const auto& word : shell::rest(command.argv, 1)) {
        if (word != value && !(word.starts_with("--") && word.ends_with("=" + value))) continue;
        const bool told =
            std::ranges::any_of(input_.secrets, [&](const ExposedSecret& one) { return one.value == value; });
        const auto& lines = sources_.of(command.script);
        const auto last = lines.end_of_command(command.line);
        if (!told)
          input_.secrets.push_back(
              {"the value of " + name, value, lines.find_text("$" + name, command.line, last), true});
      }
    }
  }

  /// Adds a secret that is in the file and is not already reported as a setting's value.
  void add(ExposedSecret secret) {
    if (!secret.span.file || secret.span.file->text.find(secret.value) == std::string::npos) return;
    for (const auto& [path, lines] : sources_.all()) {
      if (lines.file() == secret.span.file)
        secret.span = lines.find_text(secret.value, secret.span.line, lines.end_of_command(secret.span.line));
    }
    for (const auto& environment : input_.environments) {
      for (const auto& setting : environment.settings) {
        if (setting.holds_secret() && setting.value->find(secret.value) != std::string::npos) return;
      }
    }
    const bool told = std::ranges::any_of(input_.secrets, [&](const ExposedSecret& one) {
      return one.value == secret.value || one.value.find(secret.value) != std::string::npos;
    });
    if (!told) input_.secrets.push_back(std::move(secret));
  }

  const shell::Recording& recording_;
  ScriptSources& sources_;
  LintInput& input_;
};

}  // namespace

void add_secrets(const shell::Recording& recording, ScriptSources& sources, LintInput& input) {
  SecretReader(recording, sources, input).read();
}

}  // namespace nlaunch::lint
