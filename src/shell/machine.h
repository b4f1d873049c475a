#pragma once
#include <vector>

#include "shell/recorder.h"

/// Finds what in a recording depends on the simulated machine.
namespace nlaunch::shell {

/// If the script queried the machine, records it again on another simulated machine, and lists in
/// `recording.by_machine` what it starts differently there.
Result<void> compare_machines(const RecordRequest& request, Recording& recording);

/// What differs between `one` and `other`, a recording on another machine. `again` is a second recording on
/// the same machine: differences to it (a date, a random number) do not depend on the machine.
std::vector<Absent> decided_by_machine(const Recording& one, const Recording& again, const Recording& other);

}  // namespace nlaunch::shell
