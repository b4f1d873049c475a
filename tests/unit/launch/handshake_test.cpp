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

TEST(Handshake, ALineProvesItsWriterItsConnectionAndItsPlace) {
  const auto proofs = [](End by, const char* token = "token", const char* challenge = "theirs") {
    LineProof proof(by, token, challenge, "ours");
    return std::vector{proof.next("a line"), proof.next("a line")};
  };
  const auto known = proofs(End::agent);
  EXPECT_EQ(proofs(End::agent), known);
  EXPECT_NE(known[0], known[1]) << "said twice";
  EXPECT_NE(proofs(End::leader)[0], known[0]);
  EXPECT_NE(proofs(End::agent, "other")[0], known[0]);
  EXPECT_NE(proofs(End::agent, "token", "of another connection")[0], known[0]);
}

}  // namespace
}  // namespace nlaunch::launch
