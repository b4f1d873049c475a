#include "cli/man.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "cli/options.h"

namespace nlaunch::cli {
namespace {

TEST(Man, TextIsNeverRoff) {
  EXPECT_EQ(roff("--nodes N"), R"(\-\-nodes N)");
  EXPECT_EQ(roff(R"(Ctrl-\)"), R"(Ctrl\-\e)");
  EXPECT_EQ(roff(".env files"), R"(\&.env files)");
  EXPECT_EQ(roff("'a' \"b\" ~ ^"), R"(\(aqa\(aq \(dqb\(dq \(ti \(ha)");
  EXPECT_EQ(roff("set `audit: x` first"), R"(set \fBaudit: x\fR first)");
  EXPECT_EQ(roff("a\n.b"), "a .b");
}

TEST(Man, EachCommandHasAPage) {
  CLI::App program("Launch", "nlaunch");
  auto command =
      Command(&program).subcommand("train", ".hidden files too").examples({"nlaunch train -n 2", ".a"});
  unsigned number = 0;
  command.option("-n,--nodes", number, "How many");
  command.subcommand("again", "Train again");
  const auto pages = man_pages(program);
  ASSERT_EQ(pages.size(), 3U);
  EXPECT_EQ(pages[0].name, "nlaunch.1");
  EXPECT_EQ(pages[1].name, "nlaunch-train.1");
  EXPECT_EQ(pages[2].name, "nlaunch-train-again.1");
  const auto& page = pages[1].text;
  EXPECT_TRUE(page.starts_with(R"(.TH NLAUNCH\-TRAIN 1 "" "nlaunch )")) << page;
  EXPECT_NE(page.find(R"(
.SH NAME
nlaunch\-train \- \&.hidden files too
.SH SYNOPSIS
\fBnlaunch train\fR [OPTIONS]
.SH EXAMPLES
.nf
nlaunch train \-n 2
\&.a
.fi
.SH COMMANDS
.SS Subcommands
.TP
\fBagain\fR
Train again
.SH OPTIONS
.SS Options
.TP
\fB\-n\fR, \fB\-\-nodes\fR \fIN\fR
How many
.SS General options
)"),
            std::string::npos)
      << page;
  EXPECT_TRUE(page.ends_with(".SH SEE ALSO\n\\fBnlaunch\\fR(1),\n\\fBnlaunch\\-train\\-again\\fR(1)\n"))
      << page;
}

}  // namespace
}  // namespace nlaunch::cli
