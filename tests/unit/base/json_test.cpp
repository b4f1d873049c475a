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

}  // namespace
}  // namespace nlaunch
