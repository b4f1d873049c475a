#include "lint/rule.h"

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

SourceSpan at(const std::shared_ptr<const SourceFile>& file, std::uint32_t line, std::uint32_t column) {
  return {file, line, column, 1};
}

TEST(Report, WhatSeveralRolesHaveFromOneLineIsSaidOnceForAll) {
  const auto file = a_file("a.yaml");
  Report report;
  report.begin("one", "a book");
  for (const auto* role : {"learner", "engine", "learner"}) {
    report.of(role);
    report.error(at(file, 1, 2), {"what", "why", "instead", ""});
  }
  report.of("");
  report.error(at(file, 1, 2), {"what", "why", "instead", ""});
  const auto findings = report.take();
  EXPECT_EQ(lines_of(findings), Texts{"error a.yaml:1:2 (learner, engine) one: what"});
  EXPECT_EQ(findings.at(0).why, "why");
  EXPECT_EQ(findings.at(0).instead, "instead");
  EXPECT_EQ(findings.at(0).source, "a book");
}

TEST(Report, AnotherPlaceOrAnotherSentenceIsAnotherFinding) {
  const auto file = a_file("a.yaml");
  Report report;
  report.begin("one", "a book");
  report.error(at(file, 1, 2), {"what", "", "", ""});
  report.warning(at(file, 2, 2), {"what", "", "", ""});
  report.note(at(file, 1, 3), {"what", "", "", ""});
  report.error(at(a_file("b.yaml"), 1, 2), {"what", "", "", ""});
  report.error(at(file, 1, 2), {"other", "", "", "a page"});
  report.begin("two", "");
  report.error(at(file, 1, 2), {"what", "", "", ""});
  const auto findings = report.take();
  EXPECT_EQ(lines_of(findings), (Texts{"error a.yaml:1:2 one: what", "warning a.yaml:2:2 one: what",
                                       "note a.yaml:1:3 one: what", "error b.yaml:1:2 one: what",
                                       "error a.yaml:1:2 one: other", "error a.yaml:1:2 two: what"}));
  EXPECT_EQ(findings.at(4).source, "a page");
}

TEST(Report, OfOneRuleTheFirstTwoHundredAreListed) {
  const auto file = a_file("a.sh");
  Report report;
  report.begin("one", "a book");
  for (std::uint32_t line = 1; line <= 200; ++line) {
    EXPECT_FALSE(report.full());
    report.error(at(file, line, 1), {"what", "", "", ""});
  }
  EXPECT_FALSE(report.full());
  report.error(at(file, 201, 1), {"what", "", "", ""});
  EXPECT_TRUE(report.full());
  report.error(at(file, 202, 1), {"what", "", "", ""});
  report.begin("two", "");
  EXPECT_FALSE(report.full());
  report.error(at(file, 202, 1), {"what", "", "", ""});
  const auto findings = report.take();
  ASSERT_EQ(findings.size(), 202U);
  EXPECT_EQ(line_of(findings[199]), "error a.sh:200:1 one: what");
  EXPECT_EQ(line_of(findings[200]), "note a.sh:201:1 one: 200 findings of one rule: the rest is not listed");
  EXPECT_EQ(findings[200].why, "most likely it is the same mistake, repeated");
  EXPECT_EQ(line_of(findings[201]), "error a.sh:202:1 two: what");
}

TEST(Report, AFullRuleStillAddsRolesToWhatItHasSaid) {
  const auto file = a_file("a.sh");
  Report report;
  report.begin("one", "");
  for (std::uint32_t line = 1; line <= 202; ++line) report.error(at(file, line, 1), {"what", "", "", ""});
  report.of("learner");
  report.error(at(file, 7, 1), {"what", "", "", ""});
  EXPECT_EQ(line_of(report.take().at(6)), "error a.sh:7:1 (learner) one: what");
}

TEST(Lint, FindingsAreSortedByPlace) {
  LintInput input;
  input.environments.push_back(environment("b", {set("NCCL_NOT_A_NAME", "1"), set("NCCL_DEBUG", "LOUD")}));
  input.environments.push_back(environment("a", {set("NCCL_DEBUG", "LOUD"), set("NCCL_NOT_A_NAME", "1")}));
  const auto file = input.environments[0].settings[0].span.file;
  input.environments[0].settings[1].span = {file, 1, 0, 1};
  Texts shown;
  for (const auto& one : lint(input)) shown.push_back(one.span.where() + " " + std::string(one.rule));
  EXPECT_EQ(shown, (Texts{"a.env:1:1 unknown-value", "a.env:2:1 unknown-variable", "b.env:1:0 unknown-value",
                          "b.env:1:1 unknown-variable"}));
}

TEST(Lint, NoSecretIsShown) {
  const auto findings =
      lint(script("export HF_TOKEN=s3cr3té1 NCCL_DEBUG=s3cr3té1 NCCL_ALGO=s3cr3té1s3cr3té1\n"));
  ASSERT_FALSE(findings.empty());
  for (const auto& one : findings) {
    EXPECT_EQ((one.what + one.why + one.instead).find("s3cr3t"), std::string::npos) << one.what;
    EXPECT_EQ(one.span.file->text,
              "export HF_TOKEN=******** NCCL_DEBUG=******** NCCL_ALGO=****************\n");
  }
}

TEST(Lint, AShortValueOfASecretIsHiddenToo) {
  const auto text_of = [](const std::string& value) {
    return lint(script("export MY_PASSWORD=" + value + " NCCL_DEBUG=LOUD\n")).at(0).span.file->text;
  };
  EXPECT_EQ(text_of("abcd"), "export MY_PASSWORD=**** NCCL_DEBUG=LOUD\n");
  EXPECT_EQ(text_of("abc"), "export MY_PASSWORD=abc NCCL_DEBUG=LOUD\n");
}

TEST(Lint, SecretsOfOptionsAndAddressesAreHidden) {
  const auto findings =
      lint(script("export DB=postgres://me:hunter22@db NCCL_DEBUG=LOUD\nserve --token s3cr3t-value\n"));
  Texts rules;
  for (const auto& one : findings) {
    rules.push_back(std::string(one.rule));
    EXPECT_EQ(one.span.file->text,
              "export DB=************************* NCCL_DEBUG=LOUD\nserve --token ************\n");
  }
  EXPECT_EQ(rules, (Texts{"secret", "unknown-value", "secret"}));
}

TEST(Lint, AFileWithoutSecretsIsTheFileThatWasGiven) {
  const auto input = script("export NCCL_DEBUG=LOUD\n");
  EXPECT_EQ(lint(input).at(0).span.file, input.files.at(0));
}

TEST(Lint, WithoutAFileASecretIsHiddenInTheSentence) {
  LintInput input;
  auto& one = input.environments.emplace_back();
  one.settings = {set("HF_TOKEN", "s3cr3t-value"), set("NCCL_DEBUG", "s3cr3t-value")};
  EXPECT_EQ(
      found("unknown-value", input),
      Texts{
          "error  NCCL_DEBUG does not know '************': it accepts VERSION, WARN, INFO, ABORT or TRACE"});
}

TEST(Rules, ARuleIsFoundByItsWholeName) {
  ASSERT_NE(find_rule("secret"), nullptr);
  EXPECT_EQ(find_rule("secret")->name, "secret");
  EXPECT_EQ(find_rule("secre"), nullptr);
  EXPECT_EQ(find_rule(""), nullptr);
}

}  // namespace
}  // namespace nlaunch::lint
