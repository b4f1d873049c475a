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

/// What a guarded process may do by itself, what the kernel stops and asks for, and what it refuses.
namespace nlaunch::shell {

/// What a stopped system call is about.
enum class About {
  start,       ///< of a program
  path,        ///< one path, or two
  link,        ///< makes a symbolic link, whose text is a path too
  read_link,   ///< reads one
  folder,      ///< asks for the working folder
  rights,      ///< of an open file
  code,        ///< a file that is mapped to be executed
  signal,      ///< to a process
  limit,       ///< reads or sets a limit
  socket,      ///< is made
  connection,  ///< of one
  pretend,     ///< it seems to succeed
};

/// Where a call has a path: the arguments with the folder's descriptor (-1: the working folder) and the
/// path's.
struct PathArgument {
  int folder = -1;
  int path = 0;
  Access access = Access::read;
};

struct WatchedCall {
  int number = 0;  ///< of this architecture; negative: it has none
  About about = About::pretend;
  PathArgument path{};
  std::optional<PathArgument> second{};  ///< of rename and link
  int open_flags = -1;                   ///< the argument with the flags of open
  bool follows = true;                   ///< a link in the last part
  int at_flags = -1;                     ///< the argument with AT_SYMLINK_NOFOLLOW
  bool goes_there = false;               ///< chdir
};

/// Nothing for a call that is not watched.
const WatchedCall* watched_call(int number);

/// A seccomp filter: it stops the watched calls for the process's tracer and refuses what reaches other
/// processes, the network or the machine.
Result<std::vector<sock_filter>> make_filter();

/// Of this process and all that it starts, for good: the filter; Landlock, where the kernel has it, which
/// refuses writes that are neither to `folder` nor to one of `files`; of root's capabilities only the one to
/// read is left; memory, file sizes and core dumps are limited. 0, or the errno of the filter. It allocates
/// nothing: a child may call it between fork and exec.
int confine_self(const std::vector<sock_filter>& filter, const std::filesystem::path& folder,
                 const std::set<std::filesystem::path>& files);

}  // namespace nlaunch::shell
