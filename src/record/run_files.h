#pragma once
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

/// The run directory read back, whatever state it is in: a run that was killed has no summary, one that goes
/// on no end, one that was refused no attempt. What is not there is null, and so is what is damaged, which
/// `damaged` tells. A file of a format that is newer than this nlaunch is a failure [format.newer]; older
/// ones are all read.
namespace nlaunch::record {

using Json = nlohmann::ordered_json;

struct Attempt {
  unsigned number = 0;
  std::filesystem::path folder;
  std::map<std::string, Json> bound{};  ///< by host, as in the names of the files
  Json preflight{};
  Json audit{};
  std::vector<Json> steps{};  ///< training steps as they were finished, objects all
};

struct RunFiles {
  std::filesystem::path folder;
  Json plan;
  Json lock;
  Json summary;
  Json job;                       ///< as which it was submitted: {"jobs", "site", "submitted"}
  std::vector<Json> events;       ///< objects all
  std::vector<Attempt> attempts;  ///< by number
  Diagnostics damaged{};          ///< what is wrong with files that are there
};

/// What of a run is read: on thousands of nodes, what each of them wrote is most of it.
enum class Parts { all, without_nodes };
Result<RunFiles> read_run(const std::filesystem::path& folder, Parts parts = Parts::all);

/// The attempts' folders of a run with their numbers, ascending.
std::vector<std::pair<unsigned, std::filesystem::path>> attempt_folders(const std::filesystem::path& run);

/// The evidence that an attempt has taken, each a folder of the time; none behind a link.
std::vector<std::filesystem::path> evidence_folders(const Attempt& attempt);

/// A file of JSON; null where it cannot be read, is larger than 256 MiB, or is none.
Json read_json(const std::filesystem::path& file);

/// Of anything, also of what is no object: null, an empty text, or `otherwise` where there is no such thing.
const Json& at(const Json& from, std::string_view key);
std::string text_at(const Json& from, std::string_view key);
double number_at(const Json& from, std::string_view key, double otherwise = 0);

}  // namespace nlaunch::record
