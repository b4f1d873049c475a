#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lint/shell/shell.h"

/// What a script's commands hand on: words as they arrive, scripts within words, variables within JSON.
namespace nlaunch::lint {

/// Stands in a text for what is known only when it runs; the shell's reader takes it for just that.
inline constexpr std::string_view kOnlyAtRunTime = "${_:-}";

bool is_variable_name(std::string_view text);

/// What a shell makes of a variable that no quotes hold together.
std::vector<std::string> split_words(std::string value);

/// A word of a command, as the command gets it.
struct Argument {
  std::string text;
  bool known = true;  ///< false: `text` has $NAME in places
  SourceSpan span;
};
/// The words of a command behind its name; a variable that no quotes hold together becomes several.
std::vector<Argument> arguments_of(const Command& command,
                                   const std::function<std::optional<std::string>(const Word&)>& value_of);

/// The word that a shell runs as a script: of `bash -c WORD`, wherever it stands in a command; or nullptr.
const Word* script_word(const Command& command);
/// Such a word as a text, with kOnlyAtRunTime for what is not known.
std::string script_text(const Word& word,
                        const std::function<std::optional<std::string>(std::string_view)>& value_of);

/// The variables of a Ray job, from the JSON of --runtime-env-json; of others than texts the value is not
/// known.
std::vector<std::pair<std::string, std::optional<std::string>>> runtime_variables(const std::string& json);

/// APPTAINERENV_NAME sets NAME within the container; nothing for other names.
std::optional<std::string> name_in_container(std::string_view name);

/// Where `name` stands in `file`, at `line` or soon behind it, at `column` or nearest to the line's begin;
/// `otherwise` where it does not.
SourceSpan place_of(std::string_view name, std::uint32_t line, std::uint32_t column,
                    const SourceSpan& otherwise);

}  // namespace nlaunch::lint
