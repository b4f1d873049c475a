#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(CodeWithPage, InOneText) {
  const auto told = [](const std::string& curl) {
    return found("code-with-page", script("while true; do\n  s=$(" + curl +
                                          ")\n  [ \"$s\" == \"200\" ] && break\n  sleep 1\ndone\n"));
  };
  EXPECT_EQ(told("curl -s http://localhost:8001/v1/models -w \"%{http_code}\""),
            Texts{"warning job.sh:2:3 the page that the server sends stands in front of its code here"});
  for (const std::string fine :
       {"curl -s -o /dev/null -w \"%{http_code}\" http://localhost:8001/v1/models",
        "curl -so /dev/null http://localhost:8001/ -w \"%{http_code}\"",
        "curl -s http://localhost:8001/health -w \"%{http_code}\"", "curl -s http://localhost:8001/"})
    EXPECT_EQ(told(fine), Texts{}) << fine;
}

TEST(CodeTwice, CurlPrintsItItself) {
  EXPECT_EQ(
      whole("code-twice",
            script("c=$(curl -s -o /dev/null -w '%{http_code}' localhost:80 || echo 000)\npython a.py $c\n")),
      (Texts{"if nobody answers, this yields 000000, not 000",
             "curl prints the code 000 itself when it cannot connect, and the echo adds to it: a comparison "
             "with 000 fails",
             "curl -s -o /dev/null -w '%{http_code}' URL || true", "curl(1), --write-out, http_code"}));
  for (const std::string fine :
       {"c=$(curl -s -w '%{http_code}' localhost:80) || echo 1\n",
        "curl -s -w '%{http_code}' localhost:80 > code || echo 1\n",
        "c=$(curl -s -w '%{http_code}' localhost:80 || true)\n", "c=$(curl -s localhost:80/n || echo 0)\n",
        "c=$(curl -s -w '%{http_code}' localhost:80) || c=000\n"})
    EXPECT_EQ(found("code-twice", script(fine + "python a.py\n")), Texts{}) << fine;
}

}  // namespace
}  // namespace nlaunch::lint
