#include "base/packed.h"

#include <gtest/gtest.h>

namespace nlaunch {
namespace {

constexpr std::size_t kLimit = 1U << 24U;

TEST(Pack, GivesTheTextBack) {
  for (std::size_t size : {0U, 1U, 2U, 3U, 4U, 100U, 65536U, 1'000'000U}) {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) text += static_cast<char>(i * i % 251);
    const auto packed = pack(text);
    EXPECT_EQ(packed.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="),
              std::string::npos);
    EXPECT_EQ(unpack(packed, kLimit), text) << size;
  }
}

TEST(Pack, TakesLittleForATextThatRepeats) {
  EXPECT_LT(pack(std::string(1'000'000, 'x')).size(), 2000U);
}

TEST(Unpack, RefusesWhatIsCutOrSomethingElse) {
  const auto packed = pack("a text that is long enough to be cut somewhere in its middle");
  for (std::size_t size = 0; size < packed.size(); ++size)
    EXPECT_FALSE(unpack(packed.substr(0, size), kLimit)) << size;
  for (const char* other : {"====", "AAAA", "not base64!!", "eNoDAAAAAAE"})
    EXPECT_FALSE(unpack(other, kLimit)) << other;
}

TEST(Unpack, EndsAtItsLimit) {
  const auto packed = pack(std::string(1'000'000, 'x'));
  EXPECT_TRUE(unpack(packed, 1'000'000));
  EXPECT_FALSE(unpack(packed, 999'999));
}

}  // namespace
}  // namespace nlaunch
