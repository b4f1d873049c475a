#include "lint/file_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "config/yaml.h"
#include "lint/script_input.h"

namespace nlaunch::lint {
namespace {

bool has_key(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    if (text.starts_with(key) && text.substr(key.size()).starts_with(':')) return true;
    const auto end = text.find('\n');
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return false;
}

std::string text_of(const config::Node* node) {
  return node != nullptr && node->kind == config::Node::Kind::scalar ? node->text : std::string();
}

/// A task's arguments are a script if its command is a shell that accepts one.
void add_arguments(const config::Node& task, const std::string& file, LintInput& input) {
  const auto* command = task.find("command");
  const auto* arguments = task.find("arguments");
  if (command == nullptr || arguments == nullptr || arguments->items.empty()) return;
  const bool shell = std::ranges::any_of(
      command->items, [](const config::Node& word) { return word.text == "-c" || word.text == "-lc"; });
  if (!shell) return;
  const auto& argument = arguments->items.front();
  const auto name = fmt::format("{}:{} (arguments)", file, argument.span.line);
  ScriptJob job;
  for (const auto& setting : input.environments.back().settings)
    job.variables.push_back(fmt::format("{}={}", setting.name, setting.value.value_or("")));
  job.nodes = input.nodes;
  auto inner = recorded_script(std::make_shared<const SourceFile>(SourceFile{name, argument.text}), job);
  std::ranges::move(inner.files, std::back_inserter(input.files));
  auto& environment = input.environments.back();
  for (auto& one : inner.environments)
    std::ranges::move(one.settings, std::back_inserter(environment.settings));
  std::ranges::move(inner.readings, std::back_inserter(input.readings));
  std::ranges::move(inner.secrets, std::back_inserter(input.secrets));
  input.modules = std::move(inner.modules);
  input.script = std::move(inner.script);
  // Nothing is known about the directory in the container.
  input.script->not_started.clear();
  std::erase_if(input.script->unread, [](const Unread& one) { return one.severity == Severity::note; });
}

Result<LintInput> beaker_scene(const std::shared_ptr<const SourceFile>& file) {
  config::Problems problems;
  const auto spec = config::parse_yaml(file, problems);
  if (!spec) return std::unexpected(spec.error());
  LintInput input;
  input.files = {file};
  const auto* tasks = spec->find("tasks");
  for (const auto& task : tasks == nullptr ? std::vector<config::Node>() : tasks->items) {
    auto& environment = input.environments.emplace_back();
    environment.name = text_of(task.find("name"));
    const auto replicas = text_of(task.find("replicas"));
    std::uint32_t nodes = 1;
    std::from_chars(replicas.data(), replicas.data() + replicas.size(), nodes);
    input.nodes = std::max(input.nodes.value_or(1), nodes);
    const auto* variables = task.find("envVars");
    for (const auto& one : variables == nullptr ? std::vector<config::Node>() : variables->items) {
      const auto* name = one.find("name");
      if (name == nullptr) continue;
      Setting setting;
      setting.name = name->text;
      setting.span = name->span;
      if (one.find("secret") == nullptr) setting.value = text_of(one.find("value"));
      environment.settings.push_back(std::move(setting));
    }
    add_arguments(task, file->name, input);
  }
  return input;
}

/// A file that is not text cannot be a script.
LintInput binary_scene(const std::shared_ptr<const SourceFile>& file) {
  LintInput input;
  input.files = {file};
  input.environments.emplace_back();
  Script script;
  script.file = file;
  Unread all;
  all.span = {file, 0, 0, 1};
  all.message = "not a text file: it contains NUL bytes";
  all.why = "nothing was examined";
  script.unread.push_back(std::move(all));
  input.script = std::move(script);
  return input;
}

}  // namespace

FileKind kind_of(const std::shared_ptr<const SourceFile>& file) {
  const auto name = std::string_view(file->name).substr(file->name.rfind('/') + 1);
  if (name.ends_with(".yaml") || name.ends_with(".yml")) {
    if (has_key(file->text, "tasks")) return FileKind::beaker;
    const bool profile =
        has_key(file->text, "scheduler") || has_key(file->text, "extends") || has_key(file->text, "match");
    return profile && !has_key(file->text, "roles") ? FileKind::profile : FileKind::experiment;
  }
  if (name.starts_with(".env") || name.ends_with(".env")) return FileKind::dotenv;
  if (name.ends_with(".conf")) return FileKind::nccl_conf;
  return FileKind::script;
}

Result<LintInput> file_input(const std::shared_ptr<const SourceFile>& file, const ScriptJob& job) {
  if (file->text.find('\0') != std::string::npos) return binary_scene(file);
  switch (kind_of(file)) {
    case FileKind::beaker:
      return beaker_scene(file);
    case FileKind::dotenv:
      return lines_scene(file, Lines::dotenv);
    case FileKind::nccl_conf:
      return lines_scene(file, Lines::nccl_conf);
    default:
      return recorded_script(file, job);
  }
}

}  // namespace nlaunch::lint
