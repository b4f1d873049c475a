#include "base/sha256.h"

#include <gtest/gtest.h>

namespace nlaunch {
namespace {

// The examples of FIPS 180-4 and of NIST's test vectors.
TEST(Sha256, KnownDigests) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, LengthsAroundTheEndOfABlock) {  // as coreutils' sha256sum gives them
  EXPECT_EQ(sha256(std::string(55, '0')), "9f8ef876f51f5313c91cc3f6b8119af09d8bbdd72098fa149b2780eb3591d6be");
  EXPECT_EQ(sha256(std::string(56, '0')), "bd03ac1428f0ea86f4b83a731ffc7967bb82866d8545322f888d2f6e857ffc18");
  EXPECT_EQ(sha256(std::string(63, '0')), "c7dc2d25e306355c97af916e8d50b27a948506a74c6b2dd1b29e2b63d0a3aa8c");
  EXPECT_EQ(sha256(std::string(64, '0')), "60e05bd1b195af2f94112fa7197a5c88289058840ce7c6df9693756bc6250f55");
  EXPECT_EQ(sha256(std::string(65, '0')), "e531ef0f962409170917abf9de3287afec23dd1c42c9e1fea66c5feab99e8f7c");
  EXPECT_EQ(sha256(std::string(119, '0')),
            "c4487f9d6420e35698f9d9b4952e0a9f4735b0ce1729cdc68672ff30f20c6af2");
  EXPECT_EQ(sha256(std::string(120, '0')),
            "09719c55365a950c92a06122b6ce2634e3ce9b6dbcde1827171941658c7eedab");
}

// RFC 4231.
TEST(HmacSha256, KnownCodes) {
  EXPECT_EQ(hmac_sha256(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac_sha256("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(SameSecret, ComparesAll) {
  EXPECT_TRUE(same_secret("", ""));
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "abcd"));
}

TEST(Sha256, OfPartsIsThatOfTheWhole) {
  const std::string text(1000, 'x');
  for (const std::size_t part : {1U, 63U, 64U, 65U, 1000U}) {
    Sha256 sum;
    for (std::size_t at = 0; at < text.size(); at += part) sum.feed(std::string_view(text).substr(at, part));
    EXPECT_EQ(sum.finish(), sha256(text)) << part;
  }
}

}  // namespace
}  // namespace nlaunch
