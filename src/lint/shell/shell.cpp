#include "lint/shell/shell.h"

#include "lint/shell/reader.h"

namespace nlaunch::lint {
namespace {

// A=$A$A, line after line, is twice as long each time.
constexpr std::size_t kLongestExpanded = 1024;

}  // namespace

std::optional<std::string> Word::constant() const {
  return resolve([](std::string_view) { return std::nullopt; });
}

std::optional<std::string> Word::resolve(
    const std::function<std::optional<std::string>(std::string_view)>& value_of) const {
  std::string out;
  for (const auto& part : parts) {
    if (part.kind == Part::Kind::unknown) return std::nullopt;
    if (part.kind == Part::Kind::text) {
      out += part.text;
      continue;
    }
    const auto value = value_of(part.text);
    if (!value || out.size() + value->size() > kLongestExpanded) return std::nullopt;
    out += *value;
  }
  return out;
}

std::string Word::shown() const {
  std::string out;
  for (const auto& part : parts) {
    if (part.kind == Part::Kind::text) out += part.text;
    if (part.kind == Part::Kind::variable) out += "$" + part.text;
    if (part.kind == Part::Kind::unknown) out += "$…";
  }
  return out;
}

std::string Command::name() const {
  if (words.empty()) return {};
  const auto text = words.front().constant().value_or("");
  return text.substr(text.rfind('/') + 1);
}

Script read_shell(const std::shared_ptr<const SourceFile>& file) {
  Script script;
  script.file = file;
  std::set<std::string> uses;
  ShellReader(script, uses, 0, file->text.size(), 0).read();
  script.uses.assign(uses.begin(), uses.end());
  return script;
}

}  // namespace nlaunch::lint
