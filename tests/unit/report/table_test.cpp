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

}  // namespace
}  // namespace nlaunch::report
