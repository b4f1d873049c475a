#pragma once
#include <sys/types.h>

#include <cstdint>
#include <set>
#include <vector>

#include "base/units.h"
#include "sys/proc.h"

/// Ends process trees so that nothing survives. The caller is a child subreaper (`become_subreaper`):
/// whatever descends from it stays its descendant, also after setsid and a double fork.
///
/// Out of reach, and reported: processes in uninterruptible sleep (state D) and those of another user.
namespace nlaunch::sys {

using ProcessIds = std::set<ProcessId>;

/// Neither a zombie nor on its way out of the table.
bool is_alive(const ProcessInfo& process);

/// From here on orphaned descendants come to this process, not to init.
void become_subreaper();

/// All that descends from the caller now.
ProcessIds own_descendants();

/// The tree below one process that was spawned as a session of its own and with a mark. A member is told by
/// descent, by its session, or by the mark, each enough: when the leader has ended, and a daemon has left its
/// session and cleaned its environment, the mark is still there. It is the soft RLIMIT_LOCKS, which Linux
/// keeps, hands on over fork and exec, and has not looked at since 2.4.25.
struct Subtree {
  pid_t leader = 0;
  std::uint64_t mark = 0;
};

/// One pass: stops every descendant of the caller, looks again until none is new, then kills them all. What
/// is in `except`, and what descends from it, is left alone. Returns those that were alive (zombies are not):
/// call again until it returns none. Reaps nothing.
std::vector<ProcessInfo> kill_descendants(const ProcessIds& except);

struct SubtreeMember {
  std::size_t subtree = 0;  ///< index of the one that it belongs to
  ProcessInfo process;
};
/// The same for some subtrees alone, in one scan for all of them.
std::vector<SubtreeMember> kill_subtrees(const std::vector<Subtree>& subtrees);

struct SweepReport {
  std::vector<ProcessInfo> killed;     ///< that were alive, each once
  std::vector<ProcessInfo> survivors;  ///< that were still there at the limit
};
/// Kills every descendant of the caller but `except` and reaps all that has ended, until nothing is left or
/// `limit` is over.
SweepReport sweep(const ProcessIds& except, Duration limit);

}  // namespace nlaunch::sys
