#include "base/diagnostic.h"

#include <gtest/gtest.h>

#include "base/secrets.h"

namespace nlaunch {
namespace {

SourceSpan span(std::string text, std::uint32_t line, std::uint32_t column, std::uint32_t length) {
  return {std::make_shared<SourceFile>(SourceFile{"f.yaml", std::move(text)}), line, column, length};
}

TEST(Diagnostic, ShowsThePlaceTheLineAndWhatToType) {
  Diagnostics all;
  auto& one = all.error("config.unknown-key", span("a: 1\n  gpu: 8\n", 2, 3, 3), "unknown key 'gpu'");
  one.notes.push_back({"the first is here", span("a: 1\n", 1, 1, 1)});
  one.hint = "did you mean 'gpus'?";
  all.error("config.other", {}, "and another");
  EXPECT_EQ(render(all),
            "f.yaml:2:3: error: unknown key 'gpu' [config.unknown-key]\n"
            "   2 |   gpu: 8\n"
            "     |   ^^^\n"
            "note: f.yaml:1:1: the first is here\n"
            "hint: did you mean 'gpus'?\n"
            "\n"
            "error: and another [config.other]\n"
            "\n2 errors\n");
}

TEST(Diagnostic, WhatWasFoundTwiceIsSaidOnce) {
  Diagnostics all;
  for (int role = 0; role < 3; ++role) all.error("plan.name", span("a: 1\n", 1, 1, 1), "unknown name");
  EXPECT_EQ(render(all), "f.yaml:1:1: error: unknown name [plan.name]\n   1 | a: 1\n     | ^\n");
}

TEST(Diagnostic, CaretsStandUnderCharactersNotBytes) {
  EXPECT_EQ(render({Severity::warning, "x", "m", span("é: \x1b[31m", 1, 4, 5), {}, {}}),
            "f.yaml:1:4: warning: m [x]\n   1 | é: \\x1b[31m\n     |    ^^^^^\n");
}

TEST(Diagnostic, AVeryLongLineIsShownAroundThePlace) {
  const auto text = render({Severity::error, "x", "m", span(std::string(100000, 'a'), 1, 50000, 3), {}, {}});
  EXPECT_LT(text.size(), 500U);
  EXPECT_NE(text.find("^^^"), std::string::npos);
}

TEST(Source, APartOfAValueHasItsOwnPlace) {
  const auto whole = span("k: \"x ${y}\"\n", 1, 4, 8);
  const auto part = part_of(whole, "x ${y}", 2, 4);
  EXPECT_EQ(part.column, 7U);
  EXPECT_EQ(part.length, 4U);
  EXPECT_EQ(part_of(whole, "other", 2, 2).column, 4U);
}

TEST(Secrets, NamesThatLookLikeOnesAndMasks) {
  EXPECT_TRUE(looks_like_secret("WANDB_API_KEY"));
  EXPECT_TRUE(looks_like_secret("HF_TOKEN"));
  EXPECT_TRUE(looks_like_secret("JINA_API_KEYS"));
  EXPECT_TRUE(looks_like_secret("AWS_ACCESS_KEY_ID"));
  EXPECT_TRUE(looks_like_secret("DB_PASSWORD_FILE"));
  EXPECT_TRUE(looks_like_secret("DB_PASSWD"));
  EXPECT_TRUE(looks_like_secret("wandb_api_key"));
  EXPECT_TRUE(looks_like_secret("dbPassword"));
  EXPECT_TRUE(looks_like_secret("hf-token"));
  EXPECT_FALSE(looks_like_secret("eos_token"));
  EXPECT_FALSE(looks_like_secret("label_key"));
  EXPECT_FALSE(looks_like_secret("TOKENIZERS_PARALLELISM"));
  EXPECT_FALSE(looks_like_secret("KEYBOARD"));
  Masker masker;
  masker.add("abc");  // too short: it would hit innocent text
  masker.add("hunter2");
  masker.add("hunter2-long");
  EXPECT_EQ(masker.mask("abc hunter2 hunter2-long"), "abc *** ***");
}

}  // namespace
}  // namespace nlaunch
