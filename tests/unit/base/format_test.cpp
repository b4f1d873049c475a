#include "base/format.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/version.h"

namespace nlaunch {
namespace {

using nlohmann::ordered_json;

constexpr Format kCake{"nlaunch cake", 2};

std::string said(const ordered_json& json) {
  const auto known = check_format(json, kCake, "runs/a/cake.json");
  return known ? "" : render(known.error());
}

TEST(Format, WhatIsWrittenBeginsWithNameAndVersion) {
  EXPECT_EQ(stamped<ordered_json>(kCake).dump(), R"({"format":"nlaunch cake","version":2})");
}

TEST(Format, OlderOnesAndThoseWithoutAVersionAreReadAndOthersAreNotItsBusiness) {
  for (const auto& json : {stamped<ordered_json>(kCake), ordered_json{{"version", 1}}, ordered_json::object(),
                           ordered_json{{"version", "2.28"}}, ordered_json(),
                           ordered_json{{"format", "nlaunch pie"}, {"version", 7}}})
    EXPECT_EQ(said(json), "");
}

TEST(Format, ANewerOneIsRefusedWithWhatToDo) {
  EXPECT_EQ(
      said({{"format", "nlaunch cake"}, {"version", 3}}),
      fmt::format("error: 'runs/a/cake.json' has version 3 of the format 'nlaunch cake'; this nlaunch ({}) "
                  "knows 2 [format.newer]\nhint: update nlaunch, or use the one that wrote it\n",
                  version()));
}

}  // namespace
}  // namespace nlaunch
