#include "record/text_filter.h"

#include <gtest/gtest.h>

namespace nlaunch::record {
namespace {

struct Filtered {
  std::string text;
  std::map<std::string, TextFilter::Masked> masked;
};

Filtered filter(const std::string& text, std::size_t block) {
  const SecretScanner scanner;
  Filtered out;
  TextFilter one(scanner, nullptr, [&](std::string_view part) { return out.text += part, true; });
  for (std::size_t at = 0; at < text.size(); at += block)
    EXPECT_TRUE(one.feed(std::string_view(text).substr(at, block)));
  EXPECT_TRUE(one.finish());
  out.masked = one.masked();
  return out;
}

TEST(TextFilter, LetsOtherTextThroughAsItIs) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "step " + std::to_string(i) + " loss 0.25\n";
  EXPECT_EQ(filter(text, 65536).text, text);
  const std::string line(5'000'000, 'x');  // without an end
  EXPECT_EQ(filter(line, 65536).text, line);
}

TEST(TextFilter, FindsASecretAtAnyPlaceOfALongText) {
  const std::string secret = "HF_TOKEN=abcd1234efgh";
  for (const std::size_t before :
       {0U, 1'044'480U, 1'048'560U, 1'048'570U, 1'048'576U, 1'052'660U, 1'052'672U, 2'100'000U}) {
    for (const char filler : {'x', ' ', '\n'}) {
      auto text = std::string(before, filler) + " " + secret + " " + std::string(1'100'000, filler);
      const auto out = filter(text, 65536);
      EXPECT_EQ(out.text.find("abcd"), std::string::npos) << before << " of " << static_cast<int>(filler);
      ASSERT_EQ(out.masked.size(), 1U);
      EXPECT_EQ(out.masked.at("HF_TOKEN").lines.front(), filler == '\n' ? before + 1 : 1U);
    }
  }
}

TEST(TextFilter, APrivateKeyIsTakenOutAcrossBlocks) {
  std::string key = "-----BEGIN PRIVATE KEY-----\n";
  for (int i = 0; i < 60; ++i) key += std::string(64, 'K') + "\n";
  key += "-----END PRIVATE KEY-----\n";
  for (const std::size_t before : {0U, 1'043'000U, 1'046'000U, 1'048'000U}) {
    std::string text;
    while (text.size() < before) text += "line\n";
    const auto out = filter(text + key + text, 4096);
    EXPECT_EQ(out.text.find("KKK"), std::string::npos) << before;
    EXPECT_EQ(out.masked.at("a private key").count, 1U);
  }
}

}  // namespace
}  // namespace nlaunch::record
