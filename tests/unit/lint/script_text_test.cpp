#include "lint/script_text.h"

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

std::string stripped(const std::string& text) {
  return without_comments(SourceLines(support::a_file("job.sh", text)));
}

TEST(WithoutComments, LinesAndEndsOfLines) {
  EXPECT_EQ(stripped("#!/bin/bash\na  # b\n  # c\nd \\\n  e # f\n"), "\na  \n\nd \\\n  e \n");
}

TEST(WithoutComments, WhatOnlyLooksLikeOneStays) {
  EXPECT_EQ(stripped("echo \"a # b\" 'c # d' $# e#f\n"), "echo \"a # b\" 'c # d' $# e#f\n");
  EXPECT_EQ(stripped("cat <<E\nit's # text\nE\na # b\n"), "cat <<E\nit's # text\nE\na \n");
}

TEST(WithoutComments, OfATextForAnotherShellToo) {
  EXPECT_EQ(stripped("bash -c '\n  # a\n  b\n' # c\n"), "bash -c '\n\n  b\n' \n");
}

TEST(KeepsExitCode, InAVariable) {
  for (const auto* line : {"code=$?", "  code=\"$?\"  # of train.py", "code=${?}", "code=${PIPESTATUS[0]}"})
    EXPECT_EQ(keeps_exit_code(line), "code") << line;
  for (const auto* line :
       {"", "code=$((? + 1))", "code=$?; echo $code", "export code=$?", "code=$1", "# code=$?", "1=$?"})
    EXPECT_EQ(keeps_exit_code(line), std::nullopt) << line;
}

}  // namespace
}  // namespace nlaunch::lint
