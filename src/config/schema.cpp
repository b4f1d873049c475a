#include "config/schema.h"

#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "base/text.h"

namespace nlaunch::config {
namespace {

using Json = nlohmann::ordered_json;

class SchemaWalk {
 public:
  explicit SchemaWalk(std::string_view schema) : schema_(parse_ordered_json(schema)) {}

  std::vector<SchemaKey> all() {
    add(schema_, "", 0);
    return std::move(keys_);
  }

 private:
  const Json& resolved(const Json& node) const {
    if (!node.contains("$ref")) return node;
    const auto ref = node.at("$ref").get<std::string>();  // "#/$defs/role"
    return schema_.at("$defs").at(ref.substr(ref.rfind('/') + 1));
  }

  static std::string kind(const Json& node) {
    for (const auto* word : {"enum", "const"}) {
      if (!node.contains(word)) continue;
      std::vector<std::string> values;
      for (const auto& one : node.at(word).is_array() ? node.at(word) : Json::array({node.at(word)})) {
        values.push_back(one.is_string() ? one.get<std::string>() : json_text(one));
      }
      return text::join(values, ", ");
    }
    if (!node.contains("type")) return "";
    const auto& type = node.at("type");
    const auto word = type.is_array() ? std::string("text") : type.get<std::string>();
    if (word == "object") return "map";
    return word == "array" ? "list" : word == "string" ? "text" : word == "integer" ? "whole number" : word;
  }

  void add(const Json& node, const std::string& path, int depth) {
    constexpr int kDeepest = 5;
    if (depth > kDeepest) return;
    const auto& own = resolved(node);
    if (own.contains("properties")) {
      for (const auto& [key, value] : own.at("properties").items()) add_key(path + key, value, depth);
    }
    if (own.contains("additionalProperties") && own.at("additionalProperties").is_object()) {
      add(own.at("additionalProperties"), path + "NAME.", depth + 1);
    }
    if (own.contains("items") && own.at("items").is_object())
      add(own.at("items"), path.substr(0, path.size() - 1) + "[].", depth + 1);
    for (const auto* word : {"anyOf", "oneOf"}) {
      if (!own.contains(word)) continue;
      for (const auto& one : own.at(word)) add(one, path, depth + 1);
    }
  }

  void add_key(const std::string& path, const Json& value, int depth) {
    const auto& own = resolved(value);
    const auto description = value.value("description", own.value("description", ""));
    if (!seen_.insert(path).second) return;
    keys_.push_back({path, kind(own), description});
    add(value, path + ".", depth + 1);
  }

  Json schema_;
  std::set<std::string> seen_;
  std::vector<SchemaKey> keys_;
};

}  // namespace

std::vector<SchemaKey> schema_keys(std::string_view schema) {
  return SchemaWalk(schema).all();
}

}  // namespace nlaunch::config
