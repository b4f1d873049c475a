#pragma once
#include <sys/types.h>

#include <cstdint>
#include <set>
#include <vector>

#include "base/units.h"
#include "sys/proc.h"

/// Kills process trees so that nothing survives. The caller must be a child subreaper (`become_subreaper`):
/// all its descendants stay its descendants, even after setsid and a double fork.
///
/// Out of reach, and reported: processes in uninterruptible sleep (state D) and those of another user.
namespace nlaunch::sys {

using ProcessIds = std::set<ProcessId>;

/// Neither a zombie nor dead.
bool is_alive(const ProcessInfo& process);

/// From now on orphaned descendants are reparented to this process, not to init.
void become_subreaper();

/// All current descendants of the caller.
ProcessIds own_descendants();

/// The tree below one process that was spawned with its own session and a mark. A member is identified by
/// descent, by its session, or by the mark, each being sufficient: when the leader has exited, and a daemon
/// has left its session and cleaned its environment, the mark is still there. The mark is the soft
/// RLIMIT_LOCKS, which Linux keeps, inherits over fork and exec, and has not used since 2.4.25.
struct Subtree {
  pid_t leader = 0;
  std::uint64_t mark = 0;
};

/// One pass: stops every descendant of the caller, scans again until there is no new one, then kills them
/// all. Processes in `except` and their descendants are left alone. Returns those that were alive (not
/// zombies): call again until it returns none. Reaps nothing.
std::vector<ProcessInfo> kill_descendants(const ProcessIds& except);

struct SubtreeMember {
  std::size_t subtree = 0;  ///< index of the subtree to which it belongs
  ProcessInfo process;
};
/// The same for some subtrees only, in one scan for all of them.
std::vector<SubtreeMember> kill_subtrees(const std::vector<Subtree>& subtrees);

struct SweepReport {
  std::vector<ProcessInfo> killed;     ///< that were alive, each once
  std::vector<ProcessInfo> survivors;  ///< that were still there at the limit
};
/// Kills every descendant of the caller except `except` and reaps everything that has exited, until nothing
/// is left or `limit` has passed.
SweepReport sweep(const ProcessIds& except, Duration limit);

}  // namespace nlaunch::sys
