#include "report/table.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace nlaunch::report {
namespace {

Table checks() {
  Table table({"check", "status", "what"});
  table.add({"gpu.count", "pass", "8 GPUs, as the site profile says"});
  table.add({"net.plugin", Paint(true).red("fail"),
             "libnccl-net.so was not found in /opt/site/aws-ofi-nccl/lib/x86_64/libnccl-net.so"});
  return table;
}

TEST(Table, IsAsWideAsItsTextWhereNothingLimitsIt) {
  EXPECT_EQ(checks().str(Paint(false)),
            "check       status  what\n"
            "gpu.count   pass    8 GPUs, as the site profile says\n"
            "net.plugin  \x1b[1;31mfail\x1b[0m    libnccl-net.so was not found in "
            "/opt/site/aws-ofi-nccl/lib/x86_64/libnccl-net.so\n");
}

TEST(Table, IsWrappedBetweenWordsOnATerminal) {
  EXPECT_EQ(checks().str(Paint(false, 46)),
            "check       status  what\n"
            "gpu.count   pass    8 GPUs, as the site\n"
            "                    profile says\n"
            "net.plugin  \x1b[1;31mfail\x1b[0m    libnccl-net.so was not\n"
            "                    found in\n"
            "                    /opt/site…4/libnccl-net.so\n");
}

TEST(Table, NoLineIsWiderThanTheTerminal) {
  Table table({"name", "path", "text"});
  table.add({"a-long-name-of-a-role", std::string("/") + std::string(150, 'x'),
             std::string(30, 'y') + " " + std::string(90, 'z')});
  for (const std::size_t width : {60, 80, 120, 200}) {
    for (const auto& line : text::split(table.str(Paint(true, width)), '\n'))
      EXPECT_LE(display_width(line), width);
  }
}

TEST(Table, ColoursGoOnOverTheLinesOfACell) {
  Table table({"state"});
  table.add({Paint(true).red("exited with code 1 after a long time")});
  EXPECT_EQ(table.str(Paint(true, 20)),
            "\x1b[2mstate\x1b[0m\n\x1b[1;31mexited with code 1\x1b[0m\n\x1b[1;31mafter a long time\x1b[0m\n");
}

TEST(Table, ColumnsThatMatterLeastAreLeftOut) {
  Table table({"run", "site", "nodes"});
  table.add({"20260131-120000-4711", "isambard", "2"});
  table.leave_out({2, 1});
  EXPECT_EQ(table.str(Paint(false, 37)),
            "run                   site      nodes\n20260131-120000-4711  isambard  2\n");
  EXPECT_EQ(table.str(Paint(false, 36)), "run                   site\n20260131-120000-4711  isambard\n");
  EXPECT_EQ(table.str(Paint(false, 20)), "run\n20260131-120000-4711\n");
}

TEST(Table, ALastColumnIsShortenedToOneLine) {
  Table table({"process", "last line"});
  table.add({"engine.0", "Loading safetensors checkpoint shards"});
  table.shorten_last();
  EXPECT_EQ(table.str(Paint(false)),
            "process   last line\nengine.0  Loading safetensors checkpoint shards\n");
  EXPECT_EQ(table.str(Paint(false, 40)), "process   last line\nengine.0  Loading safetensors…\n");
}

TEST(Wrapped, LinesAreBrokenBetweenWords) {
  const std::string text = "  note: the site profile says where the libraries are\nshort\n\n";
  EXPECT_EQ(wrapped_text(text, 0), text);
  EXPECT_EQ(wrapped_text(text, 60), text);
  EXPECT_EQ(wrapped_text(text, 24),
            "  note: the site profile\n"
            "    says where the\n"
            "    libraries are\n"
            "short\n"
            "\n");
}

TEST(Wrapped, WordsAreNotCutAndColoursDoNotCount) {
  EXPECT_EQ(wrapped_text("see /scratch/project/runs/grpo for more", 12),
            "see\n  /scratch/project/runs/grpo\n  for more");
  const auto red = Paint(true).red("error:");
  EXPECT_EQ(wrapped_text(red + " not found", 16), red + " not found");
  EXPECT_EQ(wrapped_text("", 10), "");
}

}  // namespace
}  // namespace nlaunch::report
