#include "sys/tar_writer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "sys/tar.h"

namespace nlaunch::sys {
namespace {

/// What the archive's blocks are, as our own reader takes headers.
std::vector<TarMember> headers_of(const std::string& archive) {
  std::vector<TarMember> out;
  for (std::size_t at = 0; at + kTarBlock <= archive.size();) {
    TarBlock block;
    std::memcpy(block.data(), archive.data() + at, kTarBlock);
    const auto member = parse_tar_header(block);
    if (!member) break;
    out.push_back(*member);
    at += kTarBlock + (member->size + kTarBlock - 1) / kTarBlock * kTarBlock;
  }
  return out;
}

std::string archive_of(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string out;
  TarWriter tar([&](std::string_view bytes) { return out += bytes, true; });
  for (const auto& [name, content] : files) {
    EXPECT_TRUE(tar.begin({name, content.size(), 1700000000, 0644}));
    EXPECT_TRUE(content.empty() || tar.write(content));
  }
  EXPECT_TRUE(tar.finish());
  return out;
}

TEST(TarWriter, PadsToBlocksAndEndsWithTwoOfZeros) {
  const auto archive = archive_of({{"run/a", "hello"}, {"run/empty", ""}, {"run/b", std::string(512, 'x')}});
  EXPECT_EQ(archive.size(), 512U * (2 + 1 + 2 + 2));
  const auto found = headers_of(archive);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].name, "run/a");
  EXPECT_EQ(found[0].size, 5U);
  EXPECT_EQ(found[1].name, "run/empty");
  EXPECT_EQ(found[2].size, 512U);
  EXPECT_EQ(archive.substr(archive.size() - 1024), std::string(1024, '\0'));
}

TEST(TarWriter, ANameOfTwoHundredFitsTheHeaderWhereItHasASlash) {
  const auto name = std::string(120, 'd') + "/" + std::string(80, 'f');
  const auto found = headers_of(archive_of({{name, "x"}}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, name);
}

TEST(TarWriter, ALongerOneIsARecordOfPax) {
  const auto name = "run/" + std::string(250, 'f');
  const auto archive = archive_of({{name, "x"}});
  const auto found = headers_of(archive);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].type, TarMember::Type::pax);
  EXPECT_EQ(archive.substr(512, found[0].size), "264 path=" + name + "\n");
}

TEST(TarWriter, ASizeOverElevenOctalDigitsIsARecordOfPax) {
  std::string out;
  TarWriter tar([&](std::string_view bytes) { return out += bytes, true; });
  ASSERT_TRUE(tar.begin({"run/huge", 10'000'000'000, 0, 0644}));
  const auto found = headers_of(out);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(out.substr(512, found[0].size), "20 size=10000000000\n");
}

TEST(TarWriter, TakesNoMoreThanWasAnnounced) {
  TarWriter tar([](std::string_view) { return true; });
  ASSERT_TRUE(tar.begin({"a", 3, 0, 0644}));
  EXPECT_FALSE(tar.write("four"));
  EXPECT_FALSE(tar.finish());
}

}  // namespace
}  // namespace nlaunch::sys
