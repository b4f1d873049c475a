#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"
#include "plan/plan.h"

/// The site's list of nodes to leave out: a file that all of its users share and add to, one
/// `<epoch>\t<node>\t<reason>\t<user>` a line. Whoever is wrong about a node, a person can take the line out.
namespace nlaunch::launch {

struct BadNode {
  std::string node;
  std::int64_t since = 0;  ///< seconds since 1970
  std::string reason;
  std::string user;
};

struct BadNodeList {
  std::vector<BadNode> nodes;    ///< by name, each once, as its newest line says
  std::size_t broken = 0;        ///< lines that say nothing that could be understood
  std::size_t first_broken = 0;  ///< the number of the first, from 1
};

/// A line holds for `ttl` from its time on. Empty ones, and those that begin with #, are nobody's mistake.
BadNodeList parse_ledger(std::string_view text, std::int64_t now, Duration ttl);
/// A file that is not there is an empty ledger.
Result<BadNodeList> read_ledger(const std::filesystem::path& path, Duration ttl);

/// Adds a line, whole whoever else writes at the same time. That it cannot be written is worth a note to the
/// user, and no reason to fail.
Result<void> record_bad_node(const std::filesystem::path& path, std::string_view node,
                             std::string_view reason, std::string_view user);

/// How a submission leaves the bad nodes out, and what to tell of it.
struct Exclusion {
  std::vector<std::string> options;  ///< for the submit command; empty: none are to be left out
  std::vector<std::string> notes;    ///< sentences
};
/// The ledger stands beside the plan: the same plan is the same script, whatever is in the ledger today. An
/// option of the submit command replaces the script's `exclude`, so that it holds that one, too.
Exclusion exclude(const plan::Slurm& slurm, const BadNodeList& ledger);
/// The same from the site's file. One that cannot be read leaves nothing out, and is a note.
Exclusion exclude_bad_nodes(const plan::Slurm& slurm);

}  // namespace nlaunch::launch
