/// libnlaunch-scope.so: limits a preload to a role's program.
///
/// nlaunch starts a role of `scope: process` with LD_PRELOAD="LIBRARY...:libnlaunch-scope.so". As the last
/// one, this library is initialized first, after the loader has mapped all of them and before the program
/// runs. Its constructor acts according to the kind of the process (wrapper.h); each process decides for
/// itself:
///
///   process                                                        LD_PRELOAD
///   a launcher                                                     stays: its ranks need it
///   a wrapper                                                      stays: its program needs it
///   a wrapper, started by a launcher, without RANK and LOCAL_RANK  is removed: a helper, not a rank
///   anything else (the program, a rank, a helper)                  is removed
///
/// Where it was removed, everything that the process starts runs without the libraries and needs no rule.
/// A static program has no loader and passes LD_PRELOAD on; a program that executes itself again loses the
/// libraries.
///
/// Under Yama only its ancestors can inspect a process, and nlaunch's own tools are not among them: each
/// process permits it to the process in NLAUNCH_TRACER (the supervisor), and to all its descendants.
///
/// It is removed from `environ` in place, because bash overrides getenv, setenv and unsetenv of libc.
/// Nothing here allocates, prints or fails.
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "scope/wrapper.h"

extern char** environ;

// The start of the command line tells a process's kind: the rest may be cut off.
enum { MAX_TEXT = 8192, MAX_ARGUMENTS = 128 };

static const char* const preload = "LD_PRELOAD=";
static const char* const tracer = "NLAUNCH_TRACER=";

static bool starts_with(const char* text, const char* prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_set(const char* assignment) {
  for (char** entry = environ; *entry; ++entry) {
    if (starts_with(*entry, assignment)) return true;
  }
  return false;
}

static bool is_rank(void) {
  return is_set("RANK=") && is_set("LOCAL_RANK=");
}

static void take_out(const char* assignment) {
  char** to = environ;
  for (char** from = environ; *from; ++from) {
    if (!starts_with(*from, assignment)) *to++ = *from;
  }
  *to = NULL;
}

// Reads up to `size` - 1 bytes and adds a NUL; an empty string if the file cannot be read. Uses the system
// calls directly: before 2.34, glibc also has open, read and close in libpthread, where a linker may find
// them first and pull that library into every program.
static size_t read_file(const char* path, char* text, size_t size) {
  size_t have = 0;
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    long got;
    while (have < size - 1 && (got = syscall(SYS_read, fd, text + have, size - 1 - have)) > 0)
      have += (size_t)got;
    syscall(SYS_close, fd);
  }
  text[have] = '\0';
  return have;
}

static enum nlaunch_kind kind_of_process(pid_t pid) {
  char path[64];
  char executable[1024];
  char text[MAX_TEXT];
  const char* argv[MAX_ARGUMENTS + 1];

  snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
  const ssize_t length = readlink(path, executable, sizeof executable - 1);
  executable[length > 0 ? length : 0] = '\0';

  snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
  const size_t size = read_file(path, text, sizeof text);
  size_t count = 0;
  for (size_t at = 0; at < size && count < MAX_ARGUMENTS; at += strlen(text + at) + 1)
    argv[count++] = text + at;
  argv[count] = NULL;
  return nlaunch_kind_of(executable, argv);
}

static bool hands_on(void) {
  switch (kind_of_process(getpid())) {
    case NLAUNCH_LAUNCHER:
      return true;
    case NLAUNCH_WRAPPER:
      return is_rank() || kind_of_process(getppid()) != NLAUNCH_LAUNCHER;
    case NLAUNCH_PROGRAM:
      break;
  }
  return false;
}

static void permit_tracer(void) {
  for (char** entry = environ; *entry; ++entry) {
    const long pid = starts_with(*entry, tracer) ? strtol(*entry + strlen(tracer), NULL, 10) : 0;
    if (pid > 0) prctl(PR_SET_PTRACER, (unsigned long)pid, 0, 0, 0);  // EINVAL without Yama
  }
}

__attribute__((constructor)) static void nlaunch_scope(void) {
  if (environ) permit_tracer();
  if (environ && is_set(preload) && !hands_on()) take_out(preload);
}
