#include "base/format.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/version.h"

namespace nlaunch {
namespace {

using nlohmann::ordered_json;

constexpr std::array kMembers{Format::Member{"layers", Format::Member::Type::list},
                              Format::Member{"layers[]", Format::Member::Type::object},
                              Format::Member{"layers[].name", Format::Member::Type::text},
                              Format::Member{"layers[].grams", Format::Member::Type::number}};
constexpr Format kCake{"nlaunch cake", 2, kMembers};

std::string said(const ordered_json& json) {
  const auto known = check_format(json, kCake, "runs/a/cake.json");
  return known ? "" : render(known.error());
}

TEST(Format, WhatIsWrittenBeginsWithNameAndVersion) {
  EXPECT_EQ(stamped<ordered_json>(kCake).dump(), R"({"format":"nlaunch cake","version":2})");
}

TEST(Format, OlderOnesAndThoseWithoutAVersionAreRead) {
  for (const auto& json :
       {stamped<ordered_json>(kCake), ordered_json{{"version", 1}}, ordered_json::object(),
        ordered_json{{"layers", nullptr}}, ordered_json{{"layers", {{{"name", "cream"}, {"grams", 2.5}}}}}})
    EXPECT_EQ(said(json), "");
}

TEST(Format, WhatIsNoneOfItIsNamed) {
  const auto problem = [](const ordered_json& json) {
    const std::string begin = "error: runs/a/cake.json: ";
    const auto text = said(json);
    return text.starts_with(begin) ? text.substr(begin.size()) : text;
  };
  EXPECT_EQ(problem(parse_ordered_json("{")), "it is not JSON [run.damaged]\n");
  EXPECT_EQ(problem(ordered_json()), "it is not a JSON object [run.damaged]\n");
  EXPECT_EQ(problem({{"version", "2.28"}}),
            "'version' must be a whole number, found: string [run.damaged]\n");
  EXPECT_EQ(problem({{"format", "nlaunch pie"}, {"version", 7}}),
            "'format' must be \"nlaunch cake\", found: \"nlaunch pie\" [run.damaged]\n");
  EXPECT_EQ(problem({{"layers", 3}}), "'layers' must be a list, found: number [run.damaged]\n");
  EXPECT_EQ(problem({{"layers", {ordered_json::object(), 7}}}),
            "'layers[1]' must be an object, found: number [run.damaged]\n");
  EXPECT_EQ(problem({{"layers", {{{"name", "cream"}}, {{"grams", "much"}}}}}),
            "'layers[1].grams' must be a number, found: string [run.damaged]\n");
}

TEST(Format, ANewerOneIsRefusedWithWhatToDo) {
  EXPECT_EQ(
      said({{"format", "nlaunch cake"}, {"version", 3}}),
      fmt::format("error: 'runs/a/cake.json' has version 3 of the format 'nlaunch cake'; this nlaunch ({}) "
                  "supports 2 [format.newer]\nhint: update nlaunch, or use the one that wrote it\n",
                  version()));
}

}  // namespace
}  // namespace nlaunch
