#include "config/yaml.h"

#include <gtest/gtest.h>

namespace nlaunch::config {
namespace {

Node parse(const std::string& text) {
  Problems problems;
  auto node = parse_yaml(std::make_shared<const SourceFile>(SourceFile{"f", text}), problems);
  EXPECT_TRUE(node) << (node ? "" : render(node.error()));
  EXPECT_FALSE(problems.any()) << render(problems.take());
  return node.value_or(Node{});
}

/// "line:column+length"
std::string place(const SourceSpan& span) {
  return fmt::format("{}:{}+{}", span.line, span.column, span.length);
}

TEST(Yaml, KeepsThePlaceOfKeysAndValues) {
  const auto root = parse("a: é b\nmap:\n  c: 'x y'   # why\n  list: [1, \"zwei\"]\n");
  EXPECT_EQ(place(root.entries[0].key.span), "1:1+1");
  EXPECT_EQ(place(root.entries[0].value.span), "1:4+3");
  EXPECT_EQ(place(root.entries[1].key.span), "2:1+3");
  const auto& map = root.entries[1].value;
  EXPECT_EQ(place(map.entries[0].value.span), "3:6+5");
  EXPECT_EQ(map.entries[0].value.text, "x y");
  EXPECT_EQ(place(map.entries[1].value.items[1].span), "4:13+6");
}

TEST(Yaml, CountsColumnsInCharacters) {
  const auto root = parse("{é: ü, 日本: x}\n");
  EXPECT_EQ(place(root.entries[0].value.span), "1:5+1");
  EXPECT_EQ(place(root.entries[1].key.span), "1:8+2");
  EXPECT_EQ(place(root.entries[1].value.span), "1:12+1");
}

TEST(Yaml, PlacesAnEmptyValueAtItsKey) {
  const auto root = parse("a:\nb: ~\nc: null\n");
  EXPECT_EQ(place(root.entries[0].value.span), "1:1+1");
  EXPECT_EQ(place(root.entries[1].value.span), "2:4+1");
  EXPECT_EQ(place(root.entries[2].value.span), "3:4+4");
  for (const auto& entry : root.entries) EXPECT_EQ(entry.value.kind, Node::Kind::null);
}

TEST(Yaml, TellsQuotedFromPlain) {
  const auto root = parse("a: 1\nb: '1'\nc: \"1\"\nd: |\n  1\ne: &x 1\n");
  std::string plain;
  for (const auto& entry : root.entries) plain += entry.value.plain ? entry.key.value : "-";
  EXPECT_EQ(plain, "a---e");
  EXPECT_EQ(place(root.entries[4].value.span), "6:7+1");
}

TEST(Yaml, KeepsTextAsWritten) {
  const auto root = parse("[010, off, 1.50, 0x1F, 24:00:00, yes, 'it''s', \"a\\tb\"]\n");
  std::vector<std::string> texts;
  for (const auto& item : root.items) texts.push_back(item.text);
  EXPECT_EQ(texts,
            (std::vector<std::string>{"010", "off", "1.50", "0x1F", "24:00:00", "yes", "it's", "a\tb"}));
}

TEST(Yaml, PlacesPartsOfAValueInItsSource) {
  const auto file = std::make_shared<const SourceFile>(SourceFile{"--set", "a.b=[x, yy]"});
  Problems problems;
  const auto node = parse_yaml(Text{"[x, yy]", {file, 1, 5, 7}}, problems);
  ASSERT_TRUE(node);
  EXPECT_EQ(place(node->items[1].span), "1:9+2");
}

TEST(Settings, AreTakenApart) {
  const auto setting = parse_setting("--set", "vars.é.b=c=d").value();
  EXPECT_EQ(setting.path.value, "vars.é.b");
  EXPECT_EQ(place(setting.path.span), "1:1+8");
  EXPECT_EQ(setting.value.value, "c=d");
  EXPECT_EQ(place(setting.value.span), "1:10+3");
}

TEST(Settings, MustHaveAPathAndAValue) {
  const auto said = [](const std::string& typed) { return render(parse_setting("--set", typed).error()); };
  EXPECT_EQ(said("nodes"),
            "--set:1:1: error: 'nodes' has no '=' [config.setting]\n"
            "   1 | nodes\n"
            "     | ^^^^^\n"
            "hint: write KEY.PATH=VALUE, for example roles.engine.count=4\n");
  EXPECT_EQ(said("a..b=1"),
            "--set:1:1: error: 'a..b' is not a valid key path [config.setting]\n"
            "   1 | a..b=1\n"
            "     | ^^^^\n"
            "hint: write KEY.PATH=VALUE, for example roles.engine.count=4\n");
}

}  // namespace
}  // namespace nlaunch::config
