#include "config/document.h"

namespace nlaunch::config {

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
  if (root->kind == Node::Kind::map) return root;
  const bool empty = root->kind == Node::Kind::null;
  if (!root->span) root->span = {file, 0, 0, 1};
  problems
      .error("config.document", root->span, empty ? "the file is empty" : "the file must be a map of keys")
      .hint = "it starts with 'version: 1' and 'name: NAME'";
  return std::unexpected(problems.take());
}

void check_version(Keys& keys) {
  const auto version = keys.require("version", "version: 1");
  const auto number = version ? version->number(0, 1'000'000) : std::nullopt;
  if (!number || *number == 1) return;
  version
      ->error("config.version",
              *number == 0
                  ? "there is no version 0"
                  : fmt::format("version {} is newer than this nlaunch, which reads version 1", *number))
      .hint = *number == 0 ? "write version: 1" : "install a newer nlaunch";
}

}  // namespace nlaunch::config
