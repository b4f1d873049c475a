#include "config/env_block.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "config/names.h"

namespace nlaunch::config {
namespace {

constexpr std::array<std::string_view, 5> kBlockKeys{"set", "unset", "prepend", "append", "when"};

constexpr std::string_view kBlockKeyList = "set, unset, prepend, append, when";

bool is_block_key(std::string_view key) {
  return std::ranges::find(kBlockKeys, key) != kBlockKeys.end();
}

/// Adds the operations of an environment block in the order in which they apply: a block can set a variable
/// again after unsetting it.
class EnvReader {
 public:
  EnvReader(EnvBlock& out, const std::vector<std::string>* libraries, ProcessTraits of)
      : out_(out), libraries_(libraries), of_(of) {}

  void operations(Keys& keys, const Condition& when) {
    if (const auto names = keys.get("unset")) {
      for (auto& name : texts(names->one_or_more())) unset(std::move(name), names->problems(), when);
    }
    for (const auto& [key, kind] : {std::pair{"set", EnvEntry::Kind::set},
                                    {"prepend", EnvEntry::Kind::prepend},
                                    {"append", EnvEntry::Kind::append}}) {
      if (const auto values = keys.get(key)) assignments(*values, kind, when);
    }
  }

  void assignments(const Value& values, EnvEntry::Kind kind, const Condition& when) {
    for (const auto& [name, value] : values.entries()) {
      if (!check_variable_name(name, value.problems()) || !may_be_set(name, value.problems())) continue;
      if (value.is(Node::Kind::map) && is_block_key(name.value)) {
        value.wrong_type("a string").hint =
            fmt::format("an env with '{}' allows only {}", name.value, kBlockKeyList);
      } else if (auto text = value.text()) {
        out_.push_back({kind, name, {std::move(*text), value.span()}, when});
      }
    }
  }

  void unset(Text name, Problems& problems, const Condition& when) {
    if (check_variable_name(name, problems))
      out_.push_back({EnvEntry::Kind::unset, std::move(name), {}, when});
  }

  void rows(const Value& value) {
    for (const auto& row : value.items()) {
      Keys keys(row);
      const auto when = condition(keys);
      operations(keys, when);
      keys.finish();
    }
  }

 private:
  bool may_be_set(const Text& name, Problems& problems) const {
    if (!is_reserved_variable(name.value, of_)) return true;
    problems
        .error(name.value == "LD_PRELOAD" ? "config.env-preload" : "config.env-owned", name.span,
               reserved_reason(name.value))
        .hint = reserved_hint(name.value);
    return false;
  }

  Condition condition(Keys& keys) {
    Condition when;
    keys.read("nodes", when.nodes);
    keys.read("gpu", when.gpu);
    keys.read("arch", when.arch);
    keys.read("kind", when.kind);
    for (const auto* entry : keys.unknown()) {
      const auto& name = entry->key.value;
      if (is_block_key(name) || !may_be_library(name, keys.known())) continue;
      if (const auto range = keys.get(name)->parsed(VersionRange::parse)) when.library.emplace(name, *range);
    }
    if (libraries_ != nullptr) {
      for (const auto& name : *libraries_) std::ignore = keys.get(name);  // so that hints know them
    }
    return when;
  }

  /// If the libraries are not known, a name that is close to one of the keys is a typo.
  [[nodiscard]] bool may_be_library(const std::string& name, const std::vector<std::string>& known) const {
    if (libraries_ != nullptr) return std::ranges::find(*libraries_, name) != libraries_->end();
    return !text::nearest(name, known) &&
           !text::nearest(name, std::vector<std::string>(kBlockKeys.begin(), kBlockKeys.end()));
  }

  EnvBlock& out_;
  const std::vector<std::string>* libraries_;
  ProcessTraits of_;
};

void read_plain(const Value& value, EnvBlock& out, ProcessTraits of) {
  EnvReader reader(out, nullptr, of);
  for (const auto& [name, item] : value.entries()) {
    if (item.is(Node::Kind::null)) reader.unset(name, item.problems(), {});
  }
  Node set = value.node();
  std::erase_if(set.entries, [](const Entry& entry) { return entry.value.kind == Node::Kind::null; });
  if (value.is(Node::Kind::map))
    reader.assignments(Value(set, value.path(), value.problems()), EnvEntry::Kind::set, {});
}

}  // namespace

bool is_plain_env(const Node& env) {
  const auto of_block = [](const Entry& entry) { return is_block_key(entry.key.value); };
  return env.entries.empty() || !std::ranges::all_of(env.entries, of_block);
}

EnvBlock read_env(const Value& value, EnvForm form, const std::vector<std::string>* libraries,
                  ProcessTraits of) {
  EnvBlock out;
  if (form == EnvForm::plain_or_block && is_plain_env(value.node())) {
    read_plain(value, out, of);
    return out;
  }
  EnvReader reader(out, libraries, of);
  Keys keys(value);
  reader.operations(keys, {});
  if (const auto rows = keys.get("when")) reader.rows(*rows);
  for (const auto* entry : keys.unknown()) {
    const auto& [key, item] = *entry;
    if (item.kind != Node::Kind::scalar || !is_variable_name(key.value)) continue;
    keys.get(key.value)
        ->problems()
        .error("config.unknown-key", key.span,
               fmt::format("unknown key '{}' in '{}'", key.value, value.path()))
        .hint = fmt::format("write set: {{{}: ...}}", key.value);
  }
  keys.finish();
  return out;
}

std::vector<Overlay> read_overlays(const Value& value, const std::vector<std::string>* libraries) {
  std::vector<Overlay> out;
  for (const auto& [name, item] : value.entries()) {
    Overlay overlay{name, {}, {}};
    Keys keys(item);
    if (const auto env = keys.get("env")) overlay.env = read_env(*env, EnvForm::plain_or_block, libraries);
    keys.pairs("set", overlay.set);
    keys.finish();
    for (const auto& [path, setting] : overlay.set) {
      if (!path.value.starts_with("site.")) continue;
      value.problems()
          .error("config.setting", path.span, "an overlay sets keys of the experiment, not of the site")
          .hint = "define the overlay in a profile that extends this one";
    }
    out.push_back(std::move(overlay));
  }
  return out;
}

bool is_variable_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && letter(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || digit(c); });
}

bool check_variable_name(const Text& name, Problems& problems) {
  if (is_variable_name(name.value)) return true;
  problems.error("config.env-name", name.span, fmt::format("'{}' is not a valid variable name", name.value))
      .hint = "use letters, digits and _, not starting with a digit";
  return false;
}

}  // namespace nlaunch::config
