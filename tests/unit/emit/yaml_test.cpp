#include "emit/yaml.h"

#include <gtest/gtest.h>

namespace nlaunch::emit {
namespace {

TEST(YamlQuote, ATextIsInDoubleQuotesOnOneLine) {
  EXPECT_EQ(yaml_quote(""), R"("")");
  EXPECT_EQ(yaml_quote("yes"), R"("yes")");
  EXPECT_EQ(yaml_quote("- a: {b # c"), R"("- a: {b # c")");
  EXPECT_EQ(yaml_quote("\"it's\" \\n"), R"("\"it's\" \\n")");
  EXPECT_EQ(yaml_quote("two\nlines\ttab\r"), R"("two\nlines\u0009tab\u000D")");
}

TEST(YamlQuote, WhatYamlTakesForABreakOrNotAtAllIsEscaped) {
  EXPECT_EQ(yaml_quote(std::string_view("\0\x01\x1b\x7f", 4)), R"("\u0000\u0001\u001B\u007F")");
  EXPECT_EQ(yaml_quote("\u0080\u0085\u009F\u00A0"), "\"\\u0080\\u0085\\u009F\u00A0\"");
  EXPECT_EQ(yaml_quote("\u2028\u2029\uFEFF"), R"("\u2028\u2029\uFEFF")");
}

TEST(YamlQuote, OtherSignsStayThemselves) {
  EXPECT_EQ(yaml_quote("ünïcödé 日本 🦊"), "\"ünïcödé 日本 🦊\"");
}

}  // namespace
}  // namespace nlaunch::emit
