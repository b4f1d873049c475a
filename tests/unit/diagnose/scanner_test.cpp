#include "diagnose/scanner.h"

#include <gtest/gtest.h>

namespace nlaunch::diagnose {
namespace {

constexpr std::string_view kFull = "OSError: [Errno 28] No space left on device";

/// What a scanner tells, as "LINE id".
class NcclReportedSetting : public Listener {
 public:
  void on_match(const Match& match) override {
    told.push_back(std::to_string(match.position.line) + " " + match.signature->id);
    lines.emplace_back(match.line);
  }
  void on_line(const Line& line) override {
    --wanted;
    told.push_back(std::to_string(line.position.line) + "  " + std::string(line.text));
  }
  [[nodiscard]] std::size_t lines_wanted() const override { return wanted; }
  std::vector<std::string> told;
  std::vector<std::string> lines;
  std::size_t wanted = 0;
};

using Told = std::vector<std::string>;

Told told_of(std::string_view text, std::size_t step = 0) {
  NcclReportedSetting heard;
  Scanner scanner(heard);
  scanner.begin(0);
  for (std::size_t at = 0; at < text.size(); at += step == 0 ? text.size() : step)
    scanner.feed(text.substr(at, step == 0 ? text.size() : step));
  scanner.finish();
  return heard.told;
}

TEST(Scanner, TellsLinesByNumberHoweverTheBytesCome) {
  const auto text = "one\n\n" + std::string(kFull) + "\nfour\n" + std::string(kFull);
  const Told expected{"3 disk.full", "5 disk.full"};
  EXPECT_EQ(told_of(text), expected);
  EXPECT_EQ(told_of(text, 1), expected);
  EXPECT_EQ(told_of(text, 7), expected);
}

TEST(Scanner, TakesWhatAProgressBarRewritesForALineOfItsOwn) {
  NcclReportedSetting heard;
  Scanner scanner(heard);
  scanner.begin(0);
  scanner.feed("\r 1%\r 2%\r" + std::string(kFull) + "\r\nnext\n");
  scanner.finish();
  EXPECT_EQ(heard.told, Told{"1 disk.full"});
  EXPECT_EQ(heard.lines, Told{std::string(kFull)});
  EXPECT_EQ(scanner.lines(), 2U);
}

TEST(Scanner, FindsALiteralAcrossPiecesOfALineThatIsTooLong) {
  const std::string filler(300'000, 'x');
  for (std::size_t shift = 0; shift < 64; shift += 9) {
    const auto text = std::string(256 * 1024 - 20 - shift, 'y') + std::string(kFull) + filler + "\n" +
                      std::string(kFull) + "\n";
    EXPECT_EQ(told_of(text), (Told{"1 disk.full", "2 disk.full"})) << shift;
  }
}

TEST(Scanner, LooksAtALongLineNearItsLiteralAlone) {
  NcclReportedSetting heard;
  Scanner scanner(heard);
  scanner.begin(0);
  scanner.feed(std::string(50'000, 'x') + std::string(kFull) + std::string(50'000, 'z') + "\n");
  scanner.finish();
  ASSERT_EQ(heard.lines.size(), 1U);
  EXPECT_LT(heard.lines[0].size(), 9000U);
}

TEST(Scanner, TellsSeveralMatchesOfOneLine) {
  EXPECT_EQ(told_of("[Errno 28] No space left on device [Errno 28] No space left on device\n"),
            (Told{"1 disk.full", "1 disk.full"}));
}

TEST(Scanner, TakesAnyBytes) {
  EXPECT_EQ(told_of(std::string("\0\0\xff\xfe\n\x80", 6) + std::string(kFull) + std::string("\0\n", 2)),
            Told{"2 disk.full"});
}

TEST(Scanner, ShowsTheLinesThatAreWanted) {
  NcclReportedSetting heard;
  heard.wanted = 2;
  Scanner scanner(heard);
  scanner.begin(0);
  scanner.feed(std::string(kFull) + "\nsecond\nthird\nfourth\n");
  scanner.finish();
  EXPECT_EQ(heard.told, (Told{"1 disk.full", "2  second", "3  third"}));
}

TEST(Scanner, CountsLinesOfAllStreams) {
  NcclReportedSetting heard;
  Scanner scanner(heard);
  for (std::uint32_t file = 0; file < 2; ++file) {
    scanner.begin(file);
    scanner.feed("a\nb\nc");
    scanner.finish();
  }
  EXPECT_EQ(scanner.lines(), 6U);
  EXPECT_EQ(scanner.bytes(), 10U);
}

}  // namespace
}  // namespace nlaunch::diagnose
