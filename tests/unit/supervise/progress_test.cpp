#include "supervise/progress.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace nlaunch::supervise {
namespace {

TEST(LiteralOf, IsWhatEveryMatchHas) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"(step (\d+))", "step "},
      {R"(^step (\d+) took ([\d.]+)s)", " took "},
      {R"(\[trainer\] steps? (\d+))", "[trainer] step"},
      {R"(global_step=(\d+))", "global_step="},
      {R"(a+b*cd{2}e)", "a"},
      {R"(step|iteration)", ""},
      {R"((?i)step (\d+))", ""},
      {R"([abc]lm [^]x] end)", " end"},
      {R"((\d+))", ""},
      {R"(it (\d+)/\d{3,5})", "it "},
      {R"(ab{12,}c (\d+))", "c "},
      {R"(\x41\x{0042} (\d+))", " "},
      {R"(\p{Greek}\pN\PLs (\d+))", "s "},
      {R"(\101z (\d+))", "z "},
      {R"(\Qa)\Eb(cd)? (\d+))", ""},
      {R"([[:digit:]abc]x (\d+))", "x "},
      {R"(é?t (\d+))", "t "},
      {R"({step (\d+)})", "step "},
      {R"(a? b(cd)?e (\d+))", " b"},
      {"", ""},
  };
  for (const auto& [pattern, literal] : kCases) EXPECT_EQ(literal_of(pattern), literal) << pattern;
}

TEST(LiteralOf, IsFoundInWhatFits) {
  for (const auto* pattern : {R"(step (\d+))", R"(\[trainer\] steps? (\d+))", R"(a+b*cd{2}e)", R"(x\.y+)"}) {
    const RE2 regex(pattern);
    for (const std::string text :
         {"step 12", "[trainer] step 3", "[trainer] steps 3", "aacdde", "acdde", "x.yy"}) {
      if (!RE2::PartialMatch(text, regex)) continue;
      EXPECT_NE(text.find(literal_of(pattern)), std::string::npos) << pattern << " in " << text;
    }
  }
}

TEST(ProgressPattern, NoLiteralKeepsAMatchFromBeingSeen) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"((\d+)/\d{3,5})", "it 0001/9999"},
      {R"(it (\d+)\x2f\d+)", "it 1/9"},
      {R"(it (\d+)\x{2f}\d+)", "it 1/9"},
      {R"(it\p{Zs}(\d+))", "it 1"},
      {R"(it\pZ(\d+))", "it 1"},
      {R"(it (\d+)\057\d+)", "it 1/9"},
      {R"(\Qit (\E(\d+)(ab)?)", "it (1"},
      {R"([[:space:]it]+ (\d+)[[:^alpha:]xyz])", "it 1/"},
      {R"(é?étape (\d+))", "étape 1"},
      {R"({'step': (\d+)})", "{'step': 1}"},
      {R"(\bit\s(\d+)\z)", "it 1"},
      {R"(it (\d+){1}x{0,9}/)", "it 1/"},
      {R"((epoch )?it{1,2}(?:er)? (\d+))", "it 1"},
      {R"(iteration (\d+)|it (\d+))", "it 1"},
      {R"((?i)IT (\d+))", "it 1"},
      {R"([^]abc]t (\d+))", "it 1"},
      {R"(it+?e{0}r* (\d+))", "itt 1"},
      {R"([\]x]?it (\d+))", "it 1"},
  };
  for (const auto& [pattern, line] : kCases) {
    ASSERT_TRUE(RE2::PartialMatch(line, RE2(pattern))) << pattern;
    EXPECT_TRUE(ProgressPattern(pattern).match(line)) << pattern << ": " << literal_of(pattern);
  }
}

struct Read {
  explicit Read(const std::string& text) : pattern(text) {}
  ProgressPattern pattern;
  ProgressReader reader{pattern, true};

  std::optional<std::uint64_t> step(std::string_view bytes) {
    reader.feed(bytes);
    const auto said = reader.take();
    return said ? said->step : std::nullopt;
  }
};

TEST(ProgressReader, TellsTheNewestStep) {
  Read read(R"(step (\d+))");
  EXPECT_EQ(read.step("loading\nstep 1 loss 2.3\nstep 2 loss 2.2\n"), 2U);
  EXPECT_EQ(read.step(""), std::nullopt);
  EXPECT_EQ(read.step("st"), std::nullopt);
  EXPECT_EQ(read.step("ep 3\nother\n"), 3U);
}

TEST(ProgressReader, ReadsTheSecondsOfAStep) {
  const ProgressPattern pattern(R"(step (\d+) took ([\d.]+)s)");
  ProgressReader reader(pattern, true);
  reader.feed("step 7 took 12.5s\n");
  const auto said = reader.take();
  ASSERT_TRUE(said);
  EXPECT_EQ(said->step, 7U);
  EXPECT_EQ(said->seconds, 12.5);
}

TEST(ProgressReader, SecondsWithoutAnEndAreNone) {
  const ProgressPattern pattern(R"(step (\d+) took (\S+) s)");
  ProgressReader reader(pattern, true);
  for (const auto* seconds : {"inf", "infinity", "nan", "1e999"}) {
    reader.feed(fmt::format("step 7 took {} s\n", seconds));
    const auto said = reader.take();
    ASSERT_TRUE(said);
    EXPECT_EQ(said->step, 7U);
    EXPECT_FALSE(said->seconds) << seconds;
  }
}

TEST(ProgressReader, ReadsAProgressBar) {
  Read read(R"(step (\d+)/)");
  EXPECT_EQ(read.step("\rstep 1/9 [#   ]\rstep 2/9 [##  ]\r"), 2U);
  EXPECT_EQ(read.step("step 3/9"), std::nullopt);
  EXPECT_EQ(read.step(" [### ]\r"), 3U);
}

TEST(ProgressReader, WithoutAPatternAnyLineCounts) {
  const ProgressPattern pattern("");
  ProgressReader reader(pattern, true);
  EXPECT_FALSE(reader.take());
  reader.feed("anything\n");
  const auto said = reader.take();
  ASSERT_TRUE(said);
  EXPECT_FALSE(said->step);
}

TEST(ProgressReader, AStepThatIsNoNumberIsProgressAllTheSame) {
  Read read(R"(step (\S+))");
  read.reader.feed("step seven\n");
  const auto said = read.reader.take();
  ASSERT_TRUE(said);
  EXPECT_FALSE(said->step);
}

TEST(ProgressReader, RemarksAreFoundInEveryProcess) {
  const ProgressPattern pattern("");
  ProgressReader reader(pattern, false);
  reader.feed(
      "[rank1]:[W ProcessGroupNCCL.cpp:4843] [PG ID 0 PG GUID 0 Rank 1]  using GPU 1 as device used by this "
      "process is currently unknown. This can potentially cause a hang\n");
  reader.feed(
      "using GPU 0 to perform barrier as devices used by this process are currently unknown. This can "
      "potentially cause a hang\n");
  EXPECT_FALSE(reader.take());
  EXPECT_EQ(reader.take_remarks().size(), 2U);
}

}  // namespace
}  // namespace nlaunch::supervise
