#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

Texts lost(const std::string& text) {
  return found("exit-code-lost", script(text));
}

TEST(ExitCodeLost, BehindACommandThatEndsTheScript) {
  EXPECT_EQ(lost("set -e\npython a.py\ncode=$?\n"),
            Texts{"error job.sh:3:1 under set -e this line is reached only where python succeeded"});
  EXPECT_EQ(
      lost("set -e\n$PYTHON a.py\ncode=$?\n"),
      Texts{"error job.sh:3:1 under set -e this line is reached only where the command before it succeeded"});
  EXPECT_EQ(lost("set -e\npython a.py\nA=1 code=$?\n").size(), 1U);
}

TEST(ExitCodeLost, HoweverErrexitIsTurnedOn) {
  for (const std::string on : {"set -e", "set -euo pipefail", "set -o errexit", "set -x -e",
                               "set -o pipefail -e", "set +x -e", "set -xo errexit", "set +e\nset -e"}) {
    EXPECT_EQ(lost(on + "\npython a.py\ncode=$?\n").size(), 1U) << on;
  }
  for (const std::string off : {"true", "set -x", "set +e", "set -e\nset +e", "set -e\nset +o errexit",
                                "set errexit", "set -x errexit", "set --e", "set e", "set -",
                                "set -o pipefail", "echo -e", "set -e\nset +xe", "set o errexit"}) {
    EXPECT_EQ(lost(off + "\npython a.py\ncode=$?\n"), Texts{}) << off;
  }
}

TEST(ExitCodeLost, TheFirstLineMayTurnItOn) {
  for (const std::string first : {"#!/bin/bash -e", "#!/bin/bash -xe", "#!/bin/bash -l -e"}) {
    EXPECT_EQ(lost(first + "\npython a.py\ncode=$?\n").size(), 1U) << first;
  }
  for (const std::string first : {"#!/bin/bash", "#!/bin/bash -l", "#!/bin/bash --noediting",
                                  "#!/usr/bin/env bash", "# -e", "\n#!/bin/bash -e"}) {
    EXPECT_EQ(lost(first + "\npython a.py\ncode=$?\n"), Texts{}) << first;
  }
}

TEST(ExitCodeLost, WhereTheFailureIsLookedAtNothingIs) {
  for (const std::string text :
       {"python a.py || true\ncode=$?", "python a.py || code=$?", "! python a.py\ncode=$?",
        "if python a.py; then b; fi\ncode=$?", "python a.py\nfor i in 1; do code=$?; done", "A=1\ncode=$?",
        "A=$(python a.py)\ncode=$?", "trap 'rm x' EXIT\npython a.py\ncode=$?",
        "trap 'rm x' ERR\npython a.py\ncode=$?", "trap 'rm x' 0\npython a.py\ncode=$?",
        "python a.py\ncode=$(a $?)", "f() {\n python a.py\n code=$?\n}"}) {
    EXPECT_EQ(lost("set -e\n" + text + "\n"), Texts{}) << text;
  }
  EXPECT_EQ(lost("#!/bin/bash -e\ncode=$?\n"), Texts{});
  EXPECT_EQ(lost("set -e\ntrap 'rm x' TERM\npython a.py\ncode=$?\n").size(), 1U);
  EXPECT_EQ(lost("set -e\necho EXIT\npython a.py\ncode=$?\n").size(), 1U);
}

TEST(ExitCodeLost, OnlyWhereTheCodeIsKept) {
  for (const std::string line : {"code=$x", "code=1$?", "code=?", "export code=$?", "code="}) {
    EXPECT_EQ(lost("set -e\npython a.py\n" + line + "\n"), Texts{}) << line;
  }
}

TEST(ExitCodeLost, ACommandWithinASubstitutionIsNotTheOneBefore) {
  EXPECT_EQ(lost("set -e\npython a.py\ncode=$? A=$(cat b)\n"),
            Texts{"error job.sh:3:1 under set -e this line is reached only where python succeeded"});
  EXPECT_EQ(lost("echo $(set -e)\npython a.py\ncode=$?\n"), Texts{});
}

TEST(Unreadable, WhatIsNotClosedIsTold) {
  EXPECT_EQ(found("unreadable", script("a\nif b\n")), Texts{"warning job.sh:2:1 'if' is not closed"});
  EXPECT_EQ(found("unreadable", script("a\nif b; then c; fi\n")), Texts{});
}

TEST(Unreadable, AnEvalOfWhatIsNotKnown) {
  EXPECT_EQ(found("unreadable", script("true\neval \"$A\"\neval $(b)\n")),
            Texts{"note job.sh:2:1 eval runs a text that is made when the script runs"});
  EXPECT_EQ(found("unreadable", script("eval 'export A=1'\necho $A\n")), Texts{});
  EXPECT_EQ(found("unreadable", script("a=$(eval \"$A\")\n")), Texts{});
  EXPECT_EQ(found("unreadable", script("eval 'export A=1'\neval export \"$A\"\n")),
            Texts{"note job.sh:2:1 eval runs a text that is made when the script runs"});
}

TEST(LineEnds, TheFirstIsTold) {
  EXPECT_EQ(found("line-ends", script("a\r\nb\r\n")),
            Texts{"error job.sh:1:1 the lines end as on Windows (CRLF)"});
  EXPECT_EQ(found("line-ends", script("a\nb\n\nc\r\n")),
            Texts{"error job.sh:4:1 the lines end as on Windows (CRLF)"});
  EXPECT_EQ(found("line-ends", script("a\rb\n")), Texts{});
  EXPECT_EQ(whole("line-ends", script("a\r\n")).at(2), "sed -i 's/\\r$//' job.sh");
  const auto findings = lint(script("a\r\n"));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].span.length, 1U);
  EXPECT_EQ(found("line-ends", scene({set("A", "\r\n")})), Texts{});
}

TEST(SecretRule, ValuesAndOptionsAreTold) {
  EXPECT_EQ(found("secret", script("export HF_TOKEN=s3cr3t-value\nserve --api-key s3cr3t-other\n")),
            (Texts{"warning job.sh:1:8 the value of HF_TOKEN stands in this file",
                   "warning job.sh:2:17 the value of --api-key stands in this file"}));
  EXPECT_EQ(whole("secret", script("export HF_TOKEN=s3cr3t-value\n")).at(2),
            "read it where it is needed: HF_TOKEN=$(< ~/.secrets/HF_TOKEN)  (nlaunch: secrets:)");
  EXPECT_EQ(found("secret", script("export HF_TOKEN=$(< ~/.token)\n")), Texts{});
}

TEST(SecretRule, AnOptionIsOfNoRole) {
  LintInput input;
  input.environments = {environment("learner", {set("HF_TOKEN", "s3cr3t-value")})};
  input.secrets = {{"the value of --token", "s3cr3t-value", {a_file("z.sh"), 1, 1, 1}}};
  EXPECT_EQ(found("secret", input),
            (Texts{"warning learner.env:1:1 (learner) the value of HF_TOKEN stands in this file",
                   "warning z.sh:1:1 the value of --token stands in this file"}));
}

TEST(SecretRule, AFewHundredAreEnough) {
  LintInput input;
  const auto file = a_file("z.sh");
  for (std::uint32_t line = 1; line <= 300; ++line) {
    input.secrets.push_back({"the value of --token", "s3cr3t-value", {file, line, 1, 1}});
  }
  EXPECT_EQ(found("secret", input).size(), 201U);
}

}  // namespace
}  // namespace nlaunch::lint
