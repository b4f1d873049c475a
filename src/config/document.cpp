#include "config/document.h"

#include "base/version.h"

namespace nlaunch::config {
namespace {

constexpr std::uint32_t kMostVersion = 1'000'000;

/// For an unsupported version.
Diagnostic wrong_version(std::uint32_t number, const SourceSpan& span) {
  Diagnostic out{Severity::error, "config.version", "version 0 does not exist", span, {}, ""};
  out.hint = fmt::format("write version: {}", kFileVersion);
  if (number < kFileVersion) return out;
  out.message = fmt::format("this file uses version {} of the format; this nlaunch ({}) supports {}", number,
                            version(), kFileVersion);
  out.hint = fmt::format(
      "update nlaunch, or write the file in version {}: `nlaunch schema` prints its schema", kFileVersion);
  return out;
}

std::optional<Diagnostic> newer(const Node& root) {
  Problems elsewhere;  // check_version reports a value that is not a number
  const auto* node = root.find("version");
  const auto number = node ? Value(*node, "version", elsewhere).number(0, kMostVersion) : std::nullopt;
  if (!number || *number <= kFileVersion) return std::nullopt;
  return wrong_version(*number, node->span);
}

}  // namespace

Result<Node> read_document(const std::string& path, Problems& problems) {
  const auto file = read_source(path);
  if (!file) return std::unexpected(file.error());
  return read_document(*file, problems);
}

Result<Node> read_document(const std::shared_ptr<const SourceFile>& file, Problems& problems) {
  auto root = parse_yaml(file, problems);
  if (!root) {
    problems.append(root.error());
    return std::unexpected(problems.take());
  }
  if (root->kind == Node::Kind::map) {
    if (auto problem = newer(*root)) return std::unexpected(Diagnostics(std::move(*problem)));
    return root;
  }
  const bool empty = root->kind == Node::Kind::null;
  if (!root->span) root->span = {file, 0, 0, 1};
  problems
      .error("config.document", root->span, empty ? "the file is empty" : "the file must be a map of keys")
      .hint = "start it with 'version: 1' and 'name: NAME'";
  return std::unexpected(problems.take());
}

void check_version(Keys& keys) {
  const auto asked = keys.require("version", "version: 1");
  const auto number = asked ? asked->number(0, kMostVersion) : std::nullopt;
  if (!number || *number == kFileVersion) return;
  keys.value().problems().append(Diagnostics(wrong_version(*number, asked->span())));
}

}  // namespace nlaunch::config
