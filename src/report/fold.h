#pragma once
#include <string>
#include <vector>

#include "preflight/preflight.h"

namespace nlaunch::report {

/// Merges rows that are equal on several nodes into one with all of their names.
std::vector<preflight::Row> fold(const std::vector<preflight::Row>& rows);

/// How many nodes the rows are about.
std::size_t count_hosts(const std::vector<preflight::Row>& rows);

/// Numbered names as Slurm writes them: "nid[0001-0512,0514], login". Sorted by name.
std::string host_list(std::vector<std::string> hosts);

}  // namespace nlaunch::report
