#include "base/json.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace nlaunch {
namespace {

TEST(Json, WhatIsNotUtf8IsReplacedAndTheRestStays) {
  EXPECT_EQ(json_text(nlohmann::ordered_json{{"path", "/d\xE4ta/\xC3\xA4"}, {"\xFF", 1}}),
            "{\"path\":\"/d\uFFFDta/\u00E4\",\"\uFFFD\":1}");
}

TEST(Json, AnIndentMakesLines) {
  EXPECT_EQ(json_text(nlohmann::json{{"a", {1}}}, 1), "{\n \"a\": [\n  1\n ]\n}");
}

TEST(Json, WhatActsOnATerminalIsEscaped) {
  const nlohmann::json value{{"a", "\x1b\x7f\xc2\x80\xc2\x9f|\xc2\xa0\xc3\xa4"}};
  const auto text = json_text(value);
  EXPECT_EQ(text, "{\"a\":\"\\u001b\\u007f\\u0080\\u009f|\xc2\xa0\xc3\xa4\"}");
  EXPECT_EQ(parse_json(text), value);
}

}  // namespace
TEST(Json, ElementsMadeOneByOneAreTheSameText) {
  using Json = nlohmann::ordered_json;
  const std::vector<Json> elements{
      {{"name", "a\nb"}, {"list", {1, 2}}}, Json::array(), "\xff", {{"empty", Json::object()}}};
  for (std::size_t count = 0; count <= elements.size(); ++count) {
    Json whole{{"first", 1}, {"processes", Json::array()}, {"last", {{"processes", Json::array()}}}};
    std::string by_one;
    write_json(whole, {"processes", count, [&](std::size_t i) { return elements[i]; }},
               [&](std::string_view text) { by_one += text; });
    for (std::size_t i = 0; i < count; ++i) whole["processes"].push_back(elements[i]);
    EXPECT_EQ(by_one, json_text(whole, 2)) << count;
  }
}

}  // namespace nlaunch
