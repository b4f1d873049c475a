#include "diagnose/scanner.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "unit/diagnose/logs.h"

namespace nlaunch::diagnose {
namespace {

constexpr std::string_view kFull = "OSError: [Errno 28] No space left on device";
const std::string kTraceback = "Traceback (most recent call last):";

/// What a scanner tells, as "LINE id".
class NcclReportedSetting : public Listener {
 public:
  void on_match(const Match& match) override {
    told.push_back(std::to_string(match.position.line) + " " + match.signature->id);
    lines.emplace_back(match.line);
  }
  void on_line(const Line& line) override {
    told.push_back(std::to_string(line.position.line) + "  " + std::string(line.text));
  }
  std::vector<std::string> told;
  std::vector<std::string> lines;
};

using Told = std::vector<std::string>;

Told told_of(std::string_view text, std::size_t step = 4096) {
  NcclReportedSetting heard;
  scan_text(heard, text, 0, step);
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
  scan_text(heard, "\r 1%\r 2%\r" + std::string(kFull) + "\r\nnext\n");
  EXPECT_EQ(heard.told, Told{"1 disk.full"});
  EXPECT_EQ(heard.lines, Told{std::string(kFull)});
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
  scan_text(heard, std::string(50'000, 'x') + std::string(kFull) + std::string(50'000, 'z') + "\n");
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

/// Keeps what it is told.
class Keeper : public Listener {
 public:
  struct Kept {
    LogPosition position;
    std::string id;
    std::string line;
    std::string before;
    std::string previous;
    std::string who;
    std::uint64_t offset = 0;
    std::optional<double> time;
    Level level = Level::unsaid;
  };
  void on_match(const Match& match) override {
    matches.push_back({match.position, match.signature->id, std::string(match.line),
                       std::string(match.before), std::string(match.previous), match.origin.str(),
                       match.offset, match.time, match.level});
  }
  void on_line(const Line& line) override {
    lines.push_back(std::to_string(line.position.line) + " " + std::string(line.text));
  }
  std::vector<Kept> matches;
  std::vector<std::string> lines;
};

Keeper kept_of(std::string_view text) {
  Keeper keeper;
  scan_text(keeper, text);
  return keeper;
}

TEST(Scanner, TellsWhereAMatchStandsAndWhatIsBeforeIt) {
  const auto kept =
      kept_of("first\nsecond\n2024-10-09 21:16:02 ERROR [rank3]: " + std::string(kFull) + " now\n");
  ASSERT_EQ(kept.matches.size(), 1U);
  const auto& match = kept.matches[0];
  EXPECT_EQ(match.line, "2024-10-09 21:16:02 ERROR [rank3]: OSError: [Errno 28] No space left on device now");
  EXPECT_EQ(match.before, "2024-10-09 21:16:02 ERROR [rank3]: OSError: ");
  EXPECT_EQ(match.previous, "second");
  EXPECT_EQ(match.offset, 13U);
  EXPECT_EQ(match.who, "rank 3");
  EXPECT_EQ(match.time, 1728508562.0);
  EXPECT_EQ(match.level, Level::error);
}

TEST(Scanner, TellsTheLineBeforeAsFarAsItIsAtHand) {
  const std::string full(kFull);
  EXPECT_EQ(kept_of(full).matches.at(0).previous, "");
  EXPECT_EQ(kept_of("\n\n" + full).matches.at(0).previous, "");
  EXPECT_EQ(kept_of("one\n" + full).matches.at(0).previous, "one");
  EXPECT_EQ(kept_of("x\none\n\r\n\n" + full).matches.at(0).previous, "one");
  EXPECT_EQ(kept_of(std::string(2048, 'x') + "\n" + full).matches.at(0).previous, std::string(2048, 'x'));
  EXPECT_EQ(kept_of("ab" + std::string(2048, 'x') + "\n" + full).matches.at(0).previous,
            std::string(2048, 'x'));
  EXPECT_EQ(kept_of("a\n" + std::string(2047, 'x') + "\n" + full).matches.at(0).previous,
            std::string(2047, 'x'));
}

TEST(Scanner, LooksTwoKibibytesBeforeALiteralAndSixBehindIt) {
  const std::string literal = "[Errno 28] No space left on device";
  const auto kept = kept_of(std::string(5000, 'x') + literal + std::string(9000, 'z') + "\n");
  ASSERT_EQ(kept.matches.size(), 1U);
  EXPECT_EQ(kept.matches[0].line, std::string(2048, 'x') + literal + std::string(6144 - literal.size(), 'z'));
  EXPECT_EQ(kept.matches[0].offset, 5000U - 2048U);
  EXPECT_EQ(kept_of(std::string(2048, 'x') + literal).matches.at(0).offset, 0U);
  EXPECT_EQ(kept_of(std::string(2049, 'x') + literal).matches.at(0).offset, 1U);
}

TEST(Scanner, GoesOnBehindWhatItHasLookedAtOfALongLine) {
  const std::string literal = "Horovod detected that one or more processes exited with non-zero status";
  const auto text =
      literal + std::string(6144 - literal.size(), '.') + literal + std::string(7000, '.') + literal;
  const auto kept = kept_of(text);
  ASSERT_EQ(kept.matches.size(), 3U);
  EXPECT_EQ(kept.matches[1].before.size(), 2048U);
  EXPECT_EQ(kept.matches[2].before.size(), 2048U);
}

TEST(Scanner, LosesNothingWhereItsBufferEnds) {
  std::string text;
  std::vector<std::string> lines;
  for (int i = 1000; i < 8000; ++i) {
    lines.push_back(std::to_string(i) + ": " + std::string(kFull));
    text += lines.back() + "\n";
  }
  ASSERT_GT(text.size(), 256U << 10U);
  const auto kept = kept_of(text);
  ASSERT_EQ(kept.matches.size(), lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    ASSERT_EQ(kept.matches[i].line, lines[i]);
    ASSERT_EQ(kept.matches[i].position.line, i + 1);
    ASSERT_EQ(kept.matches[i].offset, i * (lines[0].size() + 1));
  }
}

TEST(Scanner, ShowsTheLinesAfterATracebackAcrossTheEndsOfItsBuffer) {
  const std::string filler(700, 'x');
  for (std::size_t before = 300; before < 400; before += 11) {
    std::string text;
    for (std::size_t i = 0; i < before; ++i) text += filler + "\n";
    text += kTraceback + "\n";
    std::vector<std::string> expected;
    for (std::size_t i = before + 2; i < before + 2000; ++i) {
      const std::string line(1000, static_cast<char>('a' + i % 26));
      text += line + "\n";
      if (expected.size() < kLinesAfter) expected.push_back(std::to_string(i) + " " + line);
    }
    EXPECT_EQ(kept_of(text).lines, expected) << before;
  }
}

TEST(Scanner, ShowsTheLinesAfterTheMatchesThatAnAnalysisReadsOnFrom) {
  const std::string full(kFull);
  EXPECT_EQ(kept_of(full + "\na\n").lines, Told{});
  EXPECT_EQ(kept_of("x\n" + kTraceback + "\na\n" + full + "\nc").lines, (Told{"3 a", "4 " + full, "5 c"}));
  EXPECT_EQ(kept_of("loss: nan\na\n").lines, Told{"2 a"});
  EXPECT_EQ(kept_of("x\n" + kTraceback).lines, Told{});
  EXPECT_EQ(kept_of("x\n" + kTraceback + "\n").lines, Told{});
  EXPECT_EQ(kept_of(kTraceback + "\n\nend").lines, (Told{"2 ", "3 end"}));
  EXPECT_EQ(kept_of(kTraceback + "\n" + std::string(7000, 'x') + "\nend").lines,
            (Told{"2 " + std::string(6144, 'x'), "3 end"}));
}

TEST(Scanner, BeginsEachStreamAnew) {
  Keeper keeper;
  for (std::uint32_t file = 0; file < 2; ++file) {
    const auto end = scan_text(keeper, kTraceback + "\na", file);
    EXPECT_EQ(end.lines, 2U);
    EXPECT_EQ(end.bytes, kTraceback.size() + 2);
    EXPECT_EQ(end.last, "a");
  }
  const auto end = scan_text(keeper, "b\nc\n", 2);
  EXPECT_EQ(end.lines, 2U);
  EXPECT_EQ(scan_text(keeper, "", 3).lines, 0U);
  ASSERT_EQ(keeper.matches.size(), 2U);
  EXPECT_EQ(keeper.matches[1].position, (LogPosition{1, 1}));
  EXPECT_EQ(keeper.matches[1].offset, 0U);
  EXPECT_EQ(keeper.lines, (Told{"2 a", "2 a"}));
}

TEST(Scanner, CountsTheLinesOfALineThatIsReadInPieces) {
  Keeper keeper;
  const auto end = scan_text(keeper, std::string(300'000, 'x') + "\ny\n");
  EXPECT_EQ(end.lines, 2U);
  EXPECT_EQ(end.bytes, 300'003U);
  EXPECT_EQ(end.last, "y");
}

TEST(Scanner, KeepsTheEndOfTheLastLineThatIsNotBlank) {
  Keeper keeper;
  EXPECT_EQ(scan_text(keeper, "first\n  the end \r\n\n").last, "the end");
  EXPECT_EQ(scan_text(keeper, "the end\n" + std::string(600'000, '\n')).last, "the end");
  EXPECT_EQ(scan_text(keeper, std::string(5000, 'a')).last, std::string(1024, 'a'));
  EXPECT_EQ(scan_text(keeper, "\n \n").last, "");
}

TEST(Scanner, ReadsWhoALineIsAboutFromItsGroups) {
  const auto who = [](std::string_view line) {
    for (const auto& match : kept_of(line).matches) {
      if (!match.who.empty()) return match.who;
    }
    return std::string();
  };
  EXPECT_EQ(who("[node1:04711] *** Process received signal ***"), "node1 (pid 04711)");
  EXPECT_EQ(who("srun: error: node1: task 3: Killed"), "task 3 on node1");
  EXPECT_EQ(who("The IPv6 network addresses of (node-0, 29500) cannot be retrieved"), "node-0:29500");
  EXPECT_EQ(who("[rank4]: gloo/transport/tcp/pair.cc:547] Connection closed by peer [192.168.7.7]:31485"),
            "192.168.7.7 (as seen by rank 4)");
}

TEST(Match, KnowsItsGroupsByName) {
  Match match;
  match.groups = {{"rank", "3"}, {"size", "2"}};
  EXPECT_EQ(match["size"], "2");
  EXPECT_EQ(match["host"], "");
}

}  // namespace
}  // namespace nlaunch::diagnose
