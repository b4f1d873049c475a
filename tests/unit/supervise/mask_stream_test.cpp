#include "supervise/mask_stream.h"

#include <gtest/gtest.h>

namespace nlaunch::supervise {
namespace {

Masker masker_of(std::initializer_list<const char*> secrets) {
  Masker masker;
  for (const auto* secret : secrets) masker.add(secret);
  return masker;
}

std::string masked(const Masker& masker, std::string_view text, std::size_t block) {
  MaskStream stream(masker);
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += block) out += stream.feed(text.substr(at, block));
  out += stream.finish();
  return out;
}

TEST(MaskStream, FindsASecretAcrossAnyBorder) {
  const auto masker = masker_of({"hunter2", "swordfish"});
  const std::string_view text = "hunter2 hunthunter2 sword swordfish\nhunter";
  for (std::size_t block = 1; block <= text.size(); ++block) {
    EXPECT_EQ(masked(masker, text, block), "*** hunt*** sword ***\nhunter") << "blocks of " << block;
  }
}

TEST(MaskStream, HoldsBackOnlyWhatMayBecomeASecret) {
  const auto masker = masker_of({"hunter2"});
  MaskStream stream(masker);
  EXPECT_EQ(stream.feed("password: hun"), "password: ");
  EXPECT_EQ(stream.feed("gry\n"), "hungry\n");
  EXPECT_EQ(stream.finish(), "");
}

TEST(MaskStream, ALongerSecretWinsOverItsBeginning) {
  const auto masker = masker_of({"abcd", "abcdXY"});
  for (const std::size_t block : {1U, 4U, 6U}) {
    EXPECT_EQ(masked(masker, "abcdXY abcd!", block), "*** ***!") << "blocks of " << block;
  }
}

TEST(MaskStream, ASecretThatEndsLikeAnotherBeginsIsMaskedWhole) {
  const auto masker = masker_of({"aabb", "bbcc"});
  for (const std::size_t block : {1U, 2U, 4U}) EXPECT_EQ(masked(masker, "aabb!", block), "***!");
}

TEST(MaskStream, AWholeSecretIsNotHeldBack) {
  const auto masker = masker_of({"hunter2"});
  MaskStream stream(masker);
  EXPECT_EQ(stream.feed("hunter2"), "***");
  EXPECT_EQ(stream.feed(" hunter2 hun"), " *** ");
  EXPECT_EQ(stream.feed("hunter2"), "hun***");
  EXPECT_EQ(stream.feed("hunter"), "");
  EXPECT_EQ(stream.finish(), "hunter");
  EXPECT_EQ(stream.finish(), "");
}

TEST(MaskStream, WhereTheLastLetterMayBeginAnotherTheWholeIsHeldBack) {
  const auto masker = masker_of({"abcd", "dxyz"});
  for (const std::string before : {"", ".", "....."}) {
    MaskStream stream(masker);
    EXPECT_EQ(stream.feed(before + "abcd"), before);
    EXPECT_EQ(stream.feed("!"), "***!");
  }
}

TEST(MaskStream, NoneOfAChainOfSecretsIsCut) {
  const auto masker = masker_of({"abcde", "efgh", "hxyz"});
  MaskStream stream(masker);
  EXPECT_EQ(stream.feed("abcdefgh"), "");
  EXPECT_EQ(stream.feed("!"), "***fgh!");
}

TEST(MaskStream, WithoutSecretsTheBytesPassAsTheyAre) {
  const Masker none;
  MaskStream stream(none);
  const std::string_view text = "anything";
  EXPECT_EQ(stream.feed(text).data(), text.data());
}

}  // namespace
}  // namespace nlaunch::supervise
