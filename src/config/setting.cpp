#include "config/setting.h"

#include "base/text.h"

namespace nlaunch::config {
namespace {

/// The value of `key` in a map; created if missing.
Node& slot(Node& map, const Text& key) {
  auto* node = map.find(key.value);
  if (node == nullptr) node = &map.entries.emplace_back(Entry{key, {}}).value;
  return *node;
}

/// Turns an empty value into a map; reports one that contains something else.
bool enter(Node& node, const Setting& setting, const std::string& parent, Problems& problems) {
  if (node.kind == Node::Kind::map) return true;
  if (node.kind == Node::Kind::null) {
    node.kind = Node::Kind::map;
    node.span = setting.path.span;
    return true;
  }
  const auto* what = node.kind == Node::Kind::sequence ? "a list" : "a single value";
  problems
      .error("config.setting", setting.path.span,
             fmt::format("cannot set '{}': '{}' is {}", setting.path.value, parent, what))
      .hint = fmt::format("set the whole value: {}={}", parent,
                          node.kind == Node::Kind::sequence ? "[A, B]" : "VALUE");
  return false;
}

}  // namespace

Result<Setting> parse_setting(const std::string& option, const std::string& typed) {
  const auto file = std::make_shared<const SourceFile>(SourceFile{option, typed});
  const auto wrong = [&](std::string message, std::size_t length) {
    Diagnostics problems;
    problems
        .error("config.setting", {file, 1, 1, static_cast<std::uint32_t>(std::max<std::size_t>(1, length))},
               std::move(message))
        .hint = "write KEY.PATH=VALUE, for example roles.engine.count=4";
    return std::unexpected(std::move(problems));
  };
  const auto equals = typed.find('=');
  const auto path = typed.substr(0, equals);
  const auto length = text::characters(path).size();
  if (equals == std::string::npos) return wrong(fmt::format("'{}' has no '='", typed), length);
  for (const auto& part : text::split(path, '.')) {
    if (part.empty() || part.contains('\n'))
      return wrong(fmt::format("'{}' is not a valid key path", path), length);
  }
  const auto columns = static_cast<std::uint32_t>(length);
  const auto value = typed.substr(equals + 1);
  const auto value_length =
      static_cast<std::uint32_t>(std::max<std::size_t>(1, text::characters(value).size()));
  return Setting{{path, {file, 1, 1, columns}}, {value, {file, 1, columns + 2, value_length}}};
}

void apply_setting(Node& root, const Setting& setting, Problems& problems) {
  auto value = parse_yaml(setting.value, problems);
  if (!value) return problems.append(value.error());
  const auto parts = text::split(setting.path.value, '.');
  Node* at = &root;
  std::string parent;
  std::size_t offset = 0;
  for (const auto& part : parts) {
    if (!enter(*at, setting, parent, problems)) return;
    at = &slot(*at, {part, part_of(setting.path.span, setting.path.value, offset, part.size())});
    offset += part.size() + 1;
    parent += (parent.empty() ? "" : ".") + part;
  }
  *at = std::move(*value);
  // An empty value has no location of its own.
  if (at->kind == Node::Kind::null) at->span = setting.path.span;
}

}  // namespace nlaunch::config
