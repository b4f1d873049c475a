#pragma once
#include <linux/filter.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <filesystem>
#include <set>
#include "base/diagnostic.h"
#include "shell/scratch_layer.h"

/// What a guarded process may do, what the kernel stops for a decision, and what it refuses.
namespace nlaunch::shell {

/// What a stopped system call is about.
enum class About {
  start,       ///< of a program
  path,        ///< one path, or two
  link,        ///< makes a symbolic link, whose text is a path too
  read_link,   ///< reads one
  folder,      ///< queries the working directory
  rights,      ///< of an open file
  code,        ///< a file that is mapped as executable
  signal,      ///< to a process
  limit,       ///< reads or sets a limit
  socket,      ///< is made
  connection,  ///< of one
  clock,       ///< asks for the time of day
  pretend,     ///< pretends to succeed
};

/// The arguments of a call that hold a path: the directory's descriptor (-1: the working directory) and the
/// path.
struct PathArgument {
  int folder = -1;
  int path = 0;
  Access access = Access::read;
};

struct WatchedCall {
  int number = 0;  ///< on this architecture; negative: not available
  About about = About::pretend;
  PathArgument path{};
  std::optional<PathArgument> second{};  ///< for rename and link
  int open_flags = -1;                   ///< the argument with the flags of open
  bool follows = true;                   ///< a link in the last part
  int at_flags = -1;                     ///< the argument with AT_SYMLINK_NOFOLLOW
  bool goes_there = false;               ///< chdir
};

/// nullptr for a call that is not watched.
const WatchedCall* watched_call(int number);

/// A seccomp filter that stops watched calls for the tracer and refuses calls that reach other processes, the
/// network or the machine.
Result<std::vector<sock_filter>> make_filter();

/// Permanently confines this process and everything it starts: applies the filter; applies Landlock, if the
/// kernel has it, to refuse writes outside `folder` and `files`; drops all of root's capabilities except the
/// one to read; limits memory, file sizes and core dumps. Returns 0, or the errno of the filter. It does not
/// allocate, so a child can call it between fork and exec.
int confine_self(const std::vector<sock_filter>& filter, const std::filesystem::path& folder,
                 const std::set<std::filesystem::path>& files);

}  // namespace nlaunch::shell
