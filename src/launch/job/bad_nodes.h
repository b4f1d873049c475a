#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"
#include "plan/plan.h"

/// The site's list of bad nodes: a file that all its users share and append to, one
/// `<epoch>\t<node>\t<reason>\t<user>` per line. If an entry is wrong, anyone can delete the line.
namespace nlaunch::launch {

struct BadNode {
  std::string node;
  std::int64_t since = 0;  ///< seconds since 1970
  std::string reason;
  std::string user;
};

struct BadNodeList {
  std::vector<BadNode> nodes;    ///< by name, each once, from its newest line
  std::size_t broken = 0;        ///< lines that cannot be parsed
  std::size_t first_broken = 0;  ///< line number of the first, from 1
};

/// A line is valid for `ttl` after its time. Empty lines and those that start with # are ignored.
BadNodeList parse_ledger(std::string_view text, std::int64_t now, Duration ttl);
/// A missing file is an empty list.
Result<BadNodeList> read_ledger(const std::filesystem::path& path, Duration ttl);

/// Appends a line, complete even if others write at the same time. A failure to write is worth a note to the
/// user, but not a failure of the run.
Result<void> record_bad_node(const std::filesystem::path& path, std::string_view node,
                             std::string_view reason, std::string_view user);

/// How a submission excludes the bad nodes, and what to report about it.
struct Exclusion {
  std::vector<std::string> options;  ///< for the submit command; empty: nothing to exclude
  std::vector<std::string> notes;    ///< sentences
};
/// The list is independent of the plan: the same plan gives the same script, whatever the list contains
/// today. An option of the submit command replaces the script's `exclude`, so it includes those nodes as
/// well.
Exclusion exclude(const plan::Slurm& slurm, const BadNodeList& ledger);
/// The same from the site's file. If it cannot be read, nothing is excluded and there is a note.
Exclusion exclude_bad_nodes(const plan::Slurm& slurm);

}  // namespace nlaunch::launch
