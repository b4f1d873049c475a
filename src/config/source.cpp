#include <algorithm>

#include "base/text.h"
#include "config/yaml.h"
#include "sys/files.h"

namespace nlaunch::config {
namespace {

/// The location of a byte of the file.
SourceSpan place_of(const std::shared_ptr<const SourceFile>& file, std::size_t offset) {
  const std::string_view before = std::string_view(file->text).substr(0, offset);
  const auto line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto line = static_cast<std::uint32_t>(std::ranges::count(before, '\n')) + 1;
  const auto column = static_cast<std::uint32_t>(text::characters(before.substr(line_start)).size()) + 1;
  return {file, line, column, 1};
}

std::unexpected<Diagnostics> bad_byte(const std::shared_ptr<const SourceFile>& file, std::size_t offset,
                                      std::string message, std::string hint) {
  Diagnostics problems;
  problems.error("config.encoding", place_of(file, offset), std::move(message)).hint = std::move(hint);
  return std::unexpected(std::move(problems));
}

/// How to fix a file that cannot be read.
Diagnostics with_hint(const Diagnostics& failed, const std::string& path) {
  Diagnostics out;
  for (auto item : failed.items()) {
    if (item.id == "file.kind") item.hint = "give the path of a YAML file";
    if (item.id == "file.size") {
      std::error_code error;
      const auto size = std::filesystem::file_size(path, error);
      item.span.file = std::make_shared<const SourceFile>(SourceFile{path, ""});
      item.message = fmt::format("the file has {} bytes; at most {} are allowed", size, kMostBytes);
      item.hint = "an nlaunch YAML file has a few kB: is this the right file?";
    }
    out.add(std::move(item));
  }
  return out;
}

}  // namespace

Result<std::shared_ptr<const SourceFile>> read_source(const std::string& path) {
  auto content = sys::read_regular_file(path, kMostBytes);
  if (!content) return std::unexpected(with_hint(content.error(), path));
  if (content->starts_with("\xEF\xBB\xBF")) content->erase(0, 3);
  const auto file = std::make_shared<const SourceFile>(SourceFile{path, std::move(*content)});
  const std::string_view all = file->text;
  if (all.starts_with("\xFF\xFE") || all.starts_with("\xFE\xFF")) {
    return bad_byte(file, 0, "the file is UTF-16, but must be UTF-8",
                    fmt::format("iconv -f UTF-16 -t UTF-8 '{}'", path));
  }
  if (const auto bad = text::first_invalid_utf8(all)) {
    return bad_byte(file, *bad,
                    fmt::format("byte 0x{:02x} is not UTF-8", static_cast<unsigned char>(all[*bad])),
                    "save the file as UTF-8");
  }
  if (const auto nul = all.find('\0'); nul != std::string_view::npos) {
    return bad_byte(file, nul, "YAML cannot contain a NUL byte", "is this a binary file, or UTF-16?");
  }
  return file;
}

}  // namespace nlaunch::config
