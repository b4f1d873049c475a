#include "lint/lint_input.h"

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

std::string value_of(const std::vector<Setting>& settings) {
  return environment("", settings).value("A").value_or("none");
}

TEST(Environment, TheLastThatIsSureCounts) {
  EXPECT_EQ(value_of({set("A", "1"), set("A", "2")}), "2");
  EXPECT_EQ(value_of({set("A", "1"), maybe(set("A", "2"))}), "1");
  EXPECT_EQ(value_of({maybe(set("A", "1")), set("A", "2")}), "2");
  EXPECT_EQ(value_of({maybe(set("A", "1")), set("B", "2")}), "none");
  EXPECT_EQ(value_of({set("A", "1"), unset("A")}), "none");
  EXPECT_EQ(value_of({set("A", "1"), open("A")}), "none");
  EXPECT_EQ(value_of({set("A", "1"), local(set("A", "2"))}), "1");
  EXPECT_EQ(value_of({set("B", "1")}), "none");
  auto gone = unset("A");
  gone.value = "1";
  EXPECT_EQ(value_of({gone}), "none");
}

TEST(Environment, AmongThoseUnderConditionsTheLastIsFound) {
  const auto both = environment("", {maybe(set("A", "1")), maybe(set("A", "2"))});
  EXPECT_EQ(both.find("A"), &both.settings[1]);
  const auto three = environment("", {maybe(set("A", "1")), set("A", "2"), maybe(set("A", "3"))});
  EXPECT_EQ(three.find("A"), &three.settings[1]);
  const auto hidden = environment("", {local(set("A", "1"))});
  EXPECT_EQ(hidden.find("A"), nullptr);
}

bool may_be_one(const std::vector<Setting>& settings) {
  return environment("", settings).may("A", [](const std::string& value) { return value == "1"; });
}

TEST(Environment, WhatMayHoldIsAllBackToTheLastThatIsSure) {
  EXPECT_TRUE(may_be_one({set("A", "1")}));
  EXPECT_TRUE(may_be_one({open("A")}));
  EXPECT_TRUE(may_be_one({set("A", "1"), maybe(set("A", "2"))}));
  EXPECT_TRUE(may_be_one({set("A", "1"), maybe(unset("A"))}));
  EXPECT_TRUE(may_be_one({set("A", "1"), local(set("A", "2"))}));
  EXPECT_TRUE(may_be_one({set("A", "1"), set("B", "2")}));
  EXPECT_FALSE(may_be_one({set("A", "1"), set("A", "2")}));
  EXPECT_FALSE(may_be_one({set("A", "1"), unset("A")}));
  EXPECT_FALSE(may_be_one({maybe(set("A", "2"))}));
  EXPECT_FALSE(may_be_one({local(set("A", "1"))}));
  EXPECT_FALSE(may_be_one({set("B", "1")}));
}

TEST(Environment, ReleasesAreByOwner) {
  auto one = environment("", {});
  one.releases["NCCL"] = version("2.27.5");
  ASSERT_NE(one.release("NCCL"), nullptr);
  EXPECT_EQ(one.release("NCCL")->str(), "2.27.5");
  EXPECT_EQ(one.release("PyTorch"), nullptr);
}

TEST(Setting, ASecretIsTold) {
  for (const auto& secret :
       {set("HF_TOKEN", "abcdefgh"), set("DB", "postgres://me:hunter22@db/x"),
        set("KEY_OF_SOMETHING", "hf_Abcdefgh1234"), set("MY_PASSWORD", "correct-horse")}) {
    EXPECT_TRUE(secret.holds_secret()) << secret.name;
  }
  for (const auto& harmless :
       {set("HF_TOKEN", "${HF_TOKEN}"), set("HF_TOKEN", "/home/me/token"), set("HF_TOKEN", "your-token"),
        set("HF_HOME", "abcdefgh"), open("HF_TOKEN"), unset("HF_TOKEN")}) {
    EXPECT_FALSE(harmless.holds_secret()) << harmless.name << "=" << harmless.value.value_or("");
  }
  auto gone = set("HF_TOKEN", "abcdefgh");
  gone.unset = true;
  EXPECT_FALSE(gone.holds_secret());
}

}  // namespace
}  // namespace nlaunch::lint
