#include "config/yaml.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "base/text.h"
#include "config/places.h"
#include "config/yaml_syntax.h"

namespace nlaunch::config {
namespace {

/// Stops parsing: there is no point in continuing.
struct Stop {
  Diagnostic reason;
};

/// Builds the tree from yaml-cpp's events. It enforces its own limits on depth and size, so that an alias
/// bomb or a file of brackets is rejected before it uses much memory.
class Builder final : public YAML::EventHandler {
 public:
  Builder(const Places& places, Problems& problems) : places_(places), problems_(problems) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ == 0) return;
    const bool marker = places_.text().substr(offset(mark)).starts_with("---");
    auto message = marker ? "a second document starts here; a file can have only one"
                          : "unexpected text after the end of the value";
    throw Stop{{Severity::error,
                "config.documents",
                message,
                places_.at(offset(mark), marker ? 3 : 1),
                {},
                marker ? "write each document to its own file" : "check the indentation of this line"}};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(Node::Kind::sequence, mark, tag, anchor, style);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(Node::Kind::map, mark, tag, anchor, style);
  }
  void OnMapEnd() override { close(); }

  [[nodiscard]] Node take() { return std::move(root_); }
  /// The location of the innermost list or map in brackets that is still open.
  [[nodiscard]] std::optional<SourceSpan> open_bracket() const {
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
      if (level->in_brackets) return level->node.span;
    }
    return std::nullopt;
  }

 private:
  struct Level {
    Node node;
    YAML::anchor_t anchor = 0;
    std::size_t size = 1;  ///< number of values in it so far, including itself
    bool in_brackets = false;
    std::optional<Text> key;  ///< already read, but its value is not
    bool refused = false;     ///< the key was invalid: its value is dropped
    std::unordered_map<std::string, SourceSpan> seen;
  };
  struct Anchored {
    Node node;
    std::size_t size = 1;
  };

  static std::size_t offset(const YAML::Mark& mark) {
    return static_cast<std::size_t>(std::max(mark.pos, 0));
  }
  void open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YAML::EmitterStyle::value style);
  void close();
  void add(Node node, YAML::anchor_t anchor, std::size_t size);
  void put(Level& level, Node node);
  void take_key(Level& level, Node node);
  void count(std::size_t size, const SourceSpan& span);
  void refuse_tag(const std::string& tag, std::size_t at);

  const Places& places_;
  Problems& problems_;
  std::vector<Level> levels_;
  std::unordered_map<YAML::anchor_t, Anchored> anchors_;
  Node root_;
  std::size_t documents_ = 0;
  std::size_t nodes_ = 0;
};

void Builder::refuse_tag(const std::string& tag, std::size_t at) {
  if (tag.empty() || tag == "?" || tag == "!") return;
  const auto end = places_.text().find_first_of(" \t\r\n", at);
  const auto length = std::min(end, places_.text().size()) - at;
  problems_
      .error("config.tag", places_.at(at, length),
             fmt::format("the tag '{}' is not supported", places_.text().substr(at, length)))
      .hint = "remove it; quotes make a value a string";
}

void Builder::count(std::size_t size, const SourceSpan& span) {
  nodes_ += size;
  if (nodes_ <= kMostNodes) return;
  throw Stop{{Severity::error,
              "config.too-large",
              fmt::format("the file has more than {} values, counting every use of an alias", kMostNodes),
              span,
              {},
              "an experiment has a few hundred: is this the right file?"}};
}

void Builder::OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) {
  Node node;
  const auto at = offset(mark);
  const auto length = null_word_length(places_.text().substr(std::min(at, places_.text().size())));
  const bool has_key = !levels_.empty() && levels_.back().key;
  // The mark of a missing value is at the next token: the location of its key is more helpful.
  node.span =
      length > 0 || !has_key ? places_.at(at, std::max<std::size_t>(1, length)) : levels_.back().key->span;
  add(std::move(node), anchor, 1);
}

void Builder::OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) {
  const auto known = anchors_.find(anchor);
  if (known == anchors_.end()) {
    throw Stop{{Severity::error,
                "config.alias",
                "an alias cannot be inside the value that it refers to",
                places_.at(offset(mark), 1),
                {},
                "write the value out"}};
  }
  count(known->second.size - 1, places_.at(offset(mark), 1));
  add(known->second.node, 0, known->second.size);
}

void Builder::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       const std::string& value) {
  refuse_tag(tag, offset(mark));
  const auto extent = scalar_extent(places_.text(), offset(mark), value);
  if (!extent.closed) {
    throw Stop{{Severity::error,
                "config.syntax",
                "the quote that opens here is not closed",
                places_.at(extent.start, 1),
                {},
                "close it at the end of the string"}};
  }
  if (value.find('\0') != std::string::npos) {
    throw Stop{{Severity::error,
                "config.encoding",
                "this string contains a NUL, which would truncate it in every program",
                places_.at(extent.start, extent.length),
                {},
                "remove the escape: arguments, variables and paths cannot contain a NUL"}};
  }
  Node node;
  node.kind = Node::Kind::scalar;
  node.text = value;
  node.plain = extent.plain && tag != "!";
  node.span = places_.at(extent.start, extent.length);
  add(std::move(node), anchor, 1);
}

