#include "lint/silence.h"

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

constexpr const char* kDebug = "export NCCL_DEBUG=LOUD";

/// What is left of the findings of two lines that set NCCL_DEBUG to what it does not know.
Texts left(const std::string& text) {
  return lines_of(lint(script(text)));
}

TEST(Silence, ACommentOnTheLineOrAloneAboveItSilencesThisLine) {
  const std::string line = kDebug;
  ASSERT_EQ(left(line + "\n").size(), 1U);
  EXPECT_EQ(left(line + "  # nlaunch: allow unknown-value: a test\n"), Texts{});
  EXPECT_EQ(left("# nlaunch: allow unknown-value: a test\n" + line + "\n"), Texts{});
  EXPECT_EQ(left("  # nlaunch: allow unknown-value: a test\n" + line + "\n"), Texts{});
  EXPECT_EQ(left("# nlaunch: allow set-twice, unknown-value : a test\n" + line + "\n"), Texts{});
}

TEST(Silence, AReasonNeedsNoBlank) {
  EXPECT_EQ(left(std::string(kDebug) + " # nlaunch: allow unknown-value:x\n"), Texts{});
}

TEST(Silence, OtherLinesAndOtherRulesAreTold) {
  const std::string told =
      ": NCCL_DEBUG does not know 'LOUD': it accepts VERSION, WARN, INFO, ABORT or TRACE";
  const std::string line = kDebug;
  EXPECT_EQ(left("# nlaunch: allow set-twice: a test\n" + line + "\n"),
            Texts{"error job.sh:2:8 unknown-value" + told});
  EXPECT_EQ(left("# nlaunch: allow unknown-value: a test\ntrue\n" + line + "\n"),
            Texts{"error job.sh:3:8 unknown-value" + told});
  EXPECT_EQ(left("true # nlaunch: allow unknown-value: a test\n" + line + "\n"),
            Texts{"error job.sh:2:8 unknown-value" + told});
  EXPECT_EQ(left(line + "\n# nlaunch: allow unknown-value: a test\n"),
            Texts{"error job.sh:1:8 unknown-value" + told});
}

TEST(Silence, AWholeFileIsSilencedForOneRule) {
  const std::string line = kDebug;
  EXPECT_EQ(left("true\n" + line + "\ntrue # nlaunch: allow-file unknown-value: a test\n"), Texts{});
  EXPECT_EQ(left(line + "\n# nlaunch: allow-file set-twice: a test\n").size(), 1U);
}

TEST(Silence, WithoutAReasonItSilencesNothing) {
  const auto input = script("true\ntrue é # nlaunch: allow unknown-value\n");
  EXPECT_EQ(whole("silence", input),
            (Texts{"suppression without a reason", "the next reader needs to know why",
                   "# nlaunch: allow RULE: because …", ""}));
  EXPECT_EQ(found("silence", input), Texts{"error job.sh:2:8 suppression without a reason"});
  for (const auto& one : lint(input)) EXPECT_EQ(one.span.length, 16U);
  EXPECT_EQ(found("silence", script("é # nlaunch: allow unknown-value\n")),
            Texts{"error job.sh:1:3 suppression without a reason"});
  EXPECT_EQ(found("silence", script("# nlaunch: allow unknown-value:  \n")),
            Texts{"error job.sh:1:1 suppression without a reason"});
  EXPECT_EQ(left(std::string(kDebug) + " # nlaunch: allow unknown-value: \n").size(), 2U);
  EXPECT_EQ(found("silence", script("# nlaunch: allow-file unknown-value\n")),
            Texts{"error job.sh:1:1 suppression without a reason"});
}

TEST(Silence, ARuleThatIsNotThereIsTold) {
  EXPECT_EQ(whole("silence", script("# nlaunch: allow no-such-rule: a test\n")),
            (Texts{"unknown rule 'no-such-rule'", "this suppresses nothing",
                   "`nlaunch lint --explain` lists the rules", ""}));
  EXPECT_EQ(left("# nlaunch: allow no-such-rule, unknown-value: a test\n" + std::string(kDebug) + "\n"),
            Texts{"error job.sh:1:1 silence: unknown rule 'no-such-rule'"});
}

TEST(Silence, OtherCommentsAreNone) {
  EXPECT_EQ(left("# nlaunch: allowed unknown-value\n# nlaunch: allow\n# nlaunch: allow-files x\n# nlaunch\n"),
            Texts{});
}

TEST(Silence, ItHoldsForItsOwnFileAlone) {
  const auto one = a_file("one.sh", "# nlaunch: allow-file interfaces: a test\n");
  const auto other = a_file("other.sh");
  const auto at = [](const std::shared_ptr<const SourceFile>& file) {
    return Finding{"interfaces", Severity::error, {file, 1, 1, 1}, {}, "what", "why", "", ""};
  };
  EXPECT_EQ(lines_of(silence({at(one), at(other), at(nullptr)}, {one, other})),
            (Texts{"error other.sh:1:1 interfaces: what", "error  interfaces: what"}));
}

}  // namespace
}  // namespace nlaunch::lint
