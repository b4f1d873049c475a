#include "sys/spawn.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdarg>

namespace {

/// Whom a child of this test permits to look into it, in memory that the child shares.
long* const permitted = static_cast<long*>(
    ::mmap(nullptr, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));

}  // namespace

/// In place of libc's: a kernel without Yama refuses PR_SET_PTRACER.
extern "C" int prctl(int option, ...) noexcept {
  va_list rest;
  va_start(rest, option);
  const auto argument = va_arg(rest, unsigned long);
  va_end(rest);
  if (option == PR_SET_PTRACER) *permitted = static_cast<long>(argument);
  return static_cast<int>(::syscall(SYS_prctl, option, argument, 0, 0, 0));
}

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

/// The exit code of a shell that this process, forked, has become.
int exit_code_after_become(const std::string& script) {
  const auto child = ::fork();
  if (child == 0) {
    become("/bin/sh", {"sh", "-c", script}, {"PATH=/usr/bin:/bin"});
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(Spawn, WhatThisProcessIgnoresIsNotIgnoredInWhatItStartsOrBecomes) {
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  const rlimit before{100, files().rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  permit_many_files();
  const auto* plain = "test $(ulimit -Sn) = 100 && grep -q '^SigIgn:[[:space:]]*0*$' /proc/self/status";
  EXPECT_EQ(exit_code_of(plain), 0);
  EXPECT_EQ(exit_code_after_become(plain), 0);
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_DFL);
}

TEST(Spawn, PermitsItsTracerToLookIntoIt) {
  SpawnRequest request;
  request.argv = {"/bin/true"};
  request.tracer = ::getpid();
  const auto pid = spawn(request);
  ASSERT_TRUE(pid);
  int status = 0;
  ::waitpid(*pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(*permitted, ::getpid());
}

TEST(Spawn, UnderYamaADescendantOfTheTracerMayAttach) {
  if (::access("/proc/sys/kernel/yama/ptrace_scope", R_OK) != 0) GTEST_SKIP() << "this kernel has no Yama";
  SpawnRequest request;
  request.argv = {"/bin/sleep", "60"};
  request.tracer = ::getpid();
  const auto pid = spawn(request);
  ASSERT_TRUE(pid);
  // The shell is no ancestor of what it opens.
  EXPECT_EQ(exit_code_of(": </proc/" + std::to_string(*pid) + "/mem"), 0);
  ::kill(*pid, SIGKILL);
  ::waitpid(*pid, nullptr, 0);
}

}  // namespace
}  // namespace nlaunch::sys
