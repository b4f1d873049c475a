#include "fleet/conversation.h"

#include <gtest/gtest.h>

namespace nlaunch::fleet {
namespace {

std::string unconfirmed(const Conversation& conversation) {
  std::string all;
  for (const auto& text : conversation.unconfirmed()) all += *text;
  return all;
}

void say(Conversation& conversation, const std::string& letters) {
  for (const char letter : letters) conversation.sent(std::make_shared<const std::string>(1, letter));
}

TEST(Conversation, KeepsWhatIsNotConfirmed) {
  Conversation conversation;
  EXPECT_TRUE(conversation.has_not_begun());
  say(conversation, "abcd");
  EXPECT_FALSE(conversation.has_not_begun());
  EXPECT_TRUE(conversation.confirmed(1));
  EXPECT_EQ(unconfirmed(conversation), "bcd");
  EXPECT_TRUE(conversation.confirmed(1));
  EXPECT_TRUE(conversation.confirmed(4));
  EXPECT_EQ(unconfirmed(conversation), "");
  say(conversation, "e");
  EXPECT_EQ(unconfirmed(conversation), "e");
}

TEST(Conversation, RefusesWhatCannotHaveArrived) {
  Conversation conversation;
  say(conversation, "abc");
  EXPECT_FALSE(conversation.confirmed(4));
  EXPECT_TRUE(conversation.confirmed(2));
  EXPECT_FALSE(conversation.confirmed(1));
  EXPECT_EQ(unconfirmed(conversation), "c");
}

TEST(Conversation, ConfirmsEverySixteenthMessage) {
  Conversation conversation;
  for (int round = 1; round <= 3; ++round) {
    for (int i = 1; i < 16; ++i) EXPECT_FALSE(conversation.receive());
    EXPECT_TRUE(conversation.receive());
    EXPECT_EQ(conversation.received(), 16U * static_cast<unsigned>(round));
  }
}

TEST(Address, IsReadAsItWasWritten) {
  using To = Address::To;
  const std::pair<Address, std::string> texts[] = {
      {{}, R"({"type":"bind"})"},
      {{To::node, 17}, R"(17 {"type":"bind"})"},
      {{To::arrival, 4'294'967'295}, R"(+4294967295 {"type":"bind"})"},
      {{To::all}, R"(* {"type":"bind"})"}};
  for (const auto& [address, text] : texts) {
    EXPECT_EQ(addressed(address, R"({"type":"bind"})"), text);
    const auto read = read_address(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->address.to, address.to) << text;
    EXPECT_EQ(read->address.node, address.node) << text;
    EXPECT_EQ(read->text, R"({"type":"bind"})") << text;
  }
}

TEST(Address, AnythingElseIsNone) {
  for (const auto* text :
       {"", " ", "nonsense", "17", "-1 {}", "+ {}", "4294967296 {}", "1.5 {}", "** {}", "+-1 {}", "x {}"})
    EXPECT_FALSE(read_address(text)) << text;
}

}  // namespace
}  // namespace nlaunch::fleet
