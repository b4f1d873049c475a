#include "config/extends.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include "base/text.h"
#include "config/document.h"
#include "config/env_block.h"

namespace nlaunch::config {
namespace {

namespace fs = std::filesystem;
using Path = std::vector<std::string>;

/// The keys in a row replace each other: in a role, and in the experiment itself.
using Choice = std::array<std::string_view, 3>;
constexpr std::array<Choice, 3> kOneOfRole{
    {{"count", "per_node", "per"}, {"replica", "per_node", "per"}, {"command", "spawned_by", ""}}};
constexpr std::array<Choice, 1> kOneOfAll{{{"nodes", "pools", ""}}};

bool is_role(const Path& path) {
  return path.size() == 2 && path[0] == "roles";
}

/// The environment of all roles, or of one role.
bool is_env(const Path& path) {
  return !path.empty() && path.back() == "env" &&
         (path.size() == 1 || (path.size() == 3 && path[0] == "roles"));
}

bool is_in_env(Path path) {
  while (!path.empty()) {
    path.pop_back();
    if (is_env(path)) return true;
  }
  return false;
}

/// Values that are replaced as a whole: half of one with half of another would make no sense.
bool is_whole(const Path& path) {
  const bool named = path.size() == 2 && (path[0] == "overlays" || path[0] == "secrets");
  return named ||
         (path.size() == 3 && path[0] == "roles" && (path[2] == "ready" || path[2] == "keep_together"));
}

Node node_at(const SourceSpan& span, Node::Kind kind) {
  Node node;
  node.kind = kind;
  node.span = span;
  return node;
}

class Merger {
 public:
  explicit Merger(Problems& problems) : problems_(problems) {}

  void merge(Node& base, Node over, const Path& path) {
    if (base.kind != Node::Kind::map || over.kind != Node::Kind::map || is_whole(path)) {
      const bool names = !path.empty() && path.back() == "unset" && is_in_env(path);
      if (names && base.kind == Node::Kind::sequence && over.kind == Node::Kind::sequence)
        over.items.insert(over.items.begin(), base.items.begin(), base.items.end());
      base = std::move(over);
      return;
    }
    if (is_env(path)) {
      match_forms(base, over);
      forget_what_is_set_anew(base, over);
    }
    if (is_role(path)) drop_other_choices(base, over, kOneOfRole);
    if (path.empty()) drop_other_choices(base, over, kOneOfAll);
    base.span = over.span;
    for (auto& entry : over.entries) put(base, std::move(entry), path);
  }

 private:
  void put(Node& base, Entry entry, Path path) {
    const auto& key = entry.key.value;
    if (key.ends_with('+')) return append(base, entry);
    auto* below = base.find(key);
    path.push_back(key);
    if (below == nullptr) {
      base.entries.push_back(std::move(entry));
    } else if (entry.value.kind == Node::Kind::null && !is_in_env(path)) {
      std::erase_if(base.entries, [&](const Entry& one) { return one.key.value == key; });
    } else {
      std::ranges::find(base.entries, key, [](const Entry& one) { return one.key.value; })->key = entry.key;
      merge(*below, std::move(entry.value), path);
    }
  }

  void append(Node& base, const Entry& entry) {
    const auto name = entry.key.value.substr(0, entry.key.value.size() - 1);
    auto* list = base.find(name);
    if (list == nullptr || list->kind != Node::Kind::sequence || entry.value.kind != Node::Kind::sequence) {
      problems_
          .error("config.extends", entry.key.span,
                 fmt::format("'{}' appends to the list '{}' of the extended file, {}", entry.key.value, name,
                             list == nullptr                      ? "which does not have it"
                             : list->kind != Node::Kind::sequence ? "where it is not a list"
                                                                  : "but is not a list itself"))
          .hint = fmt::format("write {}: [...]", list == nullptr ? name : entry.key.value);
      return;
    }
    list->items.insert(list->items.end(), entry.value.items.begin(), entry.value.items.end());
  }

  /// `env: {A: 1}` and `env: {set: {A: 1}}` mean the same: if the two files use different forms, the plain
  /// one is converted to a block.
  static void match_forms(Node& base, Node& over) {
    const bool base_plain = is_plain_env(base);
    if (base_plain == is_plain_env(over)) return;
    as_block(base_plain ? base : over);
  }

  /// A block unsets names first: for names that the extending file sets or unsets, the operations of the base
  /// are dropped.
  static void forget_what_is_set_anew(Node& base, const Node& over) {
    if (is_plain_env(base)) return;
    std::vector<std::string> names;
    if (const auto* set = over.find("set"))
      for (const auto& entry : set->entries) names.push_back(entry.key.value);
    if (const auto* unset = over.find("unset")) {
      if (unset->kind == Node::Kind::scalar) names.push_back(unset->text);
      for (const auto& item : unset->items) names.push_back(item.text);
    }
    const auto named = [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); };
    for (const auto* key : {"set", "prepend", "append"}) {
      if (auto* block = base.find(key))
        std::erase_if(block->entries, [&](const Entry& entry) { return named(entry.key.value); });
    }
    auto* unset = base.find("unset");
    if (unset == nullptr) return;
    std::erase_if(unset->items, [&](const Node& item) { return named(item.text); });
    const bool one = unset->kind == Node::Kind::scalar && named(unset->text);
    if (one || (unset->kind == Node::Kind::sequence && unset->items.empty()))
      std::erase_if(base.entries, [](const Entry& entry) { return entry.key.value == "unset"; });
  }

