#include "launch/job/handshake.h"

#include <gtest/gtest.h>

namespace nlaunch::launch {
namespace {

TEST(Handshake, WhoKnowsTheTokenIsBelieved) {
  const auto line = sign(End::agent, "token", "challenge", "node 1");
  EXPECT_TRUE(is_proved(End::agent, "token", "challenge", line));
  EXPECT_EQ(line.says, "node 1");
  EXPECT_EQ(line.proof.find("token"), std::string::npos);
}

TEST(Handshake, AnythingElseIsNot) {
  const auto line = sign(End::agent, "token", "challenge", "node 1");
  EXPECT_FALSE(is_proved(End::agent, "other", "challenge", line));
  EXPECT_FALSE(is_proved(End::agent, "token", "another challenge", line)) << "a line heard before";
  EXPECT_FALSE(is_proved(End::leader, "token", "challenge", line)) << "its own words sent back";
  EXPECT_FALSE(is_proved(End::agent, "token", "challenge", {"node 2", line.proof}));
  EXPECT_FALSE(is_proved(End::agent, "token", "challenge", {"node 1", ""}));
  EXPECT_FALSE(is_proved(End::agent, "", "challenge", sign(End::agent, "", "challenge", "node 1")))
      << "no token is none";
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