void Builder::open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                   YAML::EmitterStyle::value style) {
  refuse_tag(tag, offset(mark));
  Level level;
  level.node.kind = kind;
  level.node.span = places_.at(offset(mark), 1);
  level.anchor = anchor;
  level.in_brackets = style == YAML::EmitterStyle::Flow;
  if (levels_.size() >= kMostLevels) {
    throw Stop{{Severity::error,
                "config.too-deep",
                fmt::format("lists and maps are nested more than {} levels deep", kMostLevels),
                level.node.span,
                {},
                "an experiment has about six: is this the right file?"}};
  }
  levels_.push_back(std::move(level));
}

void Builder::close() {
  auto level = std::move(levels_.back());
  levels_.pop_back();
  add(std::move(level.node), level.anchor, level.size);
}

void Builder::add(Node node, YAML::anchor_t anchor, std::size_t size) {
  count(1, node.span);
  if (anchor != 0) {
    count(size, node.span);  // the copy that aliases will use
    anchors_[anchor] = {node, size};
  }
  if (levels_.empty()) {
    root_ = std::move(node);
    return;
  }
  levels_.back().size += size;
  put(levels_.back(), std::move(node));
}

void Builder::put(Level& level, Node node) {
  if (level.node.kind == Node::Kind::sequence) {
    level.node.items.push_back(std::move(node));
  } else if (!level.key) {
    take_key(level, std::move(node));
  } else if (level.refused) {
    level.key.reset();
  } else {
    const auto [first, fresh] = level.seen.emplace(level.key->value, level.key->span);
    if (fresh) {
      level.node.entries.push_back({std::move(*level.key), std::move(node)});
    } else {
      auto& problem = problems_.error("config.duplicate-key", level.key->span,
                                      fmt::format("duplicate key '{}'", level.key->value));
      problem.notes.push_back({"it is first defined here", first->second});
      problem.hint = "keep one of the two";
    }
    level.key.reset();
  }
}

void Builder::take_key(Level& level, Node node) {
  const bool word = node.kind == Node::Kind::scalar;
  const bool merge_key = word && node.plain && node.text == "<<";
  level.refused = !word || merge_key;
  if (!word) {
    problems_.error("config.key", node.span, "a key must be a string").hint =
        "quote a string that starts with [, {, * or &";
  } else if (merge_key) {
    problems_.error("config.merge-key", node.span, "merge keys (<<) are not part of YAML 1.2").hint =
        "write the keys out, or alias each value";
  }
  level.key = Text{std::move(node.text), node.span};
}

Diagnostic syntax_error(const YAML::ParserException& error, const Places& places, const Builder& builder) {
  const auto at = std::min(static_cast<std::size_t>(std::max(error.mark.pos, 0)), places.text().size());
  Diagnostic found{Severity::error, "config.syntax", {}, places.at(at, 1), {}, {}};
  std::tie(found.message, found.hint) = explain_syntax(error.msg, places.text(), at);
  const auto bracket = builder.open_bracket();
  if (bracket && error.msg.find("flow not found") != std::string::npos) {
    found.notes.push_back({"the parser stopped here", found.span});
    found.span = *bracket;
  }
  return found;
}

Result<Node> parse(const Places& places, Problems& problems) {
  Builder builder(places, problems);
  try {
    std::istringstream in{std::string(places.text())};
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.take();
  } catch (const Stop& stop) {
    return std::unexpected(Diagnostics(stop.reason));
  } catch (const YAML::ParserException& error) {
    return std::unexpected(Diagnostics(syntax_error(error, places, builder)));
  } catch (const std::exception& error) {
    return failure("config.syntax", "cannot parse the file as YAML: {}", error.what());
  }
}

}  // namespace

const Entry* Node::entry(std::string_view key) const {
  const auto found =
      std::ranges::find(entries, key, [](const Entry& entry) { return std::string_view(entry.key.value); });
  return found == entries.end() ? nullptr : &*found;
}

const Node* Node::find(std::string_view key) const {
  const auto* found = entry(key);
  return found == nullptr ? nullptr : &found->value;
}

Node* Node::find(std::string_view key) {
  return const_cast<Node*>(std::as_const(*this).find(key));
}

Result<Node> parse_yaml(const std::shared_ptr<const SourceFile>& file, Problems& problems) {
  return parse(Places(file), problems);
}

Result<Node> parse_yaml(const Text& value, Problems& problems) {
  return parse(Places(value), problems);
}

}  // namespace nlaunch::config