  static void as_block(Node& env) {
    auto block = node_at(env.span, Node::Kind::map);
    auto set = node_at(env.span, Node::Kind::map);
    auto unset = node_at(env.span, Node::Kind::sequence);
    for (auto& entry : env.entries) {
      if (entry.value.kind == Node::Kind::null) {
        unset.items.push_back(node_at(entry.key.span, Node::Kind::scalar));
        unset.items.back().text = entry.key.value;
      } else {
        set.entries.push_back(std::move(entry));
      }
    }
    if (!unset.items.empty()) block.entries.push_back({{"unset", env.span}, std::move(unset)});
    if (!set.entries.empty()) block.entries.push_back({{"set", env.span}, std::move(set)});
    env = std::move(block);
  }

  static void drop_other_choices(Node& base, const Node& over, std::span<const Choice> choices) {
    if (const auto* spawned = over.find("spawned_by");
        spawned != nullptr && spawned->kind != Node::Kind::null)
      std::erase_if(base.entries, [](const Entry& entry) { return entry.key.value == "launcher"; });
    for (const auto& row : choices) {
      const auto chosen = std::ranges::find_if(over.entries, [&](const Entry& entry) {
        return std::ranges::find(row, entry.key.value) != row.end() && entry.value.kind != Node::Kind::null;
      });
      if (chosen == over.entries.end()) continue;
      std::erase_if(base.entries, [&](const Entry& entry) {
        return entry.key.value != chosen->key.value && std::ranges::find(row, entry.key.value) != row.end();
      });
    }
  }

  Problems& problems_;
};

struct Layer {
  std::string path;
  Node root;
};

const Node* base_of(const Node& root) {
  return root.find("extends");
}

void report_no_file(const Node& named, const std::string& path, Problems& problems) {
  auto& problem = problems.error("config.extends", named.span, fmt::format("file '{}' not found", path));
  std::vector<std::string> beside;
  std::error_code error;
  const auto folder = "." / fs::path(path).parent_path();
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".yaml") beside.push_back(at->path().filename().string());
  }
  problem.hint = suggest(fs::path(path).filename().string(), beside);
  if (problem.hint.empty()) problem.hint = "paths are relative to the file that contains them";
}

void report_circle(const std::vector<Layer>& layers, std::size_t first, const Node& named,
                   Problems& problems) {
  std::vector<std::string> names;
  for (std::size_t i = first; i < layers.size(); ++i) names.push_back(fs::path(layers[i].path).filename());
  names.push_back(names.front());
  problems
      .error("config.extends", named.span,
             fmt::format("files extend each other in a cycle: {}", text::join(names, " → ")))
      .hint = "remove one 'extends'";
}

/// The file that `layers.back()` extends; empty if there is none, or if it cannot be read.
std::string next_path(const std::vector<Layer>& layers, Problems& problems) {
  const auto* named = base_of(layers.back().root);
  if (named == nullptr) return "";
  const auto text = Value(*named, "extends", problems).text();
  if (!text) return "";
  const auto path = (fs::path(layers.back().path).parent_path() / *text).lexically_normal().string();
  std::error_code error;
  const auto again = std::ranges::find_if(layers, [&](const Layer& layer) {
    return layer.path == path || fs::equivalent(layer.path, path, error);
  });
  if (again != layers.end()) {
    report_circle(layers, static_cast<std::size_t>(again - layers.begin()), *named, problems);
    return "";
  }
  if (fs::is_regular_file(path, error)) return path;
  report_no_file(*named, path, problems);
  return "";
}

}  // namespace

Result<Node> read_extended(const std::string& path, std::vector<std::string>& files, Problems& problems) {
  auto top = read_document(path, problems);
  if (!top || base_of(*top) == nullptr) return top;
  std::vector<Layer> layers;
  layers.push_back({path, std::move(*top)});
  const auto before = problems.count();
  for (auto below = next_path(layers, problems); !below.empty(); below = next_path(layers, problems)) {
    auto root = read_document(below, problems);
    if (!root) return root;
    Keys keys(Value(*root, "", problems));
    check_version(keys);
    layers.push_back({below, std::move(*root)});
    files.insert(files.begin(), fs::absolute(below).lexically_normal());
  }
  // Without the base file, the rest cannot be checked.
  if (problems.count() > before && base_of(layers.back().root) != nullptr)
    return std::unexpected(problems.take());
  Node merged = std::move(layers.back().root);
  Merger merger(problems);
  for (auto layer = layers.rbegin() + 1; layer != layers.rend(); ++layer) {
    std::erase_if(merged.entries, [](const Entry& entry) { return entry.key.value == "name"; });
    merger.merge(merged, std::move(layer->root), {});
  }
  return merged;
}

}  // namespace nlaunch::config
