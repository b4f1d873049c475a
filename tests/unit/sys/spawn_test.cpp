#include "sys/spawn.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

namespace nlaunch::sys {
namespace {

rlimit files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

int exit_code_of(const std::string& script) {
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", script};
  const auto pid = spawn(request);
  if (!pid) return -1;
  int status = 0;
  ::waitpid(*pid, &status, 0);
  return WEXITSTATUS(status);
}

TEST(Spawn, ManyFilesAreForThisProcessAndNotForWhatItStarts) {
  const rlimit before{100, files().rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(permit_many_files(), before.rlim_max);
  EXPECT_EQ(permit_many_files(), before.rlim_max);
  EXPECT_EQ(files().rlim_cur, before.rlim_max);
  EXPECT_EQ(exit_code_of("test $(ulimit -Sn) = 100"), 0);
}

}  // namespace
}  // namespace nlaunch::sys
