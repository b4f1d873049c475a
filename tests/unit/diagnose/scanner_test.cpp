#include "diagnose/scanner.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

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

/// Keeps what it is told, and wants the next lines after each match.
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
  explicit Keeper(std::size_t wanted = 0) : wanted_(wanted) {}
  void on_match(const Match& match) override {
    matches.push_back({match.position, match.signature->id, std::string(match.line),
                       std::string(match.before), std::string(match.previous), match.origin.str(),
                       match.offset, match.time, match.level});
    left_ = wanted_;
  }
  void on_line(const Line& line) override {
    --left_;
    lines.push_back(std::to_string(line.position.line) + " " + std::string(line.text));
  }
  [[nodiscard]] std::size_t lines_wanted() const override { return left_; }
  std::vector<Kept> matches;
  std::vector<std::string> lines;

 private:
  std::size_t wanted_;
  std::size_t left_ = 0;
};

Keeper kept_of(std::string_view text, std::size_t wanted = 0) {
  Keeper keeper(wanted);
  Scanner scanner(keeper);
  scanner.begin(0);
  scanner.feed(text);
  scanner.finish();
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

TEST(Scanner, ShowsWantedLinesWhereItsBufferEnds) {
  std::string text = std::string(kFull) + "\n";
  std::vector<std::string> expected;
  for (int i = 2; i < 5000; ++i) {
    const std::string line(100, static_cast<char>('a' + i % 26));
    text += line + "\n";
    expected.push_back(std::to_string(i) + " " + line);
  }
  EXPECT_EQ(kept_of(text, 100'000).lines, expected);
  expected.resize(4000);
  EXPECT_EQ(kept_of(text, 4000).lines, expected);
}

TEST(Scanner, ShowsTheLinesBehindEachMatch) {
  const std::string full(kFull);
  EXPECT_EQ(kept_of(full + "\na\nb\n" + full + "\nc\nd\n", 1).lines, (Told{"2 a", "5 c"}));
  EXPECT_EQ(kept_of("x\n" + full + "\na\n" + full + "\nc\nd\n", 2).lines, (Told{"3 a", "4 " + full, "5 c"}));
  EXPECT_EQ(kept_of("x\n" + full, 2).lines, Told{});
  EXPECT_EQ(kept_of("x\n" + full + "\n", 2).lines, Told{});
  EXPECT_EQ(kept_of(full + "\n\nend", 5).lines, (Told{"2 ", "3 end"}));
  EXPECT_EQ(kept_of(full + "\n" + std::string(7000, 'x') + "\nend", 5).lines,
            (Told{"2 " + std::string(6144, 'x'), "3 end"}));
}

TEST(Scanner, BeginsEachStreamAnew) {
  Keeper keeper(5);
  Scanner scanner(keeper);
  for (std::uint32_t file = 0; file < 2; ++file) {
    scanner.begin(file);
    scanner.feed(std::string(kFull) + "\na");
    scanner.finish();
  }
  scanner.begin(2);
  scanner.feed("b\nc\n");
  scanner.finish();
  ASSERT_EQ(keeper.matches.size(), 2U);
  EXPECT_EQ(keeper.matches[1].position, (LogPosition{1, 1}));
  EXPECT_EQ(keeper.matches[1].offset, 0U);
  EXPECT_EQ(keeper.lines, (Told{"2 a", "2 a"}));
  EXPECT_EQ(scanner.lines(), 6U);
}

TEST(Scanner, TellsTheLongestLineThatItSawInPieces) {
  Keeper keeper;
  Scanner scanner(keeper);
  scanner.begin(0);
  scanner.feed(std::string((256U << 10U) - 1, 'x') + "\n");
  scanner.finish();
  EXPECT_EQ(scanner.longest_line(), 0U);
  EXPECT_EQ(scanner.lines(), 1U);
  scanner.begin(1);
  scanner.feed(std::string(300'000, 'x') + "\n");
  scanner.finish();
  EXPECT_EQ(scanner.longest_line(), 256U << 10U);
  EXPECT_EQ(scanner.lines(), 2U);
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
