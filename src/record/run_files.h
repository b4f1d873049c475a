#pragma once
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

/// Reads back a run directory, whatever state it is in: a run that was killed has no summary, a running one
/// has no end, one that was refused has no attempt. What does not exist is null, and so is what is damaged,
/// which `damaged` reports. A file in a newer format than this nlaunch knows is a failure [format.newer]; all
/// older formats are read.
namespace nlaunch::record {

using Json = nlohmann::ordered_json;

struct Attempt {
  unsigned number = 0;
  std::filesystem::path folder;
  std::map<std::string, Json> bound{};  ///< by host, as in the file names
  Json preflight{};
  Json audit{};
  Json diagnosis{};
  std::vector<Json> steps{};  ///< training steps in the order in which they finished; all of them objects
};

struct RunFiles {
  std::filesystem::path folder;
  Json plan;
  Json lock;
  Json summary;
  Json job;                       ///< what it was submitted as: {"jobs", "site", "submitted"}
  std::vector<Json> events;       ///< all of them objects
  std::vector<Attempt> attempts;  ///< by number
  Diagnostics damaged{};          ///< the problems with existing files
};

/// What of a run is read: on thousands of nodes, what each of them wrote is most of it.
enum class Parts { all, without_nodes };
Result<RunFiles> read_run(const std::filesystem::path& folder, Parts parts = Parts::all);

/// The attempt directories of a run with their numbers, ascending.
std::vector<std::pair<unsigned, std::filesystem::path>> attempt_folders(const std::filesystem::path& run);

/// The evidence of an attempt, one directory for each time it was collected; does not follow links.
std::vector<std::filesystem::path> evidence_folders(const Attempt& attempt);

/// Reads a JSON file; null if it cannot be read, is larger than 256 MiB, or is not JSON.
Json read_json(const std::filesystem::path& file);

/// These accept any value, even if it is not an object: they return null, an empty text, or `otherwise` if
/// the key does not exist.
const Json& at(const Json& from, std::string_view key);
std::string text_at(const Json& from, std::string_view key);
double number_at(const Json& from, std::string_view key, double otherwise = 0);

}  // namespace nlaunch::record
