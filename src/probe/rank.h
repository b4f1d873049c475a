#pragma once
#include <span>
#include <string>

namespace nlaunch::probe {

/// `rank --spec FILE --index I [--transport-only] [--id KEY HEX]...`: one rank of a preflight. Prints, one
/// JSON line each:
///   identity   rank, pid, hostname, host_id, host_id_source, visible_devices, gpu (null: none), library
///              (then waits for "go [BYTES]" on standard input, the largest message that all ranks have room
///              for; its end means: give up)
///   joining    group
///   id         group, key, id: for the group's other ranks, who take it as "id KEY HEX" on standard input
///   joined     group, seconds
///   result     group, op, bytes, elements, wrong [, first_wrong, expected, found, fault, rank], seconds,
///              busbw (bytes/s); fault: missing, twice (a rank's term in a sum), received (from it), ""
///   workload   group, workload, wrong, seconds (of each step)
///   drill      group, drill, launched, ended (completed, waiting, blocked: a call did not return, failed),
///   text,
///              wrong, seconds; "done" follows, and the rank stays until its standard input ends
///   choice     group, op, bytes, algorithm, protocol, channels
///   transport  group, network, pairs [{from, to, via, detail, channels}], or error
///   error      phase (identity, join, collective), group, kind (unavailable, failed, deadline), text
///   done       seconds
/// Ranks in "pairs" and a result's "rank" are the communicator's. The exit code is 0 after "done", 3 at a
/// deadline.
int run_rank(std::span<const std::string> arguments);

}  // namespace nlaunch::probe
