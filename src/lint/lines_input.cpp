#include <string_view>
#include <utility>

#include "base/text.h"
#include "lint/script_input.h"
#include "lint/script_text.h"

namespace nlaunch::lint {
namespace {

/// The value of a line in a .env file: the text inside quotes, or before a comment.
std::string_view without_quotes(std::string_view value) {
  if (value.empty() || (value[0] != '"' && value[0] != '\'')) {
    return value.starts_with('#') ? std::string_view() : text::trim(value.substr(0, value.find(" #")));
  }
  const auto last = value.rfind(value[0]);
  return last == 0 ? value : value.substr(1, last - 1);
}

}  // namespace

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
