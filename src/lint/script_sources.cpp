#include "lint/script_sources.h"

#include <filesystem>
#include <utility>

#include "base/text.h"
#include "sys/files.h"

namespace nlaunch::lint {
namespace {

namespace fs = std::filesystem;

std::string absolute(const std::string& path) {
  std::error_code error;
  return fs::absolute(path, error).lexically_normal();
}

}  // namespace

ScriptSources::ScriptSources(const std::shared_ptr<const SourceFile>& main, const std::string& path,
                             std::string folder)
    : path_(absolute(path)), folder_(std::move(folder)) {
  sources_.emplace(path_, SourceLines(main));
}

const SourceLines& ScriptSources::of(const std::string& script) {
  auto path = fs::path(script);
  std::error_code error;
  // As found by the shell, whose directory may have been another one: the script's, or one above.
  if (path.is_relative()) {
    auto folder = fs::exists(folder_ / path, error) ? fs::path(folder_) : fs::path(path_).parent_path();
    while (!fs::exists(folder / path, error) && folder.has_relative_path()) folder = folder.parent_path();
    path = folder.has_relative_path() ? folder / path : fs::path(path_).parent_path() / path;
  }
  const auto key = path.lexically_normal().string();
  const auto found = sources_.find(key);
  if (found != sources_.end()) return found->second;
  constexpr std::uint64_t kLargest = 1U << 20U;
  auto text = sys::read_regular_file(key, kLargest);
  const auto beside = fs::relative(key, fs::path(path_).parent_path(), error).string();
  // Named like the main script: next to it, or relative to the same directory if it is there.
  const fs::path own = main().file()->name;
  auto name = own.parent_path() / beside;
  if (beside.empty() || beside.starts_with(".."))
    name = own.is_relative() ? fs::proximate(key, error) : fs::path(key);
  if (name.native().starts_with("..")) name = key;
  return sources_
      .emplace(key, SourceLines(std::make_shared<const SourceFile>(
                        SourceFile{name.string(), text ? std::move(*text) : std::string()})))
      .first->second;
}

std::uint32_t ScriptSources::begin_of_command(const std::string& script, std::uint32_t line) {
  const auto& lines = of(script);
  while (line > 1 && text::trim(lines.line(line)).starts_with('-') && lines.line(line - 1).ends_with('\\'))
    --line;
  return line;
}

SourceSpan ScriptSources::place_of(std::string_view name, const std::string& script, std::uint32_t line,
                                   std::uint32_t line_of_text) {
  const auto& lines = of(script);
  const auto last = lines.end_of_command(line);
  if (line_of_text > 1) {
    if (auto span = lines.find(name, line + line_of_text - 1, last)) return span;
  }
  if (auto span = lines.find(name, line, last)) return span;
  if (lines.count() > 0) return lines.whole(line);
  // A script that this one wrote and that no longer exists: the main script contains its text.
  const auto& own = main();
  const auto span = own.find(name, 1, own.count());
  return span ? span : SourceSpan{lines.file(), 0, 0, 1};
}

SourceSpan ScriptSources::place_in_main(const std::string& name, const SourceSpan& otherwise) const {
  const auto& own = main();
  const auto span = own.find(name, 1, own.count());
  const auto line = own.line(span.line);
  return span && line.find(name + "=") != std::string_view::npos ? span : otherwise;
}

SourceSpan ScriptSources::place_of_text(const std::string& text, const std::string& script,
                                        std::uint32_t line) {
  const auto& own = main();
  const auto& lines = script.empty() ? own : of(script);
  if (line > 0 && lines.command(line).find(text) != std::string::npos) return lines.whole(line);
  if (const auto found = own.find_text(text, 1, own.count());
      found.source_line().find(text) != std::string::npos)
    return own.whole(found.line);
  return line > 0 && lines.count() >= line ? lines.whole(line) : SourceSpan{own.file(), 0, 0, 1};
}

}  // namespace nlaunch::lint
