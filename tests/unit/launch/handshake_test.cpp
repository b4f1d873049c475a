#include "launch/handshake.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace nlaunch::launch {
namespace {

using nlohmann::json;

const json kHello{{"node", 1}, {"plan", "abc"}};

TEST(Handshake, WhoKnowsTheTokenIsBelieved) {
  const auto line = signed_line(End::pending, "token", "challenge", kHello);
  EXPECT_EQ(verified(End::pending, "token", "challenge", line), kHello);
  EXPECT_EQ(line.find("token"), std::string::npos);
}

TEST(Handshake, AnythingElseIsNot) {
  const auto line = signed_line(End::pending, "token", "challenge", kHello);
  EXPECT_FALSE(verified(End::pending, "other", "challenge", line));
  EXPECT_FALSE(verified(End::pending, "token", "another challenge", line)) << "a line heard before";
  EXPECT_FALSE(verified(End::host, "token", "challenge", line)) << "its own words sent back";
  auto changed = line;
  changed.replace(changed.find("abc"), 3, "abd");
  EXPECT_FALSE(verified(End::pending, "token", "challenge", changed));
  EXPECT_FALSE(verified(End::pending, "", "challenge", signed_line(End::pending, "", "challenge", kHello)))
      << "no token is none";
}

TEST(Handshake, WhatIsNoSignedLineIsNothing) {
  for (const char* line : {"", "hello", "[]", "{}", R"({"says":1,"proof":2})", R"({"says":"{}"})",
                           R"({"token":"token","node":0})", "\xff\xfe"}) {
    EXPECT_FALSE(verified(End::pending, "token", "challenge", line)) << line;
  }
  EXPECT_FALSE(
      verified(End::pending, "token", "challenge", signed_line(End::pending, "token", "challenge", json(7))));
}

TEST(Handshake, ATokenIsOnceOnly) {
  EXPECT_EQ(new_token().size(), 32U);
  EXPECT_NE(new_token(), new_token());
}

TEST(Fingerprint, IsOfThePlanAlone) {
  plan::Plan one;
  one.name = "one";
  auto other = one;
  EXPECT_EQ(fingerprint(one).value(), fingerprint(other).value());
  other.vars["steps"] = "7";
  EXPECT_NE(fingerprint(one).value(), fingerprint(other).value());
}

}  // namespace
}  // namespace nlaunch::launch
