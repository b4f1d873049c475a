#pragma once
#include <vector>

#include "shell/recorder.h"

/// What a recorded script makes of the machine that it asks about, which is made up.
namespace nlaunch::shell {

/// Records the script again on another made-up machine, where it has asked about the one, and names in
/// `recording.by_machine` what it starts otherwise there.
Result<void> compare_machines(const RecordRequest& request, Recording& recording);

/// What is in `one` otherwise than in `other`, a recording on another machine. `again` is one on the same
/// machine: what is another in that, a date or a random number, is not the machine's.
std::vector<Absent> decided_by_machine(const Recording& one, const Recording& again, const Recording& other);

}  // namespace nlaunch::shell
