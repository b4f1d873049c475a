#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(ErrorsElsewhere, IfTheFileComesBehind) {
  EXPECT_EQ(whole("errors-elsewhere", script("python a.py 2>&1 > train.log\n")),
            (Texts{"errors do not go into train.log",
                   "2>&1 copies where the output goes at that moment: it goes into the file only behind it",
                   "> train.log 2>&1", "bash(1), REDIRECTION; ShellCheck SC2069"}));
  EXPECT_EQ(found("errors-elsewhere", script("python a.py --x 2>&1 >> \"$LOG\" &\nwait\n")),
            Texts{"warning job.sh:1:1 errors do not go into \"$LOG\""});
  for (const std::string fine :
       {"err=$(python a.py 2>&1 >out.txt)\n", "{ python a.py 2>&1 >out.txt; } | tee err.txt\n",
        "echo 'use 2>&1 > file'\n", "python a.py > a.log 2>&1\n", "python a.py 2>&1 | tee a.log\n",
        "python a.py 2>&1 > a.log | tee errors\n", "python a.py 2>&1 >/dev/null\n",
        "# python a.py 2>&1 > a.log\npython a.py\n"})
    EXPECT_EQ(found("errors-elsewhere", script(fine)), Texts{}) << fine;
}

TEST(ErrorsOfTee, BehindThePipe) {
  EXPECT_EQ(whole("errors-of-tee", script("python a.py | tee log 2> err\n")),
            (Texts{"err gets the errors of tee, not those of the program",
                   "a redirection belongs to the command that it stands behind", "PROGRAM 2> err | tee …",
                   "bash(1), Redirection"}));
  for (const std::string fine : {"python a.py 2> err | tee log\n", "python a.py 2>&1 | tee log 2> err\n",
                                 "python a.py | tee log 2>/dev/null\n", "python a.py | tee log\n"})
    EXPECT_EQ(found("errors-of-tee", script(fine)), Texts{}) << fine;
}

}  // namespace
}  // namespace nlaunch::lint
